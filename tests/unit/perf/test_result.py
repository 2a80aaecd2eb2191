"""Results of load tests: when they are valid, what reports say of them, and the way through JSON."""

import json
import math
from typing import Any

import pytest

from dataproxy import ConfigError
from dataproxy._core.perf.histogram import Histogram
from dataproxy.perf import Result, Second, read_result, text_report
from dataproxy.perf.html import html_report
from dataproxy.perf.thresholds import parse_thresholds

COUNTS = {"due": 1000, "accepted": 1000, "refused": 0, "delivered": 1000, "failed": 0, "expired": 0, "dropped": 0,
          "blocked": 0.0, "pending": 0, "retries": 0, "duplicates_possible": 0}  # fmt: skip
LOAD = {"target": "tcp://h:1", "plan": "500:2s", "arrivals": "constant", "seed": 1, "plan_seconds": 2.0, "group": "g",
        "path": "send_nowait", "threads": 1, "streams": 1, "keys": 0, "size": "100", "batch": 1,
        "closed_loop": False}  # fmt: skip


def result_of(latencies: list[tuple[int, int]], lags: list[tuple[int, int]], **other: Any) -> Result:
    """Return a result with these histograms (us)."""
    series = [Second(1.0, 1.0, 500, 500, 500, 0.001, 0.002, 0.003, 0.003, 0.0001, 1, 0, 0.5, 1 << 20, 500, 0.1, 9)]
    values = {
        "started": "2026-01-01T00:00:00+00:00", "load": LOAD, "options": {}, "machine": {"cores": 2}, "planned": 1000.0,
        "seconds": 2.0, "max_lag": 0.001, "counts": COUNTS, "stored": 1000, "stopped": "", "series": series,
    }  # fmt: skip
    found = {"latencies": Histogram.of_counts(latencies), "lags": Histogram.of_counts(lags)}
    return Result(**{**values, **found, **other})


def test_a_generator_that_kept_to_its_plan_is_believed() -> None:
    result = result_of([(2000, 990), (9000, 10)], [(50, 995), (1000, 5)])
    assert result.invalid == []
    report = text_report(result)
    assert report.startswith("valid") and "p99.99" in report
    assert "INVALID" not in report


@pytest.mark.parametrize("late", [0.5, 0.1, 0.011])
def test_a_generator_that_was_late_by_its_own_fault_shows_no_percentiles(late: float) -> None:
    slow = round(1000 * late)
    result = result_of([(5_300_000, slow), (48_000, 1000 - slow)], [(5_200_000, slow), (10, 1000 - slow)])
    report = text_report(result)
    assert report.splitlines()[0].startswith("INVALID: ")
    assert not [line for line in report.splitlines() if line.strip().startswith(("p50", "p99", "max"))]


def test_lateness_below_a_tenth_of_the_latency_is_allowed() -> None:
    assert result_of([(100_000, 1000)], [(9_000, 1000)]).invalid == []
    assert result_of([(100_000, 1000)], [(11_000, 1000)]).invalid != []
    assert result_of([(100_000, 1000)], [(11_000, 1000)], max_lag=0.02).invalid == []


def test_a_run_without_results_is_not_valid() -> None:
    assert result_of([], []).invalid == ["no message has a result"]


def test_the_report_says_what_of_a_callers_work_is_in_the_path() -> None:
    words = {
        "send_nowait": "path send_nowait by compiled code without the interpreter",
        "send_batch": "path send_batch called from Python",
        "asyncio": "path asyncio: AsyncProducer.send in a task each, event loop uvloop",
    }
    for path, text in words.items():
        result = result_of([(2000, 990)], [(50, 990)], load={**LOAD, "path": path, "loop": "uvloop"})
        assert text in text_report(result)


def test_a_closed_loop_says_so_first() -> None:
    result = result_of([(1000, 10)], [], load={**LOAD, "closed_loop": True})
    assert text_report(result).startswith("CLOSED LOOP")


def test_percentiles_say_how_many_samples_are_behind_them() -> None:
    found = {p.percent: (p.seconds, p.behind) for p in result_of([(i, 1) for i in range(1, 1001)], []).percentiles()}
    assert found == {50: (0.0005, 500), 90: (0.0009, 100), 99: (0.00099, 10), 99.9: (0.000999, 1), 99.99: (0.001, 0)}


