"""Partitions of topics, where they begin and end, and groups that are kept for one reader."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dataproxy.config import ConsumerConfig, load_consumer_config
from dataproxy.consumer.ranges.bounds import Bounds, find_bounds
from dataproxy.consumer.ranges.calls import Calls
from dataproxy.consumer.ranges.keeping import GroupKeeper
from dataproxy.consumer.ranges.places import Place, find_places
from dataproxy.consumer.ranges.reader import RangeReader
from dataproxy.consumer.ranges.registering import Client
from dataproxy.errors import ConfigError, GroupRefusedError, TransportError
from tests.loopback.consumer.ranges.conftest import COUNT, INDEX, Filled
from tests.support.certificates import Authority
from tests.support.tlsserver import tls_front
from tests.support.tubeserver import TubeServer
from tests.support.waiting import eventually

END = COUNT * INDEX
REGISTER = "RegisterRequestC2B"

#: Keeps the group until it is killed.
PREDECESSOR = """
import sys
from dataproxy.config import load_consumer_config
from dataproxy.consumer.ranges.keeping import GroupKeeper
from dataproxy.consumer.ranges.places import find_places
config = load_consumer_config(sys.argv[1], "g", ["one", "three"], env={})
keeper = GroupKeeper(config, 0)
keeper.look(find_places(config).values())
print("kept", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def opened(config: ConsumerConfig) -> Iterator[Callable[..., GroupKeeper]]:
    running: list[GroupKeeper] = []

    def opened(wait_s: float = 0.0, **options: object) -> GroupKeeper:
        running.append(GroupKeeper(config.replace(**options) if options else config, wait_s))
        return running[-1]

    yield opened
    for keeper in running:
        keeper.close()


# --- places and bounds


def test_places(server: TubeServer, places: dict[str, Place]) -> None:
    assert list(places) == ["1:one:0", "1:three:0", "1:three:1", "1:three:2"]
    one = places["1:one:0"]
    assert (one.address, one.alone) == (("127.0.0.1", server.broker_port), True)
    assert one.text == f"1:127.0.0.1:{server.broker_port}#one:0"
    assert not places["1:three:2"].alone


def test_topics_that_nobody_knows(config: ConsumerConfig) -> None:
    with pytest.raises(ConfigError, match="does not know topics none, nothing"):
        find_places(config.replace(topics=["one", "none", "nothing"]))


def test_a_broker_that_the_master_does_not_name(config: ConsumerConfig, server: TubeServer) -> None:
    def change(answer: object) -> None:
        answer.topicInfos[:] = ["one#7:1:1", "three#1:1:1"]  # type: ignore[attr-defined]

    server.on("HeartRequestP2M", ("mangle", change))
    with pytest.raises(TransportError, match="broker 7 has partitions of one") as caught:
        find_places(config)
    assert caught.value.code == "NO_BROKER"


def test_bounds(
    calls: Calls, config: ConsumerConfig, server: TubeServer, places: dict[str, Place], filled: Filled
) -> None:
    server.trim("three", 30 * INDEX)
    expected = {key: Bounds(30 * INDEX if place.topic == "three" else 0, END) for key, place in places.items()}
    assert find_bounds(Client(calls, config), "g", places.values()) == expected
    reading = Client(calls, config).take(places["1:one:0"], 5 * INDEX)
    assert find_bounds(Client(calls, config), "g", places.values()) == expected
    assert server.confirmed(reading.group, "one", 0) == 5 * INDEX  # whoever reads is not disturbed
    assert server.owner("g-read-0", "one", 0) is not None
    assert server.owner("g-read-1", "one", 0) is None


def test_bounds_that_cannot_be_found(
    calls: Calls, config: ConsumerConfig, server: TubeServer, places: dict[str, Place]
) -> None:
    server.on(REGISTER, ("code", 403, "not here"), times=None, partition=1)
    with pytest.raises(TransportError, match="refuses partition 1:three:1"):
        find_bounds(Client(calls, config), "g", places.values())
    assert server.owner("g-read-0", "three", 0) is None


# --- a group that is kept


def test_stored_offsets_follow(
    opened: Callable[..., GroupKeeper], server: TubeServer, places: dict[str, Place], filled: Filled
) -> None:
    keeper = opened()
    found = keeper.look(places.values())
    assert {(one.offset, one.end) for one in found.values()} == {(0, END)}
    keeper.store({"1:one:0": 50 * INDEX, "1:three:2": 10 * INDEX, "9:gone:0": 0}, places)
    assert server.confirmed("g", "one", 0) == 50 * INDEX
    filled.add("one", 1)
    found = keeper.look(places.values())
    assert (found["1:one:0"].offset, found["1:one:0"].end) == (50 * INDEX, END + INDEX)
    assert found["1:three:2"].offset == 10 * INDEX
    keeper.close()
    assert server.owner("g", "one", 0) is None


def test_a_second_reader_of_the_group_is_refused(
    opened: Callable[..., GroupKeeper], server: TubeServer, places: dict[str, Place]
) -> None:
    first = opened()
    first.look(places.values())
    owner = server.owner("g", "one", 0)
    with pytest.raises(GroupRefusedError, match=f"group 'g' is in use: .* registered by {owner}") as caught:
        opened().look(places.values())
    assert caught.value.code == "GROUP_IN_USE"
    assert server.owner("g", "one", 0) == owner
    first.look(places.values())
    opened(group="h").look(places.values())


def test_what_is_given_back_in_time_is_waited_for(
    config: ConsumerConfig, opened: Callable[..., GroupKeeper], places: dict[str, Place]
) -> None:
    first = opened()
    first.look(places.values())
    second = GroupKeeper(config, 60, lambda _: first.close())
    assert len(second.look(places.values())) == 4
    second.close()


def test_a_reader_of_this_machine_that_was_killed_is_not_waited_for(
    server: TubeServer, opened: Callable[..., GroupKeeper], places: dict[str, Place]
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PREDECESSOR, server.target], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "kept\n"
    with pytest.raises(GroupRefusedError):
        opened().look(places.values())
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and its parent has not asked yet
    process.stdin.close()
    process.stdout.close()
    assert len(opened().look(places.values())) == 4
    process.wait()


def test_heartbeats_keep_it(opened: Callable[..., GroupKeeper], server: TubeServer, places: dict[str, Place]) -> None:
    opened(heartbeat_interval=1.0).look(places.values())
    assert eventually(lambda: [call.method for call in server.calls].count("HeartBeatRequestC2B") >= 2)
    assert {call.code for call in server.calls if call.method == "HeartBeatRequestC2B"} == {200}


def test_a_broker_that_is_gone(
    opened: Callable[..., GroupKeeper], server: TubeServer, places: dict[str, Place], caplog: pytest.LogCaptureFixture
) -> None:
    keeper = opened()
    keeper.look(places.values())
    server.stop_broker()
    with pytest.raises(TransportError, match="does not answer RegisterRequestC2B"):
        keeper.look(places.values())
    with caplog.at_level(logging.WARNING, "dataproxy"):
        keeper.store({"1:one:0": INDEX}, places)
    assert "the stored offsets of group g were not moved" in caplog.text
    server.start_broker()
    assert len(keeper.look(places.values())) == 4


# --- TLS


def test_everything_over_tls(server: TubeServer, tmp_path: Path) -> None:
    server.put("one", b"a")
    authority = Authority(tmp_path)
    identity = authority.identity("localhost")
    with tls_front(server.master_port, identity) as master, tls_front(server.broker_port, identity) as broker:

        def change(answer: Any) -> None:
            answer.brokerInfos[:] = [f"1:localhost:{broker.port}"]

        for method in ("RegisterRequestP2M", "HeartRequestP2M"):
            server.on(method, ("mangle", change), times=None)
        target = f"tubemqs://localhost:{master.port}"
        config = load_consumer_config(target, "g", ["one"], env={}, tls_ca=str(authority.ca))
        places = find_places(config)
        with Calls(config) as calls:
            found = list(RangeReader(calls, config, lambda lost: None).read(places["1:one:0"], 0, INDEX))
            assert [piece.pack.bodies() for piece in found] == [[b"a"]]
        assert broker.versions
        with Calls(config.replace(tls_ca="")) as calls, pytest.raises(TransportError, match="TLS: no known authority"):
            find_bounds(Client(calls, config), "g", places.values())
