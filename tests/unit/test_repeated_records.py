"""Equal warnings come at most once in ten seconds, and say how many were left out."""

from __future__ import annotations

import time

import pytest

from dataproxy.logs import Repeats, SparingLog, logger


def test_equal_warnings_come_seldom_and_others_do_not_wait_for_them(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    log = SparingLog(logger("rocketmq"))
    for _ in range(21):
        log.warning("no connection to %s: %d", "a", 7)
        now[0] += 0.5
        log.warning("no connection to %s: %d", "b", 7)
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "no connection to a: 7", "no connection to b: 7", "no connection to a: 7 (19 more like this were not logged)",
        "no connection to b: 7 (19 more like this were not logged)",
    ]  # fmt: skip
    assert {(record.name, record.levelname, record.filename) for record in caplog.records} == {
        ("dataproxy.rocketmq", "WARNING", "test_repeated_records.py")
    }


def test_what_is_remembered_of_records_is_bounded() -> None:
    repeats = Repeats()
    for key in range(3000):
        assert repeats.count(key) == 0
    assert repeats.count(2999) is None and len(repeats._last) <= 1000
