"""Positions of the hub's groups at ZooKeeper 3.9: killed and back, frozen, its session over, the hub killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from dataproxy._core.server.tubemq.core import RegistrationsCore
from dataproxy.errors import ConfigError, HubError
from dataproxy.hub import Hub as WholeHub
from dataproxy.hub.zookeeper.nodes import Nodes, Place
from dataproxy.hub.zookeeper.offsets import OffsetKeeper, load
from dataproxy.hub.zookeeper.servers import Servers
from tests.support.rawclient import INDEX, Connection, Reader, Sender, bodies
from tests.support.tubekit import ZooKeeper
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(300)
LIMIT = 120.0
BROKER = 2130706433

# A hub's part of it, killed by the test; says each position that it has taken, which is older than its node by then.
DYING = """
import sys
from dataproxy._core.server.tubemq.core import RegistrationsCore
from dataproxy.hub.zookeeper.nodes import Nodes
from dataproxy.hub.zookeeper.offsets import OffsetKeeper
from dataproxy.hub.zookeeper.servers import Servers
address, root = sys.argv[1:]
table = RegistrationsCore(bytes(16), 30_000_000, 1 << 20)
keeper = OffsetKeeper(Servers(address), Nodes(root, 2130706433), table, period_s=0.02)
keeper.start()
print(table.found()[0][4] if table.found() else -1, flush=True)
for line in sys.stdin:
    table.restore(b"g", b"t", 0, int(line))
"""


@pytest.fixture
def look(zookeeper: ZooKeeper) -> Iterator[KazooClient]:
    """A client of the test's own."""
    client = KazooClient(zookeeper.address, connection_retry={"max_tries": -1, "max_delay": 1.0})
    client.start()
    yield client
    client.stop()
    client.close()


class Hub:
    """Registrations, and a keeper with a session at the server."""

    def __init__(self, zookeeper: ZooKeeper, root: str, period_s: float = 0.05) -> None:
        self.servers = Servers(zookeeper.address)
        self.nodes = Nodes(root, BROKER)
        self.table = RegistrationsCore(b"0123456789abcdef", 30_000_000, 1 << 30)
        self.keeper = OffsetKeeper(self.servers, self.nodes, self.table, period_s=period_s)

    def confirm(self, group: str, topic: str, partition: int, position: int) -> str:
        """Let a group be somewhere, and return its node."""
        assert self.table.restore(group.encode(), topic.encode(), partition, position)
        return self.nodes.path(Place(group, topic, partition))


@pytest.fixture
def root(request: pytest.FixtureRequest) -> str:
    return f"/{request.node.name}-{time.time_ns()}"  # a test that is run again begins with nothing


@pytest.fixture
def hub(zookeeper: ZooKeeper, root: str) -> Iterator[Hub]:
    hub = Hub(zookeeper, root)
    assert hub.keeper.start() == 0
    yield hub
    hub.keeper.stop(LIMIT)


def test_the_layout_is_tubemqs(hub: Hub, look: KazooClient, root: str) -> None:
    hub.confirm("tboy", "test", 0, 280)
    path = f"{root}/consumers-v3/tboy/offsets/test/2130706433-0"
    assert eventually(lambda: look.exists(path))
    assert look.get(path)[0] == b"0-280"
    assert look.get(path)[1].ephemeralOwner == 0


def test_what_was_written_is_read_by_the_next_hub(zookeeper: ZooKeeper, look: KazooClient, root: str) -> None:
    first = Hub(zookeeper, root, period_s=3600)
    first.keeper.start()
    names = ["g", "a-b_c"]
    topics = ["t", "with/slash", "..", "100%", "ä b", "x\ue000"]
    for i, group in enumerate(names):
        for j, topic in enumerate(topics):
            first.confirm(group, topic, i * 10_000 + j, 28 * (i + j + 1))
    assert first.keeper.stop(LIMIT) == 0
    look.create(f"{root}/consumers-v3/old/offsets/t/{BROKER}-5", b"560", makepath=True)
    look.create(f"{root}/consumers-v3/old/offsets/t/77-5", b"0-28", makepath=True)
    second = Hub(zookeeper, root)
    assert second.keeper.start() == 13
    assert sorted(row[:3] + row[4:5] for row in second.table.found()) == sorted(
        [(b"old", b"t", 5, 560)]
        + [
            (group.encode(), topic.encode(), i * 10_000 + j, 28 * (i + j + 1))
            for i, group in enumerate(names)
            for j, topic in enumerate(topics)
        ]
    )
    assert second.keeper.stop(LIMIT) == 0
    assert look.get(f"{root}/consumers-v3/old/offsets/t/{BROKER}-5")[1].version == 0  # nothing was written again


def test_thousands_of_positions_in_a_period(hub: Hub, zookeeper: ZooKeeper, look: KazooClient) -> None:
    paths = [hub.confirm(f"g{i % 100}", f"t{i // 100}", i % 3, 28 * i) for i in range(3000)]
    assert hub.keeper.stop(LIMIT) == 0
    assert [look.get(path)[0] for path in paths[::250]] == [b"0-%d" % (28 * i) for i in range(0, 3000, 250)]
    again = Servers(zookeeper.address)
    assert len(load(again, hub.nodes)) == 3000
    again.close()


def test_the_server_is_killed_and_comes_back(hub: Hub, zookeeper: ZooKeeper, look: KazooClient) -> None:
    path = hub.confirm("g", "t", 0, 28)
    assert eventually(lambda: look.exists(path))
    zookeeper.run("kill", "zookeeper")
    try:
        assert eventually(lambda: not hub.servers.is_connected)
        hub.confirm("g", "t", 0, 56)
        other = hub.confirm("g2", "t", 1, 84)
    finally:
        zookeeper.run("start", "zookeeper")
    assert eventually(lambda: look.retry(look.exists, other))
    assert eventually(lambda: look.retry(look.get, path)[0] == b"0-56")


