"""Wheels for old systems: pinned sources, LMDB under names of its own, licences word by word."""

import hashlib
import importlib.util
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEADER = """\
/* See mdb_env_sync() and mdb_not_there(). */
typedef struct MDB_env MDB_env;
int  mdb_env_open(MDB_env *env);
char *mdb_strerror(int err);
#define mdb_close(env) mdb_env_close(env)
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("portable_script", ROOT / "tools" / "portable.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "CACHE", tmp_path / "cache")
    return module


@pytest.fixture
def pins(script):
    """One pinned archive, which lies in the cache."""
    archive = script.CACHE / "sources" / "a_1.orig.tar.gz"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"sources")
    return {"suite": "s", "a": {"archive": archive.name, "sha256": hashlib.sha256(b"sources").hexdigest()}}


def test_everything_that_is_fetched_is_pinned(script):
    lines = [line for line in script.LOCK.read_text().splitlines() if not line.startswith("#")]
    assert len(lines) == 1
    assert "ziglang==" in lines[0] and "--hash=sha256:" in lines[0]
    pinned = tomllib.loads(script.PINS.read_text())
    assert set(pinned) == {"suite", "snappy", "lmdb"}
    assert all(len(pinned[name]["sha256"]) == 64 for name in ("snappy", "lmdb"))


def test_sources_in_the_cache_are_not_fetched_again(script, pins, monkeypatch):
    monkeypatch.setattr(script, "run", lambda *_, **__: pytest.fail("fetched"))
    assert script.fetch(pins)["a"].read_bytes() == b"sources"


def test_sources_that_differ_by_a_byte_are_refused(script, pins, monkeypatch):
    """The one in the cache is fetched again, and what comes is compared too."""
    called = []
    monkeypatch.setattr(script, "archive_address", lambda: "http://archive.invalid")
    monkeypatch.setattr(script, "run", lambda *command, **_: called.append(command[-1]))
    (script.CACHE / "sources" / "a_1.orig.tar.gz").write_bytes(b"sourced")
    with pytest.raises(SystemExit, match=r"a: a_1\.orig\.tar\.gz is not there, or not with the pinned checksum"):
        script.fetch(pins)
    assert called == ["update", "a"]


@pytest.mark.parametrize(
    ("codename", "address"), [("bookworm", "http://archive.invalid/debian"), ("book", None), ("", None)]
)
def test_the_archive_is_the_one_that_the_machine_is_set_up_with(script, tmp_path, monkeypatch, codename, address):
    told = "".join(
        f"'{place}/dists/{suite}/InRelease' name 0 \n"
        for place, suite in (
            ("http://other.invalid/apt", "other"),
            ("http://archive.invalid/security", "bookworm-security"),
            ("http://archive.invalid/debian", "bookworm"),
        )
    )
    monkeypatch.setattr(script, "run", lambda *_: told)
    monkeypatch.setattr(script, "KEYS", tmp_path)
    monkeypatch.setattr(script.shutil, "which", lambda name: name)
    monkeypatch.setattr(script.platform, "freedesktop_os_release", lambda: {"VERSION_CODENAME": codename})
    if address:
        assert script.archive_address() == address
    else:
        with pytest.raises(SystemExit, match="make wheel WHEEL=machine"):
            script.archive_address()


def test_lmdb_has_names_of_its_own(script, tmp_path):
    """The compiler says which function a caller of the changed header asks for."""
    (tmp_path / "lmdb.h").write_text(script.renamed(HEADER))
    program = '#include "lmdb.h"\nint main(void) { return mdb_env_open(0) + *mdb_strerror(1); }\n'
    (tmp_path / "program.c").write_text(program)
    subprocess.run(["cc", "-Werror", "-c", "program.c", "-o", "program.o"], cwd=tmp_path, check=True)
    image = (tmp_path / "program.o").read_bytes()
    assert b"\0dataproxy_mdb_env_open\0" in image
    assert b"\0dataproxy_mdb_strerror\0" in image
    assert b"\0mdb_" not in image
    assert "mdb_not_there dataproxy" not in script.renamed(HEADER)  # a comment


def test_the_licence_that_travels_is_that_of_the_sources(script, tmp_path):
    ours = (ROOT / "licences" / "snappy.txt").read_text()
    (tmp_path / "COPYING").write_text(ours.split("\n", 1)[1].replace("\n", " ") + "\n===\nof test data\n")
    pin = {"archive": "a.tar.gz", "licence": "COPYING", "ours": "licences/snappy.txt"}
    script.check_licence(tmp_path, pin)
    (tmp_path / "COPYING").write_text("Do what you like.\n")
    with pytest.raises(SystemExit, match=r"licences/snappy\.txt has not the words of COPYING in a\.tar\.gz"):
        script.check_licence(tmp_path, pin)


def test_an_archive_cannot_write_outside_its_folder(script, tmp_path):
    (tmp_path / "file").touch()
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as file:
        file.add(tmp_path / "file", "a/../../outside")
    with pytest.raises(SystemExit, match=r"a\.tar\.gz would write a/\.\./\.\./outside"):
        script.unpack(tmp_path / "a.tar.gz", tmp_path / "folder")


def test_another_processor_is_told_what_to_do(script, monkeypatch):
    monkeypatch.setattr(script.sys, "argv", ["portable.py", "folder"])
    monkeypatch.setattr(script.platform, "machine", lambda: "aarch64")
    with pytest.raises(SystemExit, match="this machine is aarch64; use: make wheel WHEEL=machine"):
        script.main()


def test_an_unknown_kind_of_wheel_is_refused():
    command, environment = [ROOT / "tools" / "wheel.sh", "build"], {"WHEEL": "old", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "WHEEL=old is unknown; choose portable or machine" in done.stderr
