"""Brokers and masters of different makes: this hub at TubeMQ's own master, TubeMQ's own broker at the hub's master."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from dataproxy import Consumer, Producer
from dataproxy.hub.tubemq.brokers.enrolment import Enrolment
from dataproxy.hub.tubemq.brokers.joining import Joining, JoiningTimes, Told
from dataproxy.masters.target import Address
from dataproxy.wire.tubemq.texts import Broker
from tests.support.tubekit import Servers
from tests.support.tubeserver import TubeServer

pytestmark = pytest.mark.timeout(400)

SECONDS = 120.0
HUB = Broker(77, "127.0.0.2", 18777)  # the master wants an address for each broker
CHANGE = "&createUser=interop&modifyUser=interop&confModAuthToken=abc"


def eventually(what: Callable[[], object]) -> bool:
    """Wait until something holds."""
    deadline = time.monotonic() + SECONDS
    while not what():
        if time.monotonic() > deadline:
            return False
        time.sleep(1.0)
    return True


def api(servers: Servers, method: str, query: str) -> Any:
    """Make a call of the administration of TubeMQ's master, which works."""
    answer = json.loads(servers.run("tube-api", method, query))
    assert answer["result"], answer
    return answer


def test_this_hub_is_on_line_at_tubemqs_master(tubemq: Servers) -> None:
    broker = f"brokerId={HUB.id}&brokerIp={HUB.host}&brokerPort={HUB.port}&brokerWebPort=18778&numPartitions=3"
    flags = "&acceptPublish=true&acceptSubscribe=true&deletePolicy=delete,168h"
    flush = "&unflushThreshold=1000&unflushInterval=10000"
    api(tubemq, "admin_add_broker_configure", broker + flags + flush + CHANGE)
    api(tubemq, "admin_online_broker_configure", f"brokerId={HUB.id}{CHANGE}")
    topic = f"brokerId={HUB.id}&topicName=athub&numPartitions=2&numTopicStores=1"
    api(tubemq, "admin_add_new_topic_record", topic + flags + CHANGE)
    told: list[Told] = []
    joining = Joining(HUB, [Address("127.0.0.1", tubemq.master)], "1", JoiningTimes(period_s=1.0))
    enrolment = Enrolment(joining, told.append)
    enrolment.start()
    try:

        def status() -> Any:
            return api(tubemq, "admin_query_broker_run_status", f"brokerId={HUB.id}")["data"][0]

        def runs() -> bool:
            found = status()
            return bool((found["runStatus"], found["subStatus"], found["isConfLoaded"]) == ("running", "idle", "true"))

        assert eventually(runs), json.dumps(status())
        assert ("athub", 2) in [(one.topic, one.partitions) for one in told[-1].topics]

        def served() -> bool:
            found = api(tubemq, "admin_query_topic_info", "topicName=athub")["data"][0]
            return bool(found["isSrvAcceptPublish"] and found["isSrvAcceptSubscribe"])

        assert eventually(served)
    finally:
        enrolment.stop(10.0)
    assert eventually(lambda: status()["runStatus"] != "running")


class _Administration(BaseHTTPRequestHandler):
    """What the kit asks a master before and while it starts a broker."""

    def do_GET(self) -> None:
        state = '"runStatus":"running","subStatus":"idle"' if self.server.is_there() else ""  # type: ignore[attr-defined]
        body = f'{{"result":true,"count":1,{state}}}\n'.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[TubeServer]:
    with TubeServer(topics={"here": 1}, hub_master=True, broker_id=9) as server:
        yield server


@pytest.fixture
def broker(server: TubeServer, tmp_path: Path) -> Iterator[Servers]:
    """TubeMQ's own broker, which knows no master but the hub's."""
    servers = Servers(tmp_path, "")
    administration = ThreadingHTTPServer(("127.0.0.1", 0), _Administration)
    administration.is_there = lambda: server.at_brokers("there") == {1}  # type: ignore[attr-defined]
    thread = threading.Thread(target=administration.serve_forever)
    thread.start()
    servers.env |= {"TUBE_MASTER_PORT": str(server.master_port), "TUBE_MASTER_WEB": str(administration.server_port)}
    server.declare(Broker(1, "127.0.0.1", servers.broker), {"there": 3})
    try:
        servers.run("start", "tubemq-broker")
        yield servers
    finally:
        servers.run("stop", "tubemq-broker")
        administration.shutdown()
        thread.join()
        administration.server_close()


def test_tubemqs_broker_serves_behind_the_hubs_master(server: TubeServer, broker: Servers) -> None:
    bodies = {b"m%d" % i for i in range(30)}
    got: set[bytes] = set()
    with Consumer(server.target, group="readers", topics="there", heartbeat_interval=1) as consumer:
        consumer.wait_ready(SECONDS)
        with Producer(server.target) as producer:
            for body in bodies:
                producer.send_nowait("there", body)
        deadline = time.monotonic() + SECONDS
        while got < bodies:
            assert time.monotonic() < deadline, consumer.stats()
            pack = consumer.poll(1.0)
            if pack is not None:
                got.update(one.body for one in pack)
                pack.confirm()
    broker.run("stop", "tubemq-broker")
    assert eventually(lambda: server.at_brokers("there") == set())
    assert [call.code for call in server.calls if call.method == "CloseRequestB2M"] == [200]
    broker.run("start", "tubemq-broker")
    assert server.at_brokers("there") == {1}