def test_the_server_is_frozen(hub: Hub, zookeeper: ZooKeeper, look: KazooClient) -> None:
    path = hub.confirm("g", "t", 0, 28)
    assert eventually(lambda: look.exists(path))
    pid = zookeeper.pid("zookeeper")
    os.kill(pid, signal.SIGSTOP)
    try:
        hub.confirm("g", "t", 0, 56)
        assert eventually(lambda: not hub.servers.is_connected)
        hub.confirm("g", "t", 0, 84)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert eventually(lambda: look.retry(look.get, path)[0] == b"0-84")


def test_the_session_is_over(hub: Hub, zookeeper: ZooKeeper, look: KazooClient) -> None:
    path = hub.confirm("g", "t", 0, 28)
    assert eventually(lambda: look.exists(path))
    before = hub.servers._client.client_id
    thief = KazooClient(zookeeper.address, client_id=before)  # a session that another client ends
    thief.start()
    thief.stop()
    thief.close()
    hub.confirm("g", "t", 0, 56)
    assert eventually(lambda: look.get(path)[0] == b"0-56")
    assert hub.servers._client.client_id[0] != before[0]


def test_the_hub_is_killed(zookeeper: ZooKeeper, look: KazooClient, root: str) -> None:
    path = Nodes(root, BROKER).path(Place("g", "t", 0))
    last = -1
    for round_ in range(1, 4):
        process = subprocess.Popen(
            [sys.executable, "-c", DYING, zookeeper.address, root],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        try:
            assert int(process.stdout.readline()) == last
            last = 28 * round_
            process.stdin.write(f"{last}\n")
            process.stdin.flush()
            assert eventually(lambda last=last: look.exists(path) and look.get(path)[0] == b"0-%d" % last)
        finally:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()


# --- a whole hub

SERVING = """
import sys
from dataproxy.hub import Hub
address, root, store = sys.argv[1:]
hub = Hub(store or None, tubemq_port=0, tubemq_zookeeper=address, tubemq_zookeeper_root=root)
print(hub.tubemq_port, flush=True)
sys.stdin.read()
hub.close()
"""


@contextmanager
def serving(zookeeper: ZooKeeper, root: str, store: Path | str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run a hub in a process of its own, and yield it with its port of TubeMQ; its end is the test's."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVING, zookeeper.address, root, str(store)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    try:
        yield process, int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def read_some(port: int, count: int) -> None:
    """Send messages, read them as a group, and confirm them."""
    with Connection(port) as connection:
        sender = Sender(connection, connection, "demo")
        for i in range(count):
            assert sender.send(0, b"%d" % i)["errCode"] == 200
        reader = Reader(connection, "demo", "g")
        assert reader.register().errCode == 200
        assert len(bodies(reader.get())) == count
        assert reader.commit()["errCode"] == 200
        assert reader.unregister().errCode == 200


def begins_at(port: int) -> int:
    """Return where the group begins, in messages."""
    with Connection(port) as connection:
        reader = Reader(connection, "demo", "g")
        answer = reader.register()
        assert answer.errCode == 200
        assert reader.unregister().errCode == 200
        return int(answer.currOffset) // INDEX


def test_a_hub_that_ends_has_written_its_offsets(
    zookeeper: ZooKeeper, look: KazooClient, root: str, tmp_path: Path
) -> None:
    with serving(zookeeper, root, tmp_path / "s") as (process, port):
        read_some(port, 5)
        process.communicate("", timeout=LIMIT)
        assert process.returncode == 0
    path = f"{root}/consumers-v3/g/offsets/demo/1-0"
    assert look.get(path)[0] == b"0-140"
    look.set(path, b"0-28")  # older than what the store has
    with serving(zookeeper, root, tmp_path / "s") as (process, port):
        assert begins_at(port) == 5
        process.communicate("", timeout=LIMIT)
    assert look.get(path)[0] == b"0-140"
    with serving(zookeeper, root, tmp_path / "other") as (_, port):
        with Connection(port) as connection:
            sender = Sender(connection, connection, "demo")
            for i in range(8):
                sender.send(0, b"%d" % i)
        assert begins_at(port) == 5


def test_a_hub_that_is_killed_loses_no_confirm(
    zookeeper: ZooKeeper, look: KazooClient, root: str, tmp_path: Path
) -> None:
    for round_ in range(1, 4):
        with serving(zookeeper, root, tmp_path / "s") as (_, port):
            if round_ > 1:
                assert begins_at(port) == 4 * (round_ - 1)
            read_some(port, 4)
    with serving(zookeeper, root, tmp_path / "s") as (_, port):
        path = f"{root}/consumers-v3/g/offsets/demo/1-0"
        assert eventually(lambda: look.exists(path) and look.get(path)[0] == b"0-%d" % (12 * INDEX))
        assert begins_at(port) == 12


def test_a_hub_without_its_servers_does_not_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(HubError, match="no server of ZooKeeper's answers"):
        WholeHub(tubemq_port=0, tubemq_zookeeper=address)
    with pytest.raises(ConfigError, match="tubemq_zookeeper is given without tubemq_port"):
        WholeHub(tubemq_zookeeper=address)
    with pytest.raises(ConfigError, match="none of ZooKeeper's"):
        WholeHub(tubemq_port=0, tubemq_zookeeper=address, tubemq_zookeeper_root="/a//b")