def test_the_report_is_the_same_after_json() -> None:
    result = result_of([(2_000, 990), (9_001, 10), (5_000_000, 1)], [(51, 995)], stored=999)
    text = json.dumps(result.as_json())
    again = read_result(text)
    assert text_report(again) == text_report(result)
    assert json.dumps(again.as_json()) == text
    assert again.series == result.series


@pytest.mark.parametrize(
    "change",
    [{"schema": "dataproxy.perf/2"}, {"latencies": [[1, -5]]}, {"latencies": 7}, {"lags": [[1]]},
     {"series": [{"at": 1}]}, {"latencies": [["a", 1]]}, {"latencies": [[1 << 80, 1]]}],
)  # fmt: skip
def test_json_that_is_no_result_is_refused(change: dict[str, Any]) -> None:
    values = {**result_of([(1, 1)], []).as_json(), **change}
    with pytest.raises(ConfigError, match=r"not (the|a complete) result of a load test"):
        read_result(json.dumps(values))


def fields(values: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of each value, of lists that of the first item."""
    found = [path] if path else []
    if isinstance(values, dict):
        return found + [one for key in values for one in fields(values[key], (*path, key))]
    return found + (fields(values[0], (*path, 0)) if isinstance(values, list) and values else [])


def edited(values: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return ``values`` with another one at ``path``; None instead of a list of one takes it away."""
    values = json.loads(json.dumps(values))
    place = values
    for key in path[:-1]:
        place = place[key]
    if new is None:
        del place[path[-1]]
    else:
        place[path[-1]] = new[0]
    return values


WHOLE = result_of([(2_000, 990)], [(51, 995)]).as_json()
STRANGE = [None, -1, 0, 1.5, "x", "\x1b[31m", [], {}, True, 1e400, math.nan, 10**30, [[1, 2]], -(10**18)]


@pytest.mark.parametrize("path", fields(WHOLE), ids=lambda path: ".".join(map(str, path)))
def test_a_result_that_somebody_edited_is_shown_or_refused_in_words(path: tuple[Any, ...]) -> None:
    for new in [None, *([value] for value in STRANGE)]:
        try:
            result = read_result(json.dumps(edited(WHOLE, path, new)))
        except ConfigError:
            continue
        assert "\x1b" not in text_report(result)
        assert "\x1b" not in html_report(result)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"schema": "dataproxy.perf/1"}', "\x00"])
def test_text_that_is_no_result_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"not (the|a complete) result of a load test") as caught:
        read_result(text)
    assert str(caught.value).count("result of a load test") == str(caught.value).count("[CONFIG]") == 1


def test_what_was_not_delivered_is_told() -> None:
    counts = {**COUNTS, "delivered": 990, "failed": 7, "expired": 3, "refused": 5}
    report = text_report(result_of([(1000, 1000)], [(10, 1000)], counts=counts))
    assert "not delivered: 7 failed, 3 expired, 5 refused because the buffer was full" in report
    assert "+10 against what was delivered" in report


def test_what_the_hub_has_not_stored_is_missing() -> None:
    latencies = [(1000, 1000)]
    assert [result_of(latencies, [], stored=stored).missing for stored in (1000, 997, 1001, None)] == [0, 3, 0, 0]
    assert "997, -3 against what was delivered" in text_report(result_of(latencies, [(1, 1)], stored=997))


def test_thresholds_name_what_was_passed() -> None:
    result = result_of([(2_000, 990), (9_000, 10)], [(50, 1000)])
    assert parse_thresholds(["p50=3ms", "p99.9=10ms"], 400).problems(result) == []
    passed = parse_thresholds(["p50=1ms", "p99.9=5ms"], 600).problems(result)
    assert [line.split()[0] for line in passed] == ["p50", "p99.9", "500"]


def test_a_run_that_is_not_valid_keeps_to_no_threshold() -> None:
    result = result_of([(100_000, 1000)], [(90_000, 1000)])
    assert parse_thresholds(["p50=1h"]).problems(result) == ["thresholds cannot be judged: the run is not valid"]
    assert parse_thresholds([]).problems(result) == []


@pytest.mark.parametrize("wrong", ["p99", "99=1ms", "p101=1ms", "p-1=1ms", "p99=0s", "p99=fast", "=1ms", "pnan=1s"])
def test_bounds_that_are_none_are_refused(wrong: str) -> None:
    with pytest.raises(ConfigError):
        parse_thresholds([wrong])
    with pytest.raises(ConfigError):
        parse_thresholds(["p99=1ms", "p99=2ms"])
