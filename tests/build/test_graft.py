"""Wheels carry libsnappy and liblmdb: nothing of theirs is needed where they are installed, and their licences travel."""

import importlib.util
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CARRIED = ("base/compress", "hub/store", "hub/storeenv")  # of the modules that link a library, enough for a small wheel


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("graft_script", ROOT / "tools" / "graft.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A wheel with some of the checkout's compiled modules, as setuptools makes it."""
    folder = tmp_path_factory.mktemp("plain")
    core = folder / "dataproxy" / "_core"
    for name in CARRIED:
        module = next((ROOT / "dataproxy" / "_core").glob(f"{name}.*.so"))
        (core / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(module, (core / name).parent)
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "dataproxy"\nversion = "0"\nlicense-files = ["licences/*.txt"]\n'
        '[tool.setuptools]\npackages = ["dataproxy"]\n[tool.setuptools.package-data]\n"*" = ["**/*.so"]\n'
    )
    (folder / "setup.py").write_text(
        "from setuptools import Distribution, setup\n"
        "class Compiled(Distribution):\n"
        "    def has_ext_modules(self):\n"
        "        return True\n"
        "setup(distclass=Compiled)\n"
    )
    shutil.copytree(ROOT / "licences", folder / "licences")
    subprocess.run([sys.executable, "setup.py", "-q", "bdist_wheel"], cwd=folder, check=True, capture_output=True)
    return next((folder / "dist").glob("*.whl"))


def test_a_plain_wheel_needs_the_libraries_of_the_machine(script, plain):
    found = script.strangers(plain)
    assert len(found) == len(CARRIED)
    assert sum("needs libsnappy" in text for text in found) == 1
    assert sum("needs liblmdb" in text for text in found) == 2


def test_a_grafted_wheel_needs_none(script, plain, tmp_path):
    wheel = script.graft(plain, tmp_path)
    assert script.strangers(wheel) == []
    assert "manylinux_" in wheel.name  # which says what glibc it needs
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
    carried = [name.split("/")[1].split("-")[0] for name in names if name.startswith(script.LIBRARIES) and name[-1] != "/"]
    assert sorted(carried) == ["liblmdb", "libsnappy"]
    licences = {name.rpartition("/")[2] for name in names if ".dist-info/licenses/" in name and name[-1] != "/"}
    assert licences == {"lmdb.txt", "snappy.txt"}


def test_the_project_names_the_licences():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license-files"] == ["LICENSE", "licences/*.txt"]
    assert "graft licences" in (ROOT / "MANIFEST.in").read_text().splitlines()
