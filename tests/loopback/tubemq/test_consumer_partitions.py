"""Partitions of a consumer: where reading starts, filters, pauses, positions and lags."""

from __future__ import annotations

import threading

import pytest

from dataproxy.consumer.stats import Lag
from dataproxy.errors import ConfigError
from tests.support.consumers import COMMIT, GET, Opener, drain, next_pack
from tests.support.tubeserver import TubeServer
from tests.support.waiting import eventually

INDEX = 28

# --- filters


def test_messages_of_other_types_with_the_same_hash_are_dropped_and_confirmed(tube: TubeServer, opened: Opener) -> None:
    tube.settings.pack_bytes = 1
    for kind in ("Aa", "BB", "BB", "other", "Aa"):
        tube.put("one", kind.encode(), attribute=f"$msgType$={kind}")
    consumer = opened({"one": ["Aa"]})
    assert drain(consumer, 2) == [b"Aa", b"Aa"]
    assert eventually(lambda: tube.confirmed("g", "one", 0) == 5 * INDEX)
    stats = consumer.stats()
    assert (stats.filtered, stats.broken, stats.messages.fetched) == (2, 0, 2)
    assert stats.packs.fetched == stats.packs.confirmed == 4  # the two that hold nothing, too


def test_each_topic_has_its_own_filters(tube: TubeServer, opened: Opener) -> None:
    for kind in ("a", "b", "c", ""):
        for topic in ("one", "three"):
            tube.put(topic, f"{topic}-{kind}".encode(), attribute=f"$msgType$={kind}" if kind else "")
    consumer = opened({"one": ["a", "b"], "three": []})
    wanted = {b"one-a", b"one-b", *(b"three-%b" % kind for kind in (b"a", b"b", b"c", b""))}
    assert set(drain(consumer, 6)) == wanted


def test_packs_without_a_wanted_message_are_never_seen(tube: TubeServer, opened: Opener) -> None:
    """The application's thread may not take one in the moment between two steps of the other thread."""
    tube.settings.pack_bytes = 1
    for _ in range(300):
        tube.put("one", b"", attribute="$msgType$=BB")
    tube.put("one", b"end", attribute="$msgType$=Aa")
    consumer = opened({"one": ["Aa"]})
    assert next_pack(consumer).bodies() == [b"end"]


# --- start


@pytest.mark.parametrize(("start", "wanted"), [("earliest", b"old"), ("latest", b"new"), ("end", b"new")])
def test_where_a_group_begins_that_has_no_offset(tube: TubeServer, opened: Opener, start: str, wanted: bytes) -> None:
    tube.put("one", b"old")
    consumer = opened(start=start)
    assert eventually(lambda: consumer.assignment() == ["1:one:0"])
    tube.put("one", b"new")
    assert next_pack(consumer).bodies()[0] == wanted


@pytest.mark.parametrize(("start", "wanted"), [("earliest", b"2"), ("latest", b"2"), ("end", b"new")])
def test_where_a_group_goes_on_that_has_an_offset(tube: TubeServer, opened: Opener, start: str, wanted: bytes) -> None:
    tube.put("one", b"1")
    first = opened()
    drain(first, 1)
    first.close()
    tube.put("one", b"2")
    consumer = opened(start=start)
    assert eventually(lambda: consumer.assignment() == ["1:one:0"])
    tube.put("one", b"new")
    assert next_pack(consumer).bodies()[0] == wanted


def test_end_counts_for_the_first_time_alone(tube: TubeServer, opened: Opener) -> None:
    consumer = opened(start="end")
    assert eventually(consumer.assignment)
    tube.stop_broker()
    tube.put("one", b"meanwhile")
    tube.start_broker()
    assert drain(consumer, 1) == [b"meanwhile"]


# --- positions


def test_positions_and_lags(tube: TubeServer, opened: Opener) -> None:
    tube.settings.pack_bytes = 1
    for i in range(4):
        tube.put("one", b"%d" % i)
    consumer = opened()
    assert consumer.assignment() == [] or consumer.assignment() == ["1:one:0"]
    pack = next_pack(consumer)
    lag = consumer.lag()["1:one:0"]
    assert (consumer.position(), lag.position, lag.messages, lag.bytes) == ({"1:one:0": 0}, 0, 4, 3 * 53)
    pack.confirm()
    next_pack(consumer)
    assert consumer.position() == {"1:one:0": INDEX}
    assert consumer.lag()["1:one:0"].messages == 3
    assert consumer.lag() == consumer.stats().lags
    drain(consumer, 0)
    consumer.close()
    assert (consumer.assignment(), consumer.lag(), consumer.position()) == ([], {}, {})


def test_a_position_outside_of_the_store_is_moved_into_it(tube: TubeServer, opened: Opener) -> None:
    tube.settings.pack_bytes = 1
    for i in range(4):
        tube.put("one", b"%d" % i)
    consumer = opened()
    assert next_pack(consumer).bodies() == [b"0"]
    tube.trim("one", 3 * INDEX)
    consumer.close()
    assert drain(opened(), 1) == [b"3"]


