"""The table of faults decides: where, when, how often; and what a Fault refuses to be."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproxy._core.server.faults.core import ACTIONS, POINTS, FaultCore
from dataproxy.errors import ConfigError
from dataproxy.hub import KINDS, Fault
from tests.native.probe_faults import Connection, armed

DATA, BEAT, BYTES = POINTS["data"], POINTS["heartbeat"], POINTS["bytes"]


def firings(count: int, **rule: object) -> list[int]:
    """Return the numbers of the events, of so many, at which one rule fires."""
    core, connection = FaultCore(), Connection()
    core.add(action="no_reply", points=DATA, **rule)
    return [n for n in range(1, count + 1) if connection.judge(core, DATA)]


@given(
    after=st.integers(0, 12), every=st.integers(0, 6), first=st.integers(0, 20), times=st.integers(0, 5)
)  # fmt: skip
def test_counts_follow_their_definition(after, every, first, times):
    expected = [
        n
        for n in range(1, 41)
        if n > after and (not first or n - after <= first) and (every < 2 or (n - after) % every == 0)
    ]
    assert firings(40, after=after, every=every, first=first, times=times) == expected[: times or None]


def test_a_share_comes_from_its_seed():
    first = firings(2000, share=0.1, seed=3)
    assert firings(2000, share=0.1, seed=3) == first
    assert firings(2000, share=0.1, seed=4) != first
    assert 120 < len(first) < 280
    assert firings(50, share=1.0) == list(range(1, 51))
    assert firings(50, share=0.0, seed=1) == []


def test_places():
    core = FaultCore()
    core.add(action="no_reply", points=DATA, listener=1)
    core.add(action="delay", points=DATA, connection=7)
    core.add(action="slice", points=DATA, group=b"g", stream=b"s")
    core.add(action="foreign_id", points=BEAT)

    def actions(listener=0, number=1, group=b"", stream=b"", point=DATA):
        return Connection(listener, number).judge(core, point, group, stream).get("actions", 0)

    assert actions() == 0
    assert actions(listener=1) == ACTIONS["no_reply"]
    assert actions(number=7) == ACTIONS["delay"]
    assert actions(group=b"g") == 0
    assert actions(group=b"g", stream=b"s") == ACTIONS["slice"]
    assert actions(1, 7, b"g", b"s") == ACTIONS["no_reply"] | ACTIONS["delay"] | ACTIONS["slice"]
    assert actions(point=BEAT) == ACTIONS["foreign_id"]


def test_of_two_rules_with_one_action_the_later_holds():
    core, connection = FaultCore(), Connection()
    core.add(action="refuse", points=DATA, code=1, text=b"a long text")
    core.add(action="refuse", points=DATA, code=2, text=b"short")
    what = connection.judge(core, DATA)
    assert (what["code"], what["text"]) == (2, b"short")


def test_connections_counted_for_themselves():
    core = FaultCore()
    number = core.add(action="no_reply", points=DATA, each=True, after=2, first=1)
    connections = [Connection(0, n) for n in range(3)]
    fired = [bool(one.judge(core, DATA)) for _ in range(4) for one in connections]
    assert fired == [False] * 6 + [True] * 3 + [False] * 3
    assert core.counts(number) == (12, 3)


def test_counters_of_a_connection_outlive_many_other_rules():
    core, connection = FaultCore(), Connection()
    lasting = core.add(action="no_reply", points=DATA, each=True, after=100)
    for _ in range(100):
        passing = core.add(action="delay", points=DATA, each=True, after=1)
        assert not connection.judge(core, DATA)
        core.remove(passing)
    assert connection.judge(core, DATA)
    assert core.counts(lasting) == (101, 1)


def test_byte_triggers():
    core, connection = FaultCore(), Connection()
    core.add(action="close", points=BYTES, at_byte=10, stage=0)
    core.add(action="freeze", points=BYTES, at_byte=25)
    assert [connection.room(core, n) for n in (0, 9, 10, 24, 25)] == [10, 1, 15, 1, -1]
    assert connection.reached(core, 9) == {}
    assert connection.reached(core, 10)["actions"] == ACTIONS["close"]
    assert connection.reached(core, 25)["actions"] == ACTIONS["freeze"]
    assert connection.rate(core) == 0
    core.add(action="slow", points=BYTES, rate=5000)
    core.add(action="slow", points=BYTES, rate=300)
    assert connection.rate(core) == 300


def test_arming_and_taking_back():
    core, connection = FaultCore(), Connection()
    assert armed(core) == 0
    first = core.add(action="no_reply", points=DATA)
    second = core.add(action="no_reply", points=BEAT)
    assert armed(core) == DATA | BEAT
    connection.judge(core, DATA)
    assert core.remove(first) == (1, 1)
    assert armed(core) == BEAT
    assert connection.judge(core, DATA) == {}
    for method in (core.remove, core.counts):
        with pytest.raises(KeyError):
            method(first)
    assert core.counts(second) == (0, 0)


def test_a_full_table_and_texts_that_do_not_fit():
    core = FaultCore()
    for _ in range(64):
        core.add(action="no_reply", points=DATA)
    with pytest.raises(OverflowError):
        core.add(action="no_reply", points=DATA)
    core.remove(3)
    with pytest.raises(ValueError, match="256 bytes"):
        core.add(action="refuse", points=DATA, text=b"x" * 256)
    assert core.add(action="refuse", points=DATA, text=b"x" * 255) == 65
    assert Connection().judge(core, DATA)["text"] == b"x" * 255


@pytest.mark.parametrize(
    ("kind", "options", "text"),
    [
        ("drop_replies", {}, "did you mean 'drop_reply'"),
        ("Refuse", {}, "did you mean 'refuse'"),
        ("zzz", {}, "choose one of refuse,"),
        (7, {}, "no kind 7"),
        ("refuse", {}, "needs code"),
        ("refuse", {"code": 0}, "code=0"),
        ("refuse", {"code": True}, "code=True"),
        ("refuse", {"code": 1.0}, "whole number"),
        ("refuse", {"code": 114, "nht": 1}, "did you mean 'nth'"),
        ("refuse", {"code": 114, "message": "x" * 256}, "at most 255 bytes"),
        ("refuse", {"code": 114, "message": "a\0b"}, "without NUL"),
        ("stopped", {"code": 3}, "takes no code"),
        ("stopped", {"on": "heartbeat"}, "on='heartbeat'"),
        ("delay", {}, "needs seconds"),
        ("delay", {"seconds": float("nan")}, "seconds=nan"),
        ("delay", {"seconds": -1}, "seconds=-1"),
        ("drop_reply", {"nth": 2, "every": 3}, "together with every"),
        ("drop_reply", {"seed": 2}, "without share"),
        ("drop_reply", {"share": 1.5}, "share=1.5"),
        ("drop_reply", {"at_byte": 10}, "takes no at_byte"),
        ("drop_reply", {"group": 5}, "group=5"),
        ("drop_reply", {"group": "g", "on": "heartbeat"}, "takes no group"),
        ("drop_reply", {"listener": 64}, "listener=64"),
        ("drop_reply", {"per_connection": 1}, "per_connection=1"),
        ("duplicate", {"copies": 1}, "copies=1"),
        ("garbage", {"data": b""}, "data=b''"),
        ("garbage", {"data": "text"}, "data='text'"),
        ("corrupt", {"mask": 0}, "mask=0"),
        ("close", {"on": "bytes"}, "on bytes has no byte"),
        ("close", {"on": "connect", "stage": "after_store"}, "stage='after_store'"),
        ("close", {"stage": "later"}, "stage='later'"),
        ("freeze", {"side": "left"}, "side='left'"),
        ("load", {"load": 65535}, "load=65535"),
        ("kill", {"nth": 1}, "takes no nth"),
        ("kill", {"on": "data"}, "left out"),
        ("manager_down", {"listener": 0}, "takes no listener"),
        ("manager_down", {"at_byte": 1}, "takes no at_byte"),
    ],
)
def test_a_wrong_fault_says_what_is_wrong(kind, options, text):
    with pytest.raises(ConfigError, match=text):
        Fault._of(kind, options)


def test_every_kind_has_its_json():
    rng = random.Random(1)
    values = {"code": 114, "seconds": 1.5, "bytes_per_second": 100, "load": 7, "data": b"\0\xff"}
    for kind in KINDS.values():
        needed = {name: values[name] for name, default in kind.parameters.items() if default is None}
        fault = Fault._of(kind.name, {**needed, **({"nth": rng.randint(1, 9)} if kind.on == ("data",) else {})})
        assert Fault.from_json(json.loads(json.dumps(fault.to_json()))) == fault
        for name, default in kind.parameters.items():
            assert fault._parameter(name) == (default if default is not None else values[name])
