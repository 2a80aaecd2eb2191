"""The newest events of a hub: bounded, numbered, and a slow reader hears how many it has missed."""

from __future__ import annotations

from dataproxy.hub.clients import End, Identity
from dataproxy.hub.overview.events import KINDS, Events


def numbers(events: Events, after: int, most: int = 100) -> tuple[list[int], int, int]:
    """Return the numbers of a page, where the next one begins, and what was missed."""
    page = events.after(after, most)
    return [one.number for one in page.events], page.next, page.missed


def filled(count: int, most: int = 4) -> Events:
    events = Events(most, lambda: 1_700_000_000_000)
    for i in range(count):
        events.add("reset", group=f"g{i}")
    return events


def test_a_reader_goes_on_behind_the_last_number_that_it_knows() -> None:
    events = filled(3)
    assert numbers(events, 0) == ([1, 2, 3], 3, 0)
    assert numbers(events, 1, most=1) == ([2], 2, 0)
    assert numbers(events, 3) == ([], 3, 0)
    events.add("reset", group="later")
    assert numbers(events, 3) == ([4], 4, 0)


def test_a_slow_reader_is_told_how_many_it_has_missed_and_memory_is_bounded() -> None:
    events = filled(10)
    assert numbers(events, 2) == ([7, 8, 9, 10], 10, 4)
    assert numbers(events, 6) == ([7, 8, 9, 10], 10, 0)
    assert numbers(events, 10) == ([], 10, 0)


def test_a_number_of_an_earlier_hub_begins_with_what_is_kept() -> None:
    assert numbers(filled(2), 500) == ([1, 2], 2, 0)
    assert numbers(filled(0), 500) == ([], 0, 0)
    assert numbers(filled(9), 500) == ([6, 7, 8, 9], 9, 0)


def test_an_event_is_told_with_its_time_and_fields_and_long_texts_are_cut() -> None:
    events = filled(0)
    events.add("idle", client="c" * 1000, queues=[1, 2])
    (event,) = events.after(0, 1).events
    assert event.to_json() == {
        "number": 1, "time_ms": 1_700_000_000_000, "event": "idle", "client": "c" * 256, "queues": [1, 2],
    }  # fmt: skip


def test_clients_come_and_go_and_are_counted_by_the_reason() -> None:
    events = filled(0)
    who = Identity("rocketmq", "consumer", "c1", "g", "10.0.0.1:5")
    events.client(who, None)
    events.client(who, End.SILENT)
    came, gone = events.after(0, 10).events
    assert (came.kind, gone.kind) == ("came", "gone")
    assert came.fields == {
        "protocol": "rocketmq", "role": "consumer", "client": "c1", "group": "g", "address": "10.0.0.1:5",
    }  # fmt: skip
    assert gone.fields["why"] == "it was silent for too long"
    assert events.ends() == {"left": 0, "closed": 0, "silent": 1, "evicted": 0, "forgotten": 0}
    assert events.counts() == {**dict.fromkeys(KINDS, 0), "came": 1, "gone": 1}
