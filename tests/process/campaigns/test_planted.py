"""Every planted bug still applies, and in CI one of them, another one each day, is built and caught."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.campaigns.planted import PATCHES, applies, attempt, ended_whole, names, table

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


@pytest.mark.parametrize("ends", [True, False])
def test_processes_that_tests_leave_behind_are_ended(tmp_path: Path, ends: bool) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    program = f"""
import os, time
os.open({str(fifo)!r}, os.O_WRONLY)
if os.fork() == 0:
    os.closerange(0, 3)
    time.sleep(600)
time.sleep({0 if ends else 600})
"""
    done = ended_whole([sys.executable, "-c", program], tmp_path, 60.0 if ends else 3.0)
    assert (done is None) is not ends
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b"", "nobody holds the other end any more"
    os.close(reader)


@pytest.mark.skipif(not os.environ.get("CI"), reason="builds a changed tree: CI does it, and `make planted` for all")
@pytest.mark.timeout(_RUNS_IN_SECONDS)
def test_todays_are_caught() -> None:
    for name in _todays():
        verdict, why = attempt(name, elsewhere=False)
        assert verdict == "caught", f"{name}: {why}"
