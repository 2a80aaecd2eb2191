"""Offsets of consumer groups are part of the store: they survive its hubs, and administration wins over members."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dataproxy.hub import Hub
from dataproxy.hub.tubemq.service import Service
from tests.support.rawclient import INDEX, Connection, Reader, Sender, bodies

Raw = Callable[[Hub], Connection]
Start = Callable[..., Hub]


def filled(start_hub: Start, raw: Raw, path: Path, count: int, **options: object) -> Hub:
    hub = start_hub(path, tubemq_port=0, **options)
    connection = raw(hub)
    sender = Sender(connection, connection, "demo")
    for i in range(count):
        assert sender.send(0, b"%d" % i)["errCode"] == 200
    return hub


def service_of(hub: Hub) -> Service:
    assert hub._tubemq is not None
    return hub._tubemq


def offset_at(hub: Hub, raw: Raw, group: str = "g", read_status: int = 0) -> int:
    """Return where a group begins, in messages."""
    answer = Reader(raw(hub), "demo", group).register(read_status)
    assert answer.errCode == 200
    return int(answer.currOffset) // INDEX


@pytest.mark.parametrize("how", ["commit", "get", "unregister"])
def test_a_confirm_survives_the_hub(start_hub: Start, raw: Raw, tmp_path: Path, how: str) -> None:
    hub = filled(start_hub, raw, tmp_path / "s", 5)
    one = Reader(raw(hub), "demo", "g")
    one.register()
    assert len(bodies(one.get())) == 5
    if how == "commit":
        assert one.commit()["errCode"] == 200
    elif how == "get":
        assert one.get(consumed=True)["errCode"] == 404
    else:
        assert one.unregister(0).errCode == 200
    hub.close()
    again = filled(start_hub, raw, tmp_path / "s", 0)
    assert offset_at(again, raw) == 5
    assert offset_at(again, raw, "other") == 0


def test_where_a_group_begins_is_kept_too(start_hub: Start, raw: Raw, tmp_path: Path) -> None:
    hub = filled(start_hub, raw, tmp_path / "s", 5)
    assert offset_at(hub, raw, "g", 1) == 5
    hub.close()
    again = filled(start_hub, raw, tmp_path / "s", 2)
    assert offset_at(again, raw, "g", 1) == 5


def test_what_is_not_confirmed_comes_again(start_hub: Start, raw: Raw, tmp_path: Path) -> None:
    hub = filled(start_hub, raw, tmp_path / "s", 5)
    one = Reader(raw(hub), "demo", "g")
    one.register()
    assert len(bodies(one.get())) == 5
    hub.close()
    assert offset_at(filled(start_hub, raw, tmp_path / "s", 0), raw) == 0


def test_a_reset_wins_over_the_confirm_of_a_member(start_hub: Start, raw: Raw, tmp_path: Path) -> None:
    hub = filled(start_hub, raw, tmp_path / "s", 5)
    one = Reader(raw(hub), "demo", "g")
    one.register()
    assert len(bodies(one.get())) == 5
    service = service_of(hub)
    assert service.registrations.reset(b"g", b"demo", 0, 2 * INDEX)
    assert service.registrations.flush() == 0
    assert one.commit()["currOffset"] == 2 * INDEX
    assert bodies(one.get(consumed=True)) == [b"2", b"3", b"4"]
    hub.close()
    assert offset_at(filled(start_hub, raw, tmp_path / "s", 0), raw) == 2


def test_a_group_can_be_forgotten(start_hub: Start, raw: Raw, tmp_path: Path) -> None:
    hub = filled(start_hub, raw, tmp_path / "s", 5)
    one = Reader(raw(hub), "demo", "g")
    one.register()
    one.get()
    one.commit()
    registrations = service_of(hub).registrations
    assert registrations.forget(b"g", b"demo", 0) == 410
    assert registrations.forget(b"g", b"demo", 1) == 411
    one.unregister()
    assert registrations.forget(b"g", b"demo", 0) == 200
    assert (registrations.flush(), registrations.found()) == (0, [])
    hub.close()
    again = filled(start_hub, raw, tmp_path / "s", 0)
    assert service_of(again).registrations.found() == []
    assert offset_at(again, raw) == 0
    again.close()
    assert offset_at(filled(start_hub, raw, tmp_path / "s", 0), raw) == 0


def test_confirms_go_on_when_the_store_is_full(start_hub: Start, raw: Raw, tmp_path: Path) -> None:
    hub = start_hub(tmp_path / "s", tubemq_port=0, max_store_bytes=1 << 20)
    connection = raw(hub)
    sender = Sender(connection, connection, "demo")
    count = 0
    while sender.send(0, b"." * 90_000)["errCode"] == 200:
        count += 1
    one = Reader(raw(hub), "demo", "g")
    one.register()
    read = 0
    while read < count:
        read += len(bodies(one.get()))
        assert one.commit()["currOffset"] == read * INDEX
    assert sender.send(0, b"." * 90_000)["errCode"] != 200
    hub.close()
    assert offset_at(filled(start_hub, raw, tmp_path / "s", 0, max_store_bytes=1 << 20), raw) == count


def test_a_store_of_before_gets_its_offsets_when_a_hub_opens_it(start_hub: Start, raw: Raw, tmp_path: Path) -> None:
    start_hub(tmp_path / "s").close()
    hub = filled(start_hub, raw, tmp_path / "s", 3)
    assert offset_at(hub, raw) == 0
