"""The curves of rate against latency: which message was a pack's first, which rates are measured, the picture."""

import json

import pytest

from benchmarks.clients.openloop import Turns
from benchmarks.curve import CURVES, NAMES, draw, rates_below


@pytest.mark.parametrize("streams", [1, 7, 1000])
def test_earlier_messages_of_a_stream_are_found(streams):
    turns = Turns(streams)
    last = 2 * len(turns.order) + 500
    sent: dict[int, list[int]] = {}
    for number in range(last + 1):
        sent.setdefault(turns.stream(number), []).append(number)
    own = sent[turns.stream(last)]
    assert [turns.earlier(last, by) for by in range(len(own))] == own[::-1]


def test_rates_end_with_half_of_the_ceiling():
    assert rates_below(120_000.0) == [1_000, 5_000, 20_000, 100_000, 120_000]
    assert rates_below(105_000.0) == [1_000, 5_000, 20_000, 105_000]


def curves(late):
    points = [{"rate": rate, "p50_us": [90.0, 110.0], "p99_us": [late, late]} for rate in (1_000.0, 5_000.0)]
    return {"curves": [{"streams": streams, "points": points} for streams in (1, 1_000)]}


def test_one_curve_or_two_are_drawn(tmp_path):
    first, both = tmp_path / "first.png", tmp_path / "both.png"
    draw({"before": curves(200.0)}, first)
    draw({"before": curves(200.0), "after": curves(150.0)}, both)
    assert first.read_bytes().startswith(b"\x89PNG")
    assert first.read_bytes() != both.read_bytes()


@pytest.mark.parametrize("path", sorted(CURVES.glob("*.json")), ids=lambda path: path.stem)
def test_kept_curves_say_what_was_measured(path):
    content = json.loads(path.read_text())
    assert content["name"] == path.stem in NAMES
    for curve in content["curves"]:
        assert len(curve["points"]) >= 6
        for point in curve["points"]:
            assert len(point["p99_us"]) == content["settings"]["rounds"]
