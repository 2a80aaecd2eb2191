"""Members of TubeMQ that hold partitions and ask for nothing."""

from __future__ import annotations

from typing import Any

from dataproxy.hub.tubemq.idle import IDLE_S, Idling

US = 1_000_000


class Registered:
    """Registrations, as much of them as the alarm needs."""

    def __init__(self) -> None:
        self.rows: list[tuple[bytes, bytes, int, bytes, int, int]] = []

    def idle(self, before_us: int) -> list[tuple[bytes, bytes, int, bytes, int, int]]:
        """Return who has asked for nothing since a time."""
        return [row for row in self.rows if row[5] < before_us]


def made(extents: dict[int, tuple[int, int]]) -> tuple[Idling, Registered, list[tuple[str, dict[str, Any]]]]:
    told: list[tuple[str, dict[str, Any]]] = []
    registered = Registered()
    return Idling(registered, lambda _: extents, lambda kind, **fields: told.append((kind, fields))), registered, told


def test_a_member_that_asks_for_nothing_is_told_with_all_its_partitions() -> None:
    idling, registered, told = made({0: (0, 280), 1: (28, 56), 2: (0, 28)})
    registered.rows = [
        (b"g", b"t", 0, b"c", 140, 10 * US), (b"g", b"t", 1, b"c", -1, 20 * US), (b"g", b"t", 2, b"c", 28, 0),
    ]  # fmt: skip
    idling.look(IDLE_S + 5)
    assert told == []
    idling.look(IDLE_S + 30)
    assert told == [
        ("idle", {"protocol": "tubemq", "group": "g", "client": "c", "topic": "t", "address": "", "queues": [0, 1],
                  "behind": 6})
    ]  # fmt: skip
    assert [one.since for one in idling.now()] == [10.0]
    registered.rows = []
    idling.look(IDLE_S + 40)
    assert [kind for kind, _ in told] == ["idle", "pulls again"]


def test_it_looks_every_ten_seconds() -> None:
    idling, registered, told = made({0: (0, 28)})
    idling.look(1000.0)
    registered.rows = [(b"g", b"t", 0, b"c", 0, 0)]
    idling.look(1009.0)
    assert told == []
    idling.look(1010.0)
    assert [kind for kind, _ in told] == ["idle"]
