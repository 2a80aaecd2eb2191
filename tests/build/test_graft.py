"""Wheels carry libsnappy and liblmdb: nothing of theirs is needed where they are installed; licences travel along."""

import importlib.util
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Of the modules that link a library, enough for a small wheel.
CARRIED = ("base/snappy/compress", "server/store/append", "server/store/env")


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
    carried = [
        name.split("/")[1].split("-")[0] for name in names if name.startswith(script.LIBRARIES) and name[-1] != "/"
    ]
    assert sorted(carried) == ["liblmdb", "libsnappy"]
    licences = {name.rpartition("/")[2] for name in names if ".dist-info/licenses/" in name and name[-1] != "/"}
    assert licences == {"lmdb.txt", "snappy.txt"}


def test_a_wheel_of_this_machine_is_not_one_for_old_systems(script, plain, tmp_path):
    """Its libraries are those of the system, under their usual names, and snappy's needs the system's C++."""
    found = script.unportable(script.graft(plain, tmp_path), "2.17")
    assert sum("needs a newer glibc than 2.17" in text for text in found) == 1
    assert any("libsnappy" in text and "needs libstdc++" in text for text in found)
    assert any("compress" in text and "another library's snappy_compress" in text for text in found)
    assert any("store/env" in text and "another library's mdb_env_open" in text for text in found)
    with pytest.raises(SystemExit, match=r"needs a newer glibc than 2\.17"):
        script.graft(plain, tmp_path, "2.17")


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("x-1-cp311-cp311-manylinux_2_26_x86_64.whl", True),
        ("x-1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", True),
        ("x-1-cp311-cp311-manylinux_2_28_x86_64.whl", False),
        ("x-1-cp311-cp311-linux_x86_64.whl", False),
    ],
)
def test_a_wheels_name_says_for_which_glibc_it_is(script, tmp_path, name, fits):
    with zipfile.ZipFile(tmp_path / name, "w"):
        pass
    assert (script.unportable(tmp_path / name, "2.26") == []) == fits


def test_routines_of_the_c_library_are_not_the_compilers(script, tmp_path):
    source = tmp_path / "own.c"
    source.write_text("#include <stddef.h>\nvoid *memset(void *p, int c, size_t n) { (void)c; (void)n; return p; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "own.so", source], check=True)
    assert script.own_routines((tmp_path / "own.so").read_bytes()) == {"memset"}
    wheel = tmp_path / "x-1-cp311-cp311-manylinux_2_17_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.write(tmp_path / "own.so", "x/own.so")
    assert script.unportable(wheel, "2.26") == ["x/own.so has its own memset"]


def test_the_project_names_the_licences():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license-files"] == ["LICENSE", "NOTICE", "licences/*.txt"]
    assert "graft licences" in (ROOT / "MANIFEST.in").read_text().splitlines()
