"""One producer, groups in several clusters: each group is asked about once, and its messages go to its own cluster."""

import contextlib
import threading
import time

import pyarrow as pa
import pytest

import dataproxy
from dataproxy.hub import Hub
from dataproxy.hub.web.settings import ManagerCluster
from dataproxy.producer.discovery import asking, pace, proxies
from dataproxy.producer.discovery.managers import ask_managers

SECONDS = 30.0


@pytest.fixture
def hubs():
    """Yield an east hub, whose Manager knows both clusters, and a west hub."""
    with Hub() as east, Hub() as west:
        east.manager.clusters = {"west": ManagerCluster(7, (("127.0.0.1", west.port),))}
        east.manager.groups = {"w1": "west", "w2": "west"}
        yield east, west


@pytest.fixture
def asked(monkeypatch):
    """Return the groups that a Manager was asked about, in turn."""
    found = []

    def ask(target, config, trust=None, *, group_id, credentials):
        found.append(group_id or config.group_id)
        return ask_managers(target, config, trust, group_id=group_id, credentials=credentials)

    monkeypatch.setattr(asking, "ask_managers", ask)
    return found


def bodies(hub, group):
    return sorted(record.body for record in hub.records(group, "s"))


def test_two_groups_in_two_clusters(hubs, asked):
    east, west = hubs
    with dataproxy.Producer(east.manager_url, group_id="e1") as producer:
        for i in range(50):
            producer.send_nowait("s", b"e%d" % i)
            producer.send_nowait("s", b"w%d" % i, group_id="w1")
            producer.send_nowait("s", b"x%d" % i, group_id="w2")
        assert producer.flush(SECONDS).ok
        used = sorted(connection.address for connection in producer.stats().connections)
    assert bodies(east, "e1") == sorted(b"e%d" % i for i in range(50))
    assert bodies(west, "w1") == sorted(b"w%d" % i for i in range(50))
    assert bodies(west, "w2") == sorted(b"x%d" % i for i in range(50))
    assert bodies(east, "w1") == bodies(east, "w2") == bodies(west, "e1") == []
    assert sorted(asked) == ["e1", "w1", "w2"]
    assert used == sorted({east.listeners[0].address, west.listeners[0].address}), "w1 and w2 share connections"


def test_several_groups_are_asked_about_at_the_start(hubs, asked):
    east, west = hubs
    with dataproxy.Producer(east.manager_url, inlong_group_ids="e1, w1") as producer:
        assert sorted(asked) == ["e1", "w1"]
        assert (producer.config.group_id, producer.config.group_ids) == ("e1", ("w1",))
        producer.send("s", b"1", group_id="w1").result(SECONDS)
        producer.send("s", b"2").result(SECONDS)
    assert (bodies(west, "w1"), bodies(east, "e1")) == ([b"1"], [b"2"])
    assert sorted(asked) == ["e1", "w1"]


def test_each_group_of_the_start_needs_an_answer(hubs):
    east, _ = hubs
    east.manager.denied = frozenset({"w1"})
    with pytest.raises(dataproxy.DiscoveryError, match="refused group 'w1'") as caught:
        dataproxy.Producer(east.manager_url, group_id="e1", group_ids=["w1"])
    assert caught.value.code == "GROUP_REFUSED"
    with pytest.raises(dataproxy.InvalidMessageError):
        dataproxy.Producer(east.manager_url, group_ids=["a b", "&"])


def test_a_group_without_an_answer_waits_and_delays_no_other(hubs, monkeypatch):
    """The Manager hangs for the second group; the first keeps its rate, and the second goes when it has answered."""
    east, west = hubs
    hang = threading.Event()

    def ask(target, config, trust=None, *, group_id, credentials):
        if group_id == "w1":
            assert hang.wait(SECONDS)
        return ask_managers(target, config, trust, group_id=group_id, credentials=credentials)

    monkeypatch.setattr(asking, "ask_managers", ask)
    with dataproxy.Producer(east.manager_url, group_id="e1", linger=0) as producer:
        waiting = [producer.send("s", b"w%d" % i, group_id="w1") for i in range(300)]
        for i in range(300):  # more than an executor takes before it lets packs grow
            producer.send("s", b"e%d" % i).result(SECONDS)
        assert not any(delivery.done() for delivery in waiting)
        hang.set()
        for delivery in waiting:
            delivery.result(SECONDS)
    assert len(bodies(west, "w1")) == len(bodies(east, "e1")) == 300


def test_a_group_that_the_manager_refuses_expires_with_the_reason(hubs, caplog):
    east, _ = hubs
    east.manager.denied = frozenset({"nobody"})
    producer = dataproxy.Producer(east.manager_url, group_id="e1", delivery_timeout=1.5)
    try:
        lost = producer.send("s", b"x", group_id="nobody")
        producer.send("s", b"y").result(SECONDS)
        with pytest.raises(dataproxy.DeliveryExpired, match="refused group 'nobody'"):
            lost.result(SECONDS)
        assert len([text for text in caplog.messages if "messages of group 'nobody' wait" in text]) == 1
        east.manager.denied = frozenset()
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:  # a later question finds it
            with contextlib.suppress(dataproxy.DeliveryExpired):
                producer.send("s", b"z", group_id="nobody").result(SECONDS)
                break
    finally:
        producer.close()
    assert bodies(east, "nobody") == [b"z"]


