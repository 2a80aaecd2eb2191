"""Divisions of a group's partitions: blocks, named partitions, and as few moves as possible."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from dataproxy.hub.tubemq.groups.balance import Division, Share, as_named, blocks, keep_and_even
from dataproxy.wire.tubemq.texts import Broker, Partition

VECTORS = json.loads((Path(__file__).parents[3] / "data" / "golden" / "tubemq.json").read_text())
BROKER = Broker(1, "10.0.0.1", 8123)


def partitions(topic: str, numbers: range | list[int], broker: Broker = BROKER) -> list[Partition]:
    """Return partitions of a topic."""
    return [Partition(broker, topic, i) for i in numbers]


def share(client: str, held: list[Partition] | None = None, **named: int) -> Share:
    """Return a member; the names of offsets have ``_`` for ``:`` in the keys."""
    return Share(client, frozenset(held or ()), {key.replace("_", ":"): offset for key, offset in named.items()})


def kept(members: list[Share], there: list[Partition], seed: int = 1, **moves: Any) -> Division:
    """Divide among those who hold something."""
    return keep_and_even(members, there, moves=moves.get("moves", {}), source=random.Random(seed))


def numbers(division: Division) -> dict[str, list[int]]:
    """Return the numbers of each member's partitions."""
    return {client: sorted(one.id for one in held) for client, held in division.items()}


@pytest.mark.parametrize("vector", VECTORS["bulk_assign"], ids=lambda vector: len(vector["partitions"]))
def test_a_first_division_is_in_blocks(vector: dict[str, Any]) -> None:
    members = [share(client) for client in vector["consumers"]]
    assert numbers(blocks(members, partitions("t", vector["partitions"]))) == vector["result"]


def test_each_topic_is_divided_by_itself() -> None:
    found = blocks([share("a"), share("b")], partitions("s", [0]) + partitions("t", [0, 1, 2]))
    assert {client: sorted((one.topic, one.id) for one in held) for client, held in found.items()} == {
        "a": [("s", 0), ("t", 0), ("t", 1)],
        "b": [("t", 2)],
    }


@pytest.mark.parametrize(
    ("larger", "offsets", "winner"),
    [
        (True, (28, 56), "b"),
        (True, (56, 28), "a"),
        (True, (28, 28), "b"),
        (False, (28, 56), "a"),
        (False, (56, 28), "b"),
        (False, (28, 28), "a"),
    ],
)
def test_who_gets_a_partition_that_two_members_name(larger: bool, offsets: tuple[int, int], winner: str) -> None:
    members = [share(client, None, **{"1_t_0": offset}) for client, offset in zip("ab", offsets, strict=True)]
    found = as_named(members, partitions("t", [0]), larger_wins=larger, source=random.Random(1))
    assert numbers(found) == {client: [0] if client == winner else [] for client in "ab"}


def test_what_nobody_names_goes_to_somebody() -> None:
    members = [share("a", None, **{"1_t_0": 0}), share("b")]
    found = as_named(members, partitions("t", range(50)), larger_wins=True, source=random.Random(1))
    assert 0 in numbers(found)["a"]
    assert sorted(numbers(found)["a"] + numbers(found)["b"]) == list(range(50))
    assert all(numbers(found).values())


def test_everybody_keeps_what_is_held_while_something_is_given_out() -> None:
    there = partitions("t", range(8))
    found = kept([share("a", there[:6]), share("b")], there)
    assert numbers(found) == {"a": [0, 1, 2, 3, 4, 5], "b": [6, 7]}


def test_what_nobody_holds_goes_to_who_has_the_least() -> None:
    there = partitions("t", range(9))
    for seed in range(20):
        found = kept([share("a", there[:3]), share("b", there[3:5]), share("c", there[5:6])], there, seed)
        assert {client: len(held) for client, held in found.items()} == {"a": 3, "b": 3, "c": 3}
    ends = {tuple(numbers(kept([share("a"), share("b")], there[:1], seed))["a"]) for seed in range(20)}
    assert ends == {(), (0,)}, "of several with the least, chance decides"


def test_shares_are_evened_with_as_few_moves_as_possible() -> None:
    there = partitions("t", range(7))
    found = kept([share("a", there[:5]), share("b", there[5:]), share("c")], there)
    assert numbers(found) == {"a": [0, 1, 2], "b": [5, 6], "c": [3, 4]}


def test_even_shares_stay() -> None:
    there = partitions("t", range(5))
    for one, other in ((there[:3], there[3:]), (there[:2], there[2:])):
        found = kept([share("a", one), share("b", other)], there)
        assert found == {"a": set(one), "b": set(other)}


def test_a_partition_that_is_there_no_more_is_nobodys() -> None:
    there = partitions("t", range(4))
    found = kept([share("a", there[:2]), share("b", there[2:])], there[:3])
    assert numbers(found) == {"a": [0, 1], "b": [2]}


def test_of_two_that_hold_a_partition_one_keeps_it() -> None:
    there = partitions("t", range(2))
    assert numbers(kept([share("b", there), share("a", there[:1])], there)) == {"a": [0], "b": [1]}


def test_a_move_comes_first_and_is_not_evened_away() -> None:
    there = partitions("t", range(4))
    members = [share("a", there[:2]), share("b", there[2:])]
    found = kept(members, there, moves={there[3]: "a"})
    assert numbers(found) == {"a": [0, 3], "b": [1, 2]}
    assert numbers(kept(members, there, moves={there[3]: "nobody"})) == {"a": [0, 1], "b": [2, 3]}
    assert numbers(kept(members, there, moves=dict.fromkeys(there, "a"))) == {"a": [0, 1, 2, 3], "b": []}


@pytest.mark.parametrize("seed", range(200))
def test_any_group_gets_everything_once_and_is_even_in_two_rounds(seed: int) -> None:
    source = random.Random(seed)
    there = partitions("t", range(source.randrange(1, 30))) + partitions("u", range(source.randrange(5)))
    clients = [f"c{i}" for i in range(source.randrange(1, 9))]
    held: dict[str, set[Partition]] = {client: set() for client in clients}
    for one in [*there, *partitions("gone", range(3))]:
        for _ in range(source.choice((0, 1, 1, 2))):
            held[source.choice(clients)].add(one)
    found: Division = held
    for _ in range(2):
        members = [Share(client, frozenset(found[client]), {}) for client in source.sample(clients, len(clients))]
        found = keep_and_even(members, there, moves={}, source=source)
        assert sorted(one for each in found.values() for one in each) == sorted(there)
    counts = [len(each) for each in found.values()]
    assert max(counts) - min(counts) <= 1
    members = [Share(client, frozenset(held), {}) for client, held in found.items()]
    assert keep_and_even(members, there, moves={}, source=source) == found, "what is even stays"
