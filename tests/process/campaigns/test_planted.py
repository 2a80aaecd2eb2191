"""Every planted bug still applies, and in CI one of them, another one each day, is built and caught."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.campaigns.planted import PATCHES, applies, attempt, names, table

_DAILY = 1
_RUNS_IN_SECONDS = 900


def _todays() -> list[str]:
    quick = [name for name in names() if not str(table()[name]["tests"]).startswith("['tsan:")]
    first = datetime.now(UTC).toordinal() * _DAILY
    return [quick[(first + i) % len(quick)] for i in range(_DAILY)]


def test_there_are_twenty_and_each_has_its_row() -> None:
    assert len(names()) >= 20
    assert set(names()) == set(table())
    for name, row in table().items():
        for test in row["tests"]:  # type: ignore[attr-defined]
            assert Path(PATCHES.parents[2], str(test).removeprefix("tsan:")).exists(), name


@pytest.mark.parametrize("name", names())
def test_it_applies(name: str) -> None:
    assert applies(name) == ""


@pytest.mark.skipif(not os.environ.get("CI"), reason="builds a changed tree: CI does it, and `make planted` for all")
@pytest.mark.timeout(_RUNS_IN_SECONDS)
def test_todays_are_caught() -> None:
    for name in _todays():
        verdict, why = attempt(name)
        assert verdict == "caught", f"{name}: {why}"
