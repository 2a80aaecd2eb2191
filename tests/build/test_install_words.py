"""What code and pages tell people to install is this distribution, with extras that it has."""

import re
import tomllib

import pytest

from tests.docs.pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SOURCES = sorted(
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "dataproxy/**/*.py",
        "pyspark_dataproxy/*.py",
        "pyspark_tubemq/*.py",
        "examples/*.py",
    )
    for path in ROOT.glob(pattern)
)
# A name as it may be installed: ours, or one that begins like ours; "." and wheels stand for it in a checkout.
INSTALLED = re.compile(r"\bpip install\b[^\n`]*?(?<![\w./-])(dataproxy[\w-]*)(?:\[([\w,]+)\])?(?=['\"\s`)]|$)")
EXTRAS = re.compile(r"(?<![\w./-])(dataproxy[\w-]*|\.)\[([a-z,]+)\]")


def told() -> list[tuple[str, str, str]]:
    """Return file, distribution and extras of everything that a page or an error tells people to install."""
    found = []
    for path in SOURCES:
        text = path.read_text()
        name = str(path.relative_to(ROOT))
        found += [(name, one, extras or "") for one, extras in INSTALLED.findall(text)]
        found += [(name, one, extras) for one, extras in EXTRAS.findall(text)]
    return found


def test_the_import_name_is_not_the_distributions():
    assert PROJECT["name"] == "dataproxy-sdk"


@pytest.mark.parametrize(("file", "name", "extras"), told())
def test_people_are_told_to_install_this_distribution(file, name, extras):
    assert name in (PROJECT["name"], "."), f"{file} names {name}"
    assert set(filter(None, extras.split(","))) <= set(PROJECT["optional-dependencies"])


def test_it_is_told_somewhere():
    assert len(told()) >= 8
