"""The distribution of ``inlong_dataproxy`` builds from its folder, installs, and needs this version of the package."""

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import dataproxy

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "inlong_dataproxy"


def run(*command: str, folder: Path, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
        cwd=folder,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inlong")
    source = folder / "source"
    shutil.copytree(PROJECT, source, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    program = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    run("-c", program, str(folder), folder=source)  # what pip calls, without its environment of its own
    (found,) = folder.glob("*.whl")
    return found


def test_its_version_is_that_of_the_package_that_it_needs() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert project["version"] == dataproxy.__version__
    assert project["dependencies"] == [f"dataproxy-sdk=={dataproxy.__version__}"]
    assert (
        project["requires-python"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    )


def test_the_wheel_holds_the_module_and_its_types(wheel: Path) -> None:
    assert wheel.name == f"dataproxy_sdk_inlong-{dataproxy.__version__}-py3-none-any.whl"
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    modules = {path.name for path in PROJECT.glob("*.py")}
    assert held == {f"inlong_dataproxy/{name}" for name in (*modules, "py.typed")}


def test_it_installs_and_begins(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    run("-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(site), str(wheel), folder=tmp_path)
    program = "import inlong_dataproxy as m; print(m.__file__, m.InLongApi().init_api(None))"
    told = run("-c", program, folder=tmp_path, PYTHONPATH=os.pathsep.join([str(site), str(ROOT)]))
    assert told == f"{site}/inlong_dataproxy/__init__.py 5\n"
