"""Three whole hubs at one ZooKeeper 3.9, with a producer and a group of consumers: the leader is killed, or frozen."""

from __future__ import annotations

import functools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from dataproxy import Consumer, Producer
from dataproxy.errors import HubError
from dataproxy.hub import Hub
from dataproxy.hub.tubemq.admin.changes import set_rules
from tests.support.rawclient import Connection, RpcError
from tests.support.tubekit import ZooKeeper

if TYPE_CHECKING:
    from dataproxy.hub.tubemq.service import Service

pytestmark = pytest.mark.timeout(1200)
SESSION_S = 3.0
SECONDS = 90.0
PARTITIONS = 2
ROUNDS = int(os.environ.get("DATAPROXY_TAKEOVERS", "2"))  # of each kind
MEMBERS = 6

HUB = """
import sys, threading
from dataproxy.hub import Hub
store, port, cluster, broker, session, partitions = sys.argv[1:]
hub = Hub(store, port=0, manager_port=0, tubemq_port=int(port), tubemq_cluster=cluster, tubemq_broker=int(broker),
          tubemq_session=float(session), topics=("t",), partitions=int(partitions))
print("ready", flush=True)
threading.Event().wait()
"""


def wait_for(what: Callable[[], object], seconds: float = SECONDS) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class HubProcess:
    """A hub with a store and a port of its own, which can be killed and started again."""

    def __init__(self, home: Path, cluster: str, number: int) -> None:
        with socket.create_server(("127.0.0.1", 0)) as found:
            self.port = found.getsockname()[1]
        self.number = number
        self._words = [str(home / f"store{number}"), str(self.port), cluster, str(number)]
        self.process = self._begin()

    def _begin(self) -> subprocess.Popen[str]:
        words = [*self._words, str(SESSION_S), str(PARTITIONS)]
        return subprocess.Popen([sys.executable, "-c", HUB, *words], stdout=subprocess.PIPE, text=True)

    def wait_ready(self) -> None:
        """Wait until it listens."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def begin_again(self) -> None:
        """Start it again when it was killed."""
        self.process.communicate()
        self.process = self._begin()
        self.wait_ready()

    def end(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.communicate()


class Watcher:
    """What ZooKeeper says of the cluster."""

    def __init__(self, zookeeper: ZooKeeper, path: str) -> None:
        self.client = KazooClient(zookeeper.address)
        self.client.start()
        self._path = path

    def leader(self) -> int:
        """Return the number of the leader, 0 if there is none."""
        try:
            return int(json.loads(self.client.get(f"{self._path}/leader")[0])["id"])
        except NoNodeError:
            return 0

    def end(self) -> None:
        """End the session."""
        self.client.stop()
        self.client.close()


@pytest.fixture
def watcher(zookeeper: ZooKeeper, request: pytest.FixtureRequest) -> Iterator[Watcher]:
    found = Watcher(zookeeper, f"/{abs(hash(request.node.name))}/hubs")
    yield found
    found.end()


@pytest.fixture
def hubs(zookeeper: ZooKeeper, watcher: Watcher, tmp_path: Path) -> Iterator[dict[int, HubProcess]]:
    made = {i: HubProcess(tmp_path, f"{zookeeper.address}{watcher._path}", i) for i in (1, 2, 3)}
    try:
        for one in made.values():
            one.wait_ready()
        wait_for(watcher.leader)
        yield made
    finally:
        for one in made.values():
            one.end()


class Traffic:
    """A producer and the members of a group, each on a thread; what was delivered and what was read."""

    def __init__(self, target: str, members: int) -> None:
        self._target, self._stop = target, threading.Event()
        self.sent: set[bytes] = set()
        self.read: dict[bytes, float] = {}
        self.failed: list[BaseException] = []
        self.consumers = [Consumer(target, group="g", topics="t", heartbeat_interval=1) for _ in range(members)]
        for one in self.consumers:
            one.wait_ready(SECONDS)
        self._threads = [threading.Thread(target=self._consume, args=(one,)) for one in self.consumers]
        self._producing = threading.Thread(target=self._produce)
        for thread in (*self._threads, self._producing):
            thread.start()

    def _produce(self) -> None:
        try:
            with Producer(self._target, delivery_timeout=600) as producer:
                n = 0
                while not self._stop.is_set():
                    body = b"m%d" % n
                    producer.send_nowait("t", body)
                    self.sent.add(body)
                    n += 1
                    time.sleep(0.01)
                report = producer.flush(120)
                assert report.delivered == report.accepted, report
        except BaseException as error:
            self.failed.append(error)

    def _consume(self, consumer: Consumer) -> None:
        try:
            while (pack := consumer.poll(0.5)) is not None or not self._ended:
                if pack is not None:
                    now = time.monotonic()
                    for one in pack:
                        self.read.setdefault(one.body, now)
                    consumer.confirm(pack, wait=False)
        except BaseException as error:
            self.failed.append(error)

    _ended = False

    def produced(self) -> None:
        """End the producer: everything was delivered."""
        self._stop.set()
        self._producing.join(150)

    def end(self) -> None:
        """End the group."""
        self._stop.set()
        self._producing.join(150)
        self._ended = True
        for thread in self._threads:
            thread.join(SECONDS)
        for one in self.consumers:
            one.close(5)


def is_reading(traffic: Traffic, since: float) -> bool:
    """Tell whether a message was read after a time."""
    return max(traffic.read.values(), default=0.0) > since


@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_the_group_goes_on_under_another_leader(hubs: dict[int, HubProcess], watcher: Watcher, how: str) -> None:
    target = "tubemq://" + ",".join(f"127.0.0.1:{one.port}" for one in hubs.values())
    traffic = Traffic(target, MEMBERS)
    try:
        wait_for(lambda: len(traffic.read) > 300)
        everything = sorted(f"{broker}:t:{i}" for broker in hubs for i in range(PARTITIONS))
        wait_for(lambda: sorted(name for one in traffic.consumers for name in one.assignment()) == everything)
        for _ in range(ROUNDS):
            first = watcher.leader()
            with Connection(next(one.port for one in hubs.values() if one.number != first)) as connection:
                with pytest.raises(RpcError, match="is not master now") as caught:
                    connection.ask("CloseRequestC2M", clientId="c", groupName="g")
                assert caught.value.name == "org.apache.inlong.tubemq.corerpc.exception.StandbyException"
            begin = time.monotonic()
            hubs[first].process.send_signal(signal.SIGKILL if how == "killed" else signal.SIGSTOP)
            wait_for(lambda first=first: watcher.leader() not in (0, first))  # type: ignore[misc]
            took = time.monotonic() - begin
            print(f"{how}: hub {watcher.leader()} leads after hub {first}, {took:.2f} s, sessions have {SESSION_S:g} s")
            assert took <= SESSION_S + 3
            wait_for(functools.partial(is_reading, traffic, begin + took))  # the others' partitions are read on
            if how == "killed":
                hubs[first].begin_again()
            else:
                hubs[first].process.send_signal(signal.SIGCONT)
            n = len(traffic.read)
            wait_for(lambda n=n: len(traffic.read) > n + 200)  # type: ignore[misc]
        traffic.produced()
        assert traffic.failed == []
        wait_for(lambda: traffic.read.keys() >= traffic.sent)
        print(f"{how}: {len(traffic.sent)} messages delivered, {len(traffic.sent - traffic.read.keys())} not read")
    finally:
        for one in hubs.values():
            os.kill(one.process.pid, signal.SIGCONT)
        traffic.end()
    assert traffic.failed == []


RULES = '[{"type":1,"rule":[{"zeroCnt":3,"freqInMs":1000}]}]'


def test_rules_are_at_zookeeper_before_their_change_is_answered(zookeeper: ZooKeeper, watcher: Watcher) -> None:
    options: dict[str, Any] = {
        "port": 0, "manager_port": 0, "tubemq_port": 0, "tubemq_cluster": f"{zookeeper.address}{watcher._path}",
        "tubemq_session": SESSION_S, "secret_id": "hubs", "secret_key": "of-all-hubs-alike",
    }  # fmt: skip
    hubs = {i: Hub(None, tubemq_broker=i, **options) for i in (1, 2, 3)}
    try:
        services = {i: cast("Service", one._tubemq) for i, one in hubs.items()}
        wait_for(watcher.leader)
        first = watcher.leader()
        wait_for(lambda: hubs[first]._cluster is not None and hubs[first]._cluster.leads())
        others = [i for i in hubs if i != first]
        with pytest.raises(HubError, match=f"hub {first} at .* leads the cluster, not this one"):
            services[others[0]].administer(lambda: set_rules(services[others[0]].parts, "g", RULES))
        services[first].administer(lambda: set_rules(services[first].parts, "g", RULES))
        stored = json.loads(zlib.decompress(watcher.client.get(f"{watcher._path}/document")[0]))
        assert stored["metadata"]["rules"]["groups"] == {"g": RULES}
        for i in others:
            wait_for(lambda i=i: services[i].run(services[i].parts.rules.of_groups) == {"g": RULES})  # type: ignore[misc]
        wait_for(lambda: sorted(stored_brokers(watcher)) == ["1", "2", "3"])  # they have signed
        hubs.pop(first).close()
        wait_for(lambda: watcher.leader() in others)
        second = watcher.leader()
        services[second].administer(lambda: set_rules(services[second].parts, None, RULES))
        assert services[second].run(services[second].parts.rules.of_groups) == {"g": RULES}
    finally:
        for one in hubs.values():
            one.close()


def stored_brokers(watcher: Watcher) -> list[str]:
    """Return the numbers of the brokers in the cluster's document."""
    data = watcher.client.get(f"{watcher._path}/document")[0]
    return list(json.loads(zlib.decompress(data)).get("brokers", {})) if data else []
