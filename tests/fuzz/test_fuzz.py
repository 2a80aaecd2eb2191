"""A short, fixed run of every fuzz target (FUZZ_SECONDS: so long instead), and proof that the fuzzer finds things."""

import os
import random

import pytest

from tests.fuzz import (
    arrow,
    awaits,
    bombs,
    buffers,
    container,
    engine,
    faults,
    frames,
    http,
    items,
    options,
    reply,
    report,
    request,
    rockethub,
    rocketmq,
    rocketport,
    snappy,
    tubemq,
    tubereply,
    v1,
)

TARGETS = {
    "arrow": arrow,
    "awaits": awaits,
    "bombs": bombs,
    "buffers": buffers,
    "container": container,
    "faults": faults,
    "frames": frames,
    "http": http,
    "items": items,
    "options": options,
    "reply": reply,
    "report": report,
    "request": request,
    "rockethub": rockethub,
    "rocketmq": rocketmq,
    "rocketport": rocketport,
    "snappy": snappy,
    "tubemq": tubemq,
    "tubereply": tubereply,
    "v1": v1,
}
#: Runs of targets whose one check is long.
SHORT = {"bombs": 50, "rockethub": 600, "rocketport": 1500}


@pytest.mark.parametrize("name", TARGETS)
def test_no_finding(name):
    target = TARGETS[name]
    seconds = float(os.environ.get("FUZZ_SECONDS", "0"))
    if seconds:
        assert engine.run(target.check, target.SEEDS, seconds=seconds, seed=random.randrange(1 << 32)) > 0
    else:
        runs = SHORT.get(name, 4000)
        assert engine.run(target.check, target.SEEDS, runs=runs, seed=1) == runs


def test_runs_are_repeatable():
    seeds = [b"abcdefgh" * 4, b"12345678"]
    streams = []
    for _ in range(2):
        seen = []
        engine.run(seen.append, seeds, runs=200, seed=7)
        streams.append(seen)
    assert streams[0] == streams[1]
    assert streams[0][:2] == seeds
    assert len(set(streams[0])) > 150


def test_a_broken_rule_is_reported_with_its_input():
    def check(data):
        assert b"\x26" not in data

    with pytest.raises(engine.Finding, match="AssertionError") as info:
        engine.run(check, [b"\0" * 16], runs=5000)
    assert b"\x26" in info.value.data
    assert info.value.data.hex() in str(info.value)


def test_time_bounds_a_run():
    assert engine.run(lambda data: None, [b"x"], seconds=0.0) == 0


def test_changes_are_bounded():
    rng = random.Random(3)
    data = b"x" * 4000
    for _ in range(300):
        data = engine.mutate(data, [b"y" * 5000], rng)
        assert len(data) <= 4096
