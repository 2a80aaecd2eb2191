"""The thread that keeps positions of groups at ZooKeeper, with one in memory in ZooKeeper's place."""

from __future__ import annotations

import logging
import socket
import sys
import threading
from collections.abc import Iterator, Sequence

import pytest

from dataproxy._core.server.tubemq.core import RegistrationsCore
from dataproxy.errors import ConfigError, HubError
from dataproxy.hub.zookeeper.nodes import Nodes, Place
from dataproxy.hub.zookeeper.offsets import OffsetKeeper
from dataproxy.hub.zookeeper.servers import Servers
from tests.support.waiting import eventually
from tests.support.zooplay import ZooPlay

NODES = Nodes("/tubemq", 1)
PATHS = [NODES.path(Place("g", "t", i)) for i in range(3)]
LIMIT = 20.0


class Hub:
    """Registrations, and a keeper that writes them soon."""

    def __init__(self, zoo: ZooPlay, period_s: float = 0.01) -> None:
        self.zoo = zoo
        self.table = RegistrationsCore(b"0123456789abcdef", 30_000_000, 1 << 20)
        self.keeper = OffsetKeeper(zoo, NODES, self.table, period_s=period_s)

    def confirm(self, partition: int, position: int) -> None:
        self.table.restore(b"g", b"t", partition, position)

    def position(self, partition: int) -> int:
        return next(row[4] for row in self.table.found() if row[:3] == (b"g", b"t", partition))


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = Hub(ZooPlay())
    yield hub
    hub.keeper.stop(LIMIT)
    assert not [one for one in threading.enumerate() if one.name == "dataproxy-hub-offsets"]


def test_positions_are_written_soon_and_at_the_end(hub: Hub) -> None:
    assert hub.keeper.start() == 0
    hub.confirm(0, 28)
    assert eventually(lambda: hub.zoo.nodes.get(PATHS[0]) == b"0-28")
    hub.confirm(0, 56)
    assert hub.keeper.stop(LIMIT) == 0
    assert hub.zoo.nodes == {PATHS[0]: b"0-56"}
    assert hub.zoo.closed


def test_a_long_period_ends_with_the_hub() -> None:
    hub = Hub(ZooPlay(), period_s=3600)
    hub.keeper.start()
    hub.confirm(1, 28)
    assert hub.keeper.stop(LIMIT) == 0
    assert hub.zoo.nodes == {PATHS[1]: b"0-28"}
    assert hub.keeper.stop(LIMIT) == 0


def test_what_is_stored_is_where_groups_begin_and_is_not_written_again(hub: Hub) -> None:
    hub.zoo.nodes = {PATHS[0]: b"280", PATHS[1]: b"3-28"}
    hub.confirm(1, 56)  # the hub's own store has a newer one
    assert hub.keeper.start() == 1
    assert (hub.position(0), hub.position(1)) == (280, 56)
    assert hub.keeper.stop(LIMIT) == 0
    assert hub.zoo.nodes == {PATHS[0]: b"280", PATHS[1]: b"0-56"}
    assert [path for call in hub.zoo.calls for path in call] == [PATHS[1]]


def test_what_changes_while_zookeeper_is_away_is_written_later(hub: Hub, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dataproxy.hub.zookeeper")
    hub.keeper.start()
    hub.zoo.away = True
    hub.confirm(0, 28)
    assert eventually(lambda: len(hub.zoo.calls) > 3)
    hub.confirm(0, 56)
    hub.confirm(2, 84)
    assert eventually(lambda: len({path for call in hub.zoo.calls for path in call}) == 2)
    assert hub.zoo.nodes == {}
    hub.zoo.away = False
    assert eventually(lambda: hub.zoo.nodes == {PATHS[0]: b"0-56", PATHS[2]: b"0-84"})
    assert hub.keeper.stop(LIMIT) == 0
    assert caplog.text.count("cannot be written") == 1
    assert caplog.text.count("written to ZooKeeper again") == 1


def test_a_node_that_is_refused_does_not_keep_others_from_being_written(hub: Hub) -> None:
    hub.zoo.refused = {PATHS[0]}
    hub.keeper.start()
    hub.confirm(0, 28)
    assert eventually(lambda: hub.zoo.calls)
    hub.confirm(1, 28)
    assert eventually(lambda: hub.zoo.nodes == {PATHS[1]: b"0-28"})
    hub.zoo.refused = set()
    assert eventually(lambda: hub.zoo.nodes.get(PATHS[0]) == b"0-28")


def test_what_cannot_be_written_at_the_end_is_told(hub: Hub, caplog: pytest.LogCaptureFixture) -> None:
    hub.keeper.start()
    hub.zoo.away = True
    hub.confirm(0, 28)
    hub.confirm(1, 28)
    assert hub.keeper.stop(0.5) == 2
    assert "2 positions of groups are not at ZooKeeper: ConnectionError: away" in caplog.text


def test_what_fails_at_the_end_is_tried_again_while_there_is_time() -> None:
    class Brief(ZooPlay):
        """Away for one call."""

        def write(self, nodes: Sequence[tuple[str, bytes]]) -> list[Exception | None]:
            self.away = not self.calls
            return super().write(nodes)

    hub = Hub(Brief(), period_s=3600)
    hub.keeper.start()
    hub.confirm(0, 28)
    assert hub.keeper.stop(LIMIT) == 0
    assert hub.zoo.nodes == {PATHS[0]: b"0-28"}


def test_positions_beyond_the_room_for_registrations_are_told(caplog: pytest.LogCaptureFixture) -> None:
    hub = Hub(ZooPlay())
    hub.table = RegistrationsCore(b"0123456789abcdef", 30_000_000, 600)
    hub.keeper = OffsetKeeper(hub.zoo, NODES, hub.table)
    hub.zoo.nodes = {NODES.path(Place(f"g{i}", "t", 0)): b"0-28" for i in range(50)}
    taken = hub.keeper.start()
    assert hub.keeper.stop(LIMIT) == 0
    assert 0 < taken < 50
    assert f"no room for {50 - taken} of 50 positions" in caplog.text


def test_a_hub_that_cannot_read_does_not_start() -> None:
    hub = Hub(ZooPlay())
    hub.zoo.away = True
    with pytest.raises(HubError, match="away"):
        hub.keeper.start()
    assert hub.keeper.stop(LIMIT) == 0


# --- calls to servers


def test_no_server_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(HubError, match=f"no server of ZooKeeper's answers at 127.0.0.1:{port}") as caught:
        Servers(f"127.0.0.1:{port}", start_s=0.3)
    assert "start one" in str(caught.value)
    assert caught.value.details == {"servers": f"127.0.0.1:{port}"}


def test_a_server_that_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(HubError, match=r"within 0\.3 s"):
        Servers(f"127.0.0.1:{listener.getsockname()[1]}", start_s=0.3)


@pytest.mark.parametrize("servers", ["", ",", "a:b", "a:0", "a:65536", "a b", "a/b", "a:1,", "user@a:1", "[x]:1"])
def test_a_list_that_is_none(servers: str) -> None:
    with pytest.raises(ConfigError, match="is no server"):
        Servers(servers)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kazoo.client", None)
    with pytest.raises(HubError, match=r"not installed.*dataproxy-sdk\[zookeeper\]"):
        Servers("127.0.0.1:1")
