"""The whole line at one hub: what any producer sends, any reader reads, our own clients among them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dataproxy import Consumer, Producer, inlong_records
from dataproxy.cli.app import app
from dataproxy.hub import Hub
from tests.support.consumers import next_pack, quick_members
from tests.support.waiting import SECONDS, eventually

INLONG = 200


@pytest.fixture
def consumer(hub: Hub) -> Iterator[Callable[..., Consumer]]:
    """Return a function that opens members of groups, which are closed after the test."""
    opened = []

    def open_one(topics: Any, group: str = "g", **options: Any) -> Consumer:
        opened.append(Consumer(hub.tubemq_target, group=group, topics=topics, **options))
        return opened[-1]

    with quick_members():
        yield open_one
        for one in opened:
            one.close(2.0)


def send_inlong(hub: Hub, group: str, streams: str = "ab") -> list[bytes]:
    """Send messages as a DataProxy's producer does, and return their bodies."""
    with Producer(hub.target, group_id=group) as producer:
        for i in range(INLONG):
            producer.send_nowait(streams[i % len(streams)], b"%d" % i, message_id=f"id-{i}")
        assert producer.flush(SECONDS).delivered == INLONG
    return [b"%d" % i for i in range(INLONG)]


def read_inlong(consumer: Consumer, n: int) -> list[tuple[str, str, bytes]]:
    """Read and confirm packs of containers until there are ``n`` records: (stream, id, body)."""
    found: list[tuple[str, str, bytes]] = []
    while len(found) < n:
        pack = next_pack(consumer)
        found += [(one.stream_id, one.message_id, one.body) for one in inlong_records(pack)]
        pack.confirm()
    return found


def test_from_dataproxy_to_tubemq(hub: Hub, consumer: Callable[..., Consumer]) -> None:
    wanted = send_inlong(hub, "clicks")
    found = read_inlong(consumer("clicks"), INLONG)
    assert sorted(found) == sorted(("ab"[int(body) % 2], f"id-{int(body)}", body) for body in wanted)


def test_streams_are_filter_items(hub: Hub, consumer: Callable[..., Consumer]) -> None:
    send_inlong(hub, "clicks")
    found = read_inlong(consumer({"clicks": ["b"]}), INLONG // 2)
    assert {stream for stream, _, _ in found} == {"b"}
    assert len(found) == INLONG // 2


def test_a_killed_members_share_goes_to_the_other(hub: Hub, consumer: Callable[..., Consumer]) -> None:
    first = consumer("clicks")
    service = hub._tubemq
    assert service is not None

    def owners() -> set[bytes]:
        return {row[3] for row in service.registrations.found() if row[3]}

    with Producer(hub.tubemq_target) as producer:
        producer.stream("clicks").send_batch([b"%d" % i for i in range(30)]).result(SECONDS)
        second = consumer("clicks")
        assert eventually(lambda: len(owners()) == 2)
        second.close(2.0)
        assert eventually(lambda: len(owners()) == 1)
        producer.send("clicks", b"last").result(SECONDS)
    found = set()
    while b"last" not in found:
        pack = next_pack(first)
        found |= {one.body for one in pack}
        pack.confirm()


def test_a_restart_keeps_offsets_and_members_come_back(
    start_hub: Callable[..., Hub], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataproxy.hub.tubemq import service

    monkeypatch.setattr(service, "_COME_BACK_S", 1.0)
    hub = start_hub(tmp_path / "s", tubemq_port=0)
    port = hub.tubemq_port
    with (
        quick_members(),
        Producer(hub.tubemq_target) as producer,
        Consumer(hub.tubemq_target, group="g", topics="one") as consumer,
    ):
        producer.send("one", b"before").result(SECONDS)
        pack = next_pack(consumer)
        assert [one.body for one in pack] == [b"before"]
        pack.confirm()
        hub.close()
        again = start_hub(tmp_path / "s", tubemq_port=port)
        producer.send("one", b"behind").result(SECONDS)
        pack = next_pack(consumer)
        assert [one.body for one in pack] == [b"behind"]
        pack.confirm()
        assert eventually(lambda: [row[4] for row in again._tubemq.registrations.found()] == [56])


def run(*words: str) -> Any:
    """Run a command in this process."""
    return CliRunner().invoke(app, words)


def test_commands_read_a_hub(hub: Hub, tmp_path: Path) -> None:
    with Producer(hub.tubemq_target) as producer:
        for i in range(9):
            producer.send_nowait("one", b"%d" % i)
    with quick_members():
        read = run("consume", "one", "-g", "g", "-t", hub.tubemq_target, "--max", "9")
    assert (read.exit_code, sorted(read.stdout.split())) == (0, [str(i) for i in range(9)])
    listed = run("topics", "one", "-t", hub.tubemq_target, "--json")
    assert listed.exit_code == 0, listed.output
    assert "one" in json.dumps(json.loads(listed.stdout))
    (tmp_path / "lines").write_text("x\n")
    sent = run("send", "--target", hub.tubemq_target, "--stream", "one", "--file", str(tmp_path / "lines"))
    assert sent.exit_code == 0, sent.output
    assert b"x" in {one.body for one in hub.records("one")}
    tail = run("tail", "one", "", "--hub", hub.manager_url)
    assert (tail.exit_code, "x" in tail.stdout.split()) == (0, True)
