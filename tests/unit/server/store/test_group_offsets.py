"""Positions of consumer groups in a durable store: the highest version wins, whatever order they come in."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataproxy._core.server.store.core import StoreCore
from dataproxy._core.server.tubemq.core import RegistrationsCore
from dataproxy.hub.reading.verify import verify_store
from tests.native.probe_feed import append_entries
from tests.native.probe_visits import append_offsets, stored_offsets


def test_a_lower_version_changes_nothing(tmp_path: Path) -> None:
    store = StoreCore(str(tmp_path))
    assert append_offsets(store, [("t", 0, "g", 280, 5), ("t", 1, "g", 28, 6), ("t", 0, "h", 56, 7)]) == ["ok"] * 3
    assert append_offsets(store, [("t", 0, "g", 560, 3), ("t", 1, "g", 84, 9)]) == ["ok"] * 2
    rows = [("t", 0, "g", 280, 5), ("t", 0, "h", 56, 7), ("t", 1, "g", 84, 9)]
    assert sorted(stored_offsets(store)) == rows
    assert append_offsets(store, [("t", 0, "g", 560, 3)]) == ["ok"]  # a commit of nothing
    assert append_entries(store, [("t", "s", b"x")]) == [(0, "ok")]  # the store is still its writer's
    store.close()
    again = StoreCore(str(tmp_path))
    assert sorted(stored_offsets(again)) == rows
    again.close()
    report = verify_store(str(tmp_path))
    assert (report.ok, report.group_offsets) == (True, 3)


def test_positions_and_messages_are_one_commit(tmp_path: Path) -> None:
    store = StoreCore(str(tmp_path))
    before = store.stats()["commits"]
    append_offsets(store, [("t", 0, "g", 28 * i, i) for i in range(1, 100)])
    assert stored_offsets(store) == [("t", 0, "g", 28 * 99, 99)]
    assert store.stats()["commits"] <= before + 1
    store.close()


def test_versions_go_on_after_a_restart(tmp_path: Path) -> None:
    store = StoreCore(str(tmp_path))
    append_offsets(store, [("t", 0, "g", 280, 1000), ("t", 0, "gone", -1, 2000)])
    store.close()
    again = StoreCore(str(tmp_path))
    table = RegistrationsCore(b"0123456789abcdef", 30_000_000, 1 << 20)
    table.attach(again, 0)
    assert [row[:5] for row in table.found()] == [(b"g", b"t", 0, b"", 280)]
    assert table.reset(b"gone", b"t", 0, 28)
    assert table.reset(b"g", b"t", 0, 0)
    again.close()  # commits what was sent
    last = StoreCore(str(tmp_path))
    found = {row[2]: row[3:] for row in stored_offsets(last)}
    last.close()
    assert (found["gone"][0], found["g"][0]) == (28, 0)
    assert min(version for _, version in found.values()) > 2000


def test_more_positions_than_registrations_may_have_are_an_error(tmp_path: Path) -> None:
    store = StoreCore(str(tmp_path))
    append_offsets(store, [("t", i, "g" * 1000, 28, i + 1) for i in range(100)])
    with pytest.raises(MemoryError, match="stored offsets of consumer groups"):
        RegistrationsCore(b"0123456789abcdef", 30_000_000, 10_000).attach(store, 0)
    store.close()
