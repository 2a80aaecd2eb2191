"""Versions and what is missing."""

import re
import tomllib

import pytest

from dataproxy._version import __version__
from dataproxy.doctor import Level
from dataproxy.doctor.installation import EXTRAS, installation_findings, read_versions
from tests.docs.pages import ROOT


@pytest.fixture(scope="module")
def versions():
    return read_versions()


def test_the_extras_are_those_of_the_distribution():
    file = ROOT / "pyproject.toml"
    if not file.exists():
        return  # a wheel's tests
    project = tomllib.loads(file.read_text())["project"]
    stated = {"": project["dependencies"], **project["optional-dependencies"]}
    form = re.compile(r"([\w-]+)>=([\d.]+).*")
    assert {extra: dict(form.fullmatch(one).groups() for one in every) for extra, every in stated.items()} == EXTRAS


def test_this_installation():
    from dataproxy._core.base.snappy import compress

    assert compress  # it has loaded libsnappy
    versions = read_versions()
    assert versions["dataproxy"] == __version__
    assert versions["libsnappy"].startswith("libsnappy")
    assert versions["openssl"].startswith("OpenSSL")
    levels = {one.level for one in installation_findings(versions)}
    assert Level.ERROR not in levels


def test_a_library_is_found_by_its_file(tmp_path):
    library = tmp_path / "libsnappy-1a2b.so.1.2.1"
    library.write_bytes(b"")
    (tmp_path / "maps").write_text(f"7f00-7f01 r-xp 0 08:01 9   {library}\n7f02-7f03 r-xp 0 08:01 9 /lib/libc.so.6\n")
    assert read_versions(tmp_path / "maps")["libsnappy"] == library.name
    assert read_versions(tmp_path / "none")["libsnappy"] == ""
    (tmp_path / "maps").write_text("7f02-7f03 r-xp 0 08:01 9 /lib/libc.so.6\n")
    assert read_versions(tmp_path / "maps")["libsnappy"] == "libsnappy built in"


@pytest.mark.parametrize(
    ("change", "level", "words"),
    [
        ({"core": "cannot be loaded: compiled module x is missing"}, Level.ERROR, "cannot be loaded"),
        ({"core": "debug"}, Level.WARNING, "built as debug"),
        ({"urllib3": "1.26.5"}, Level.WARNING, "1.26.5 is installed, 2.1 is the least"),
        ({"msgspec": ""}, Level.ERROR, "is not installed"),
        ({"pyspark": "3.5.1"}, Level.WARNING, "4.0 is the least"),
        ({"pyspark": ""}, Level.OK, "not installed: spark"),
        ({"hub": "left out"}, Level.OK, "hub left out"),
    ],
)
def test_what_is_wrong_with_an_installation(versions, change, level, words):
    found = installation_findings({**versions, "core": "release", **change})
    assert any(one.level is level and words in one.text for one in found)