# --- pauses


def test_a_paused_partition_gives_nothing_until_it_is_resumed(tube: TubeServer, opened: Opener) -> None:
    consumer = opened("three")
    assert eventually(lambda: len(consumer.assignment()) == 3)
    consumer.pause("1:three:1")
    # What was asked for before is answered before what is asked for now.
    asked = len([call for call in tube.calls if call.partition == 1])
    for i in range(3):
        tube.put("three", b"%d" % i, partition=i)
    assert sorted(drain(consumer, 2)) == [b"0", b"2"]
    tube.put("three", b"again", partition=0)
    assert drain(consumer, 1) == [b"again"]
    assert len([call for call in tube.calls if call.partition == 1 and call.method == GET]) <= asked + 1
    consumer.resume("1:three:1")
    assert drain(consumer, 1) == [b"1"]


def test_a_pause_of_all_gives_back_what_waits(tube: TubeServer, opened: Opener) -> None:
    for i in range(3):
        tube.put("three", b"%d" % i, partition=i)
    consumer = opened("three")
    assert eventually(lambda: consumer.stats().packs.held == 3)
    consumer.pause()
    assert eventually(lambda: consumer.stats().packs.rolled_back == 3)
    assert consumer.poll(0.05) is None
    consumer.pause()
    consumer.resume()
    assert sorted(drain(consumer, 3)) == [b"0", b"1", b"2"]


def test_a_pack_that_is_out_survives_a_pause(tube: TubeServer, opened: Opener) -> None:
    tube.settings.pack_bytes = 1
    for i in range(2):
        tube.put("one", b"%d" % i)
    consumer = opened()
    pack = next_pack(consumer)
    consumer.pause()
    pack.confirm()
    assert consumer.poll(0.05) is None
    consumer.resume()
    assert drain(consumer, 1) == [b"1"]


def test_a_pack_that_was_asked_for_before_the_pause_is_not_given_out(tube: TubeServer, opened: Opener) -> None:
    go = threading.Event()
    tube.put("one", b"a")
    tube.on(GET, ("hold", go))
    consumer = opened()
    assert eventually(lambda: tube.held == 1)
    consumer.pause()
    go.set()
    assert eventually(lambda: any(call.method == GET for call in tube.calls))
    assert consumer.poll(0.05) is None
    assert consumer.stats().packs.held == 0
    consumer.resume()
    assert drain(consumer, 1) == [b"a"]


def test_a_partition_can_be_given_back_while_it_is_paused(tube: TubeServer, opened: Opener) -> None:
    consumer = opened("three")
    assert eventually(lambda: len(consumer.assignment()) == 3)
    consumer.pause()
    other = opened("three")
    assert eventually(lambda: len(consumer.assignment()) + len(other.assignment()) == 3 and other.assignment())
    for i in range(3):
        tube.put("three", b"%d" % i, partition=i)
    assert len(drain(other, len(other.assignment()))) == len(other.assignment())


def test_partitions_that_are_not_assigned(opened: Opener) -> None:
    consumer = opened()
    assert eventually(consumer.assignment)
    for wrong in ("1:one:7", "", None, 5, ["1:one:0"], ("1:one:0",), b"1:one:0"):
        for method in (consumer.pause, consumer.resume):
            with pytest.raises(ConfigError, match="not assigned"):
                method(wrong)
    with pytest.raises(ConfigError, match="not assigned"):
        consumer.pause("1:one:0", "1:one:1")
    consumer.resume(*consumer.assignment())


# --- flow rules


def test_rules_of_the_group_make_a_consumer_slow(tube: TubeServer, opened: Opener) -> None:
    tube.set_rules(
        group='[{"type":3,"rule":[{"normFreqInMs":60000,"filterFreqInMs":60000,"minDataFilterFreqInMs":60000}]}]'
    )
    tube.settings.pack_bytes = 1
    for i in range(2):
        tube.put("one", b"%d" % i)
    consumer = opened()
    next_pack(consumer).confirm()
    assert consumer.poll(0.1) is None
    calls = [call.method for call in tube.calls if call.method in (GET, COMMIT)]
    assert calls[calls.index(COMMIT) :] == [COMMIT]  # not followed by a request for the second pack


def test_the_lag_of_a_partition_is_known_before_its_first_message(tube: TubeServer, opened: Opener) -> None:
    for i in range(3):
        tube.put("one", b"%d" % i)
    consumer = opened(prefetch_bytes="64KiB")
    assert drain(consumer, 3) == [b"0", b"1", b"2"]
    consumer.close()
    again = opened()
    assert eventually(again.assignment)
    assert eventually(lambda: again.lag() == {"1:one:0": Lag(3 * INDEX, 0, 0)}), again.lag()
