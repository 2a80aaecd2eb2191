"""The build script: profiles never mix, missing libraries are named with the command that installs them."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEADER = '"""Numbers."""\n'
BODY = '"""Numbers."""\n\n\ndef number():\n    """Return it."""\n    return {}\n'


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("setup_script", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_only_the_modules_that_need_a_library_link_it(script):
    assert script.libraries(script.CORE / "base" / "snappy" / "compress.pyx") == ["snappy"]
    assert script.libraries(script.CORE / "server" / "store" / "env.pyx") == ["lmdb"]
    assert script.libraries(script.CORE / "server" / "store" / "deep" / "env.pyx") == ["lmdb"]
    assert script.libraries(script.CORE / "base" / "snappy" / "compressor.pyx") == []
    assert script.libraries(script.CORE / "net" / "executor.pyx") == []


def test_an_unknown_profile_is_refused_by_name(script, monkeypatch):
    monkeypatch.setenv("DATAPROXY_BUILD", "relaese")
    with pytest.raises(SystemExit, match=r"'relaese' is unknown; choose one of release, debug, coverage, asan"):
        script.profile_name()


def test_a_library_without_header_is_missing(script, monkeypatch):
    monkeypatch.setitem(script.NEEDS, "lmdb", ("no-such-header.h", "f", "no-such-package", "libnone-dev"))
    assert script.missing({"snappy", "lmdb"}) == ["lmdb"]


def test_a_library_without_the_function_is_missing(script, monkeypatch):
    monkeypatch.setitem(script.NEEDS, "lmdb", ("lmdb.h", "no_such_function", "lmdb", "liblmdb-dev"))
    assert script.missing({"lmdb"}) == ["lmdb"]


def test_the_build_stops_with_the_command_that_installs_a_library(script, monkeypatch):
    monkeypatch.setitem(script.NEEDS, "lmdb", ("no-such-header.h", "f", "no-such-package", "libnone-dev"))
    command = script.BuildCore.__new__(script.BuildCore)
    command.extensions = [script.Extension("x", [], libraries=["lmdb"])]
    with pytest.raises(SystemExit, match="apt-get install libnone-dev"):
        command.build_extensions()


def folders(script, monkeypatch, wish):
    """Return the folders of the core whose modules are built with this DATAPROXY_HUB."""
    monkeypatch.setenv("DATAPROXY_HUB", wish)
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("DATAPROXY_ONLY", raising=False)
    monkeypatch.delenv("DATAPROXY_NATIVE", raising=False)
    found = script.extensions(script.PROFILES["release"])
    return {ext.name.split(".")[2] for ext in found}, {lib for ext in found for lib in ext.libraries}


def test_the_hub_alone_needs_liblmdb_and_is_left_out_where_it_is_missing(script, monkeypatch):
    everything = {path.name for path in (ROOT / script.CORE).iterdir() if any(path.rglob("*.pyx"))}
    assert folders(script, monkeypatch, "auto") == (everything, {"snappy", "lmdb"})
    assert folders(script, monkeypatch, "yes") == (everything, {"snappy", "lmdb"})
    assert folders(script, monkeypatch, "no") == (everything - {"server"}, {"snappy"})
    monkeypatch.setitem(script.NEEDS, "lmdb", ("no-such-header.h", "f", "no-such-package", "libnone-dev"))
    assert folders(script, monkeypatch, "auto") == (everything - {"server"}, {"snappy"})
    assert folders(script, monkeypatch, "yes") == (everything, {"snappy", "lmdb"})  # and the build stops


def test_no_module_outside_of_the_hub_needs_the_hub(script):
    others = [path for path in (ROOT / script.CORE).rglob("*.p[yx]*") if "server" not in path.parts]
    assert len(others) > 100
    assert not [path for path in others if "_core.server" in path.read_text()]


def test_an_unknown_wish_for_the_hub_is_refused(script, monkeypatch):
    monkeypatch.setenv("DATAPROXY_HUB", "maybe")
    with pytest.raises(SystemExit, match=r"DATAPROXY_HUB='maybe' is unknown; choose one of auto, yes, no"):
        script.builds_hub()


@pytest.mark.parametrize(("wish", "why"), [("no", "as DATAPROXY_HUB=no asks"), ("auto", "liblmdb was not found here")])
def test_a_build_without_the_hub_says_so_in_one_line(script, monkeypatch, capsys, wish, why):
    monkeypatch.setenv("DATAPROXY_HUB", wish)
    monkeypatch.setitem(script.NEEDS, "lmdb", ("no-such-header.h", "f", "no-such-package", "libnone-dev"))
    monkeypatch.setattr(script.build_ext, "build_extensions", lambda _self: None)
    command = script.BuildCore.__new__(script.BuildCore)
    command.extensions = []
    command.build_extensions()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"dataproxy: built without the hub, {why}; producer and Spark sink are complete.")
    assert "apt-get install libnone-dev" in line


@pytest.fixture
def project(tmp_path):
    """A project of two one-function modules, built by this project's script."""
    shutil.copy(ROOT / "setup.py", tmp_path)
    core = tmp_path / "cython_ext" / "dataproxy" / "_core"
    for name in ("base/first", "io/second"):
        path = core / f"{name}.pyx"
        path.parent.mkdir(parents=True)
        path.write_text(BODY.format(1))
        path.with_suffix(".pxd").write_text(HEADER)
    (tmp_path / "dataproxy" / "_core").mkdir(parents=True)
    (tmp_path / "dataproxy" / "__init__.py").touch()
    (tmp_path / "dataproxy" / "_core" / "__init__.py").touch()
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "small"\nversion = "1"\n[tool.setuptools.packages.find]\ninclude = ["dataproxy*"]\n'
    )
    return tmp_path


