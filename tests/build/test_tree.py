"""The copy of the checkout in which sanitizers and coverage are built."""

import importlib.util
import os
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

SUFFIX = EXTENSION_SUFFIXES[0]
PYX = "cython_ext/dataproxy/_core/base/buf.pyx"
SO = f"dataproxy/_core/base/buf{SUFFIX}"


@pytest.fixture
def tool(tmp_path, monkeypatch):
    path = Path(__file__).parents[2] / "tools" / "build.py"
    spec = importlib.util.spec_from_file_location("build_tool", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.delenv("DATAPROXY_WERROR", raising=False)
    for name in (PYX, "setup.py", "dataproxy/errors.py", "tests/unit/test_buf.py"):
        write(tmp_path / name)
    return module


def write(path: Path, text: str = "text\n", time: float = 1000.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (time, time))
    return path


def test_the_copy_holds_sources_and_no_products(tool, tmp_path):
    tree = tmp_path / "build" / "tree-asan"
    write(tmp_path / SO)
    write(tmp_path / ".venv-3.12" / "bin" / "python")
    write(tmp_path / "build" / "release" / "x.o")
    tool.synchronise(tree)
    found = {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()}
    assert found == {PYX, "setup.py", "dataproxy/errors.py", "tests/unit/test_buf.py"}
    assert (tree / PYX).stat().st_mtime == 1000.0


def test_changed_files_are_copied_and_vanished_ones_removed(tool, tmp_path):
    tree = tmp_path / "build" / "tree-asan"
    tool.synchronise(tree)
    kept = (tree / "setup.py").stat().st_ino
    write(tree / SO)
    write(tree / PYX.replace(".pyx", ".c"))
    write(tmp_path / "dataproxy" / "errors.py", "other\n", 1001.0)
    (tmp_path / "tests" / "unit" / "test_buf.py").unlink()
    tool.synchronise(tree)
    assert (tree / "dataproxy" / "errors.py").read_text() == "other\n"
    assert not (tree / "tests" / "unit" / "test_buf.py").exists()
    assert (tree / "setup.py").stat().st_ino == kept
    assert (tree / SO).exists()
    assert (tree / PYX.replace(".pyx", ".c")).exists()


def test_a_module_without_source_is_removed(tool, tmp_path):
    tree = tmp_path / "build" / "tree-asan"
    write(tree / SO)
    write(tree / SO.replace("buf", "gone"))
    tool.synchronise(tree)
    assert (tree / SO).exists()
    assert not (tree / SO.replace("buf", "gone")).exists()


def test_a_module_of_another_branch_is_removed_from_the_checkout(tool, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool.sys, "argv", ["build.py"])
    write(tmp_path / PYX)
    write(tmp_path / SO.replace("buf", "gone"))
    complete(tmp_path)
    tool.main()
    assert (tmp_path / SO).exists()
    assert not (tmp_path / SO.replace("buf", "gone")).exists()


def complete(tree: Path, profile: str = "release") -> None:
    write(tree / SO, time=2000.0)
    write(tree / "build" / "inplace", profile)
    write(tree / "build" / "complete", time=2000.0)


def test_a_finished_build_is_current(tool, tmp_path):
    complete(tmp_path)
    assert tool.is_current(tmp_path, "release")


@pytest.mark.parametrize("name", [PYX, PYX.replace(".pyx", ".pxd"), PYX.replace("buf.pyx", "dp.h"), "setup.py"])
def test_a_newer_source_makes_a_build(tool, tmp_path, name):
    complete(tmp_path)
    write(tmp_path / name, time=3000.0)
    assert not tool.is_current(tmp_path, "release")


def test_another_profile_or_a_missing_module_makes_a_build(tool, tmp_path):
    complete(tmp_path, "debug")
    assert not tool.is_current(tmp_path, "release")
    complete(tmp_path)
    (tmp_path / SO).unlink()
    assert not tool.is_current(tmp_path, "release")
    assert not tool.is_current(tmp_path / "nothing", "release")


def test_a_build_that_let_warnings_pass_is_made_again_where_they_are_errors(tool, tmp_path, monkeypatch):
    commands = []

    def compile_in(command, **options):
        commands.append(command)
        return tool.subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(tool.subprocess, "run", compile_in)
    complete(tmp_path)
    tool.build(tmp_path, "release")
    assert tool.is_current(tmp_path, "release")
    monkeypatch.setenv("DATAPROXY_WERROR", "1")
    assert not tool.is_current(tmp_path, "release")
    tool.build(tmp_path, "release")
    assert tool.is_current(tmp_path, "release")
    tool.build(tmp_path, "release")
    monkeypatch.delenv("DATAPROXY_WERROR")
    assert tool.is_current(tmp_path, "release")
    assert [command[-1] == "--force" for command in commands] == [False, True, False]