def test_a_group_moves_to_another_cluster(hubs, monkeypatch):
    east, west = hubs
    with dataproxy.Producer(east.manager_url, group_id="e1", discovery_interval=1) as producer:
        producer.send("s", b"before").result(SECONDS)
        east.manager.groups = {"e1": "west"}
        count = 0
        while not bodies(west, "e1"):
            producer.send("s", b"%d" % count).result(SECONDS)
            count += 1
        assert producer.report().ok
    assert len(bodies(west, "e1")) + len(bodies(east, "e1")) == count + 1


def test_a_switch_moves_everything_to_new_connections(hubs):
    east, _ = hubs
    with dataproxy.Producer(east.manager_url, group_id="e1", discovery_interval=1) as producer:
        producer.send("s", b"x").result(SECONDS)
        east.manager.is_switch = 5
        while sum(connection.connects for connection in producer.stats().connections) < 2:
            producer.send("s", b"x").result(SECONDS)
        assert producer.report().ok
        states = [connection.state for connection in producer.stats().connections]
    assert states.count("active") <= 2


def test_a_list_that_changes_all_the_time_costs_no_message(monkeypatch):
    """Each refresh drops one of three proxies and adds another; nothing fails, and nothing is sent twice."""
    monkeypatch.setattr(proxies.Schedule, "round_ended", lambda self, now, soon=False: self.at_once(now + 0.02))
    with Hub(nodes=4) as hub:
        ports = [("127.0.0.1", node.tcp.port) for node in hub.nodes]
        hub.manager.nodes = tuple(ports[:3])
        with dataproxy.Producer(hub.manager_url, group_id="g", linger=0, discovery_interval=1) as producer:
            producer._source._schedule.at_once(0.0)
            producer._source._pause.wake()
            sent = changes = 0
            while changes < 20:
                before = producer._source.picture
                hub.manager.nodes = tuple(ports[(changes + k) % 4] for k in range(1, 4))
                while producer._source.picture is before:
                    producer.send("s", b"%d" % sent).result(SECONDS)
                    sent += 1
                changes += 1
            connects = sum(connection.connects for connection in producer.stats().connections)
            report = producer.report()
        assert connects > 12, "a proxy that returns while its last frame is under way keeps its connection"
        assert (report.delivered, report.retries) == (sent, 0)
        assert len(list(hub.records("g", "s"))) == sent


def test_records_of_new_groups_in_a_record_batch(hubs, asked):
    """Rows find their streams without the interpreter; groups that nobody has asked about are left to it."""
    east, west = hubs
    with dataproxy.Producer(east.manager_url, group_id="e1") as producer:
        table = pa.table({"g": ["w1", "e1", "w2", "w1"] * 100, "v": list(range(400))})
        producer.send_rows("s", table, group_column="g").result(SECONDS)
    counts = [len(bodies(hub, group)) for hub, group in ((west, "w1"), (east, "e1"), (west, "w2"))]
    assert counts == [200, 100, 100]
    assert sorted(asked) == ["e1", "w1", "w2"]


def test_a_cluster_by_its_name_takes_all_groups(hubs, asked):
    east, west = hubs
    with dataproxy.Producer(f"{east.manager_url}/getIpListByClusterName/west") as producer:
        for group in ("e1", "w1", "other"):
            producer.send("s", b"x", group_id=group).result(SECONDS)
    assert [len(bodies(west, group)) for group in ("e1", "w1", "other")] == [1, 1, 1]
    assert asked == [""]
    with pytest.raises(dataproxy.DiscoveryError, match="refused cluster 'north': 'cluster north does not exist'"):
        dataproxy.Producer(f"{east.manager_url}/getIpListByClusterName/north")


def test_too_many_groups_are_refused_by_name(hubs, monkeypatch):
    east, _ = hubs
    monkeypatch.setattr("dataproxy.producer.discovery.proxies.MOST_GROUPS", 2)
    with dataproxy.Producer(east.manager_url, group_id="e1") as producer:
        producer.stream("s", group_id="w1")
        with pytest.raises(dataproxy.ConfigError, match="group 'w2' is one more than 2"):
            producer.send("s", b"x", group_id="w2")
        producer.send("s", b"x").result(SECONDS)


def test_lazily_each_group_finds_its_cluster(hubs, monkeypatch):
    monkeypatch.setattr(pace, "_SOON_SECONDS", 0.01)
    east, west = hubs
    with dataproxy.Producer(east.manager_url, group_id="e1", start="lazy") as producer:
        producer.send_nowait("s", b"e")
        producer.send_nowait("s", b"w", group_id="w1")
        assert producer.flush(SECONDS).ok
    assert (bodies(east, "e1"), bodies(west, "w1")) == ([b"e"], [b"w"])