def try_to_compile(project: Path, profile: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DATAPROXY_BUILD": profile, **variables}
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def compile_in_place(project: Path, profile: str, only: str = "") -> None:
    done = try_to_compile(project, profile, DATAPROXY_ONLY=only)
    assert done.returncode == 0, done.stdout + done.stderr


def modules(project: Path) -> dict[str, bytes]:
    return {path.name.split(".")[0]: path.read_bytes() for path in (project / "dataproxy").rglob("*.so")}


def test_switching_the_profile_replaces_every_module(project):
    compile_in_place(project, "release")
    release = modules(project)
    assert set(release) == {"first", "second"}

    compile_in_place(project, "debug")
    debug = modules(project)
    assert all(debug[name] != release[name] for name in release)

    compile_in_place(project, "release")
    assert modules(project) == release

    compile_in_place(project, "debug", only="io")
    assert modules(project) == {"second": debug["second"]}
    assert (project / "build" / "inplace").read_text() == "debug"


def test_a_changed_header_rebuilds_every_module(project):
    compile_in_place(project, "release")
    before = {path: path.stat().st_mtime_ns for path in (project / "dataproxy").rglob("*.so")}
    compile_in_place(project, "release")
    assert before == {path: path.stat().st_mtime_ns for path in before}
    header = project / "cython_ext" / "dataproxy" / "_core" / "plat" / "x.h"
    header.parent.mkdir()
    header.write_text("#define X 1\n")
    compile_in_place(project, "release")
    assert all(path.stat().st_mtime_ns > time for path, time in before.items())


@pytest.mark.parametrize(("strict", "code"), [("", 0), ("1", 1)])
def test_a_warning_of_the_compiler_is_an_error_only_where_asked(project, strict, code):
    # A user's newer compiler warns of more than the one that CI has.
    source = next(project.rglob("first.pyx"))
    source.write_text('cdef extern from *:\n    """\n    #warning "new here"\n    """\n' + BODY.format(1))
    done = try_to_compile(project, "release", DATAPROXY_WERROR=strict)
    assert done.returncode == code, done.stdout + done.stderr
    assert "new here" in done.stdout + done.stderr
