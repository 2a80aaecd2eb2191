"""Proxies from a watched file, a name with many addresses, and a folder of kept lists."""

import json
import logging
import os
import socket
import threading
from pathlib import Path

import pytest

import dataproxy
from dataproxy.hub import Hub
from dataproxy.producer.discovery import pace, proxies
from dataproxy.producer.discovery import targets as discovery
from tests.support.scripted import Scripted
from tests.support.waiting import SECONDS, eventually


def addresses(producer):
    return {connection.address for connection in producer.stats().connections if connection.state == "active"}


def replace(path: Path, content: str) -> None:
    new = path.with_suffix(".new")
    new.write_text(content)
    new.rename(path)


# --- a file


def test_a_file_is_watched(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(proxies, "_LOOK_SECONDS", 0.01)
    path = tmp_path / "proxies"
    with Scripted() as first, Scripted() as second:
        path.write_text(f"{first.address}\n")
        with dataproxy.Producer(f"file://{path}", group_id="g") as producer:
            assert producer.send("s", b"1").result(SECONDS).node == first.address
            node = {"id": 1, "ip": "127.0.0.1", "port": second.port, "protocolType": "TCP"}
            replace(path, json.dumps({"clusterId": 1, "nodeList": [node]}))
            assert eventually(lambda: addresses(producer) == {second.address})
            assert producer.send("s", b"2", group_id="other").result(SECONDS).node == second.address
            with caplog.at_level(logging.WARNING, logger="dataproxy.route"):
                replace(path, "{ broken")
                assert eventually(lambda: "the known one stays in use" in caplog.text)
                path.unlink()
                assert eventually(lambda: "No such file" in caplog.text)
            assert producer.send("s", b"3").result(SECONDS).node == second.address
            assert len([text for text in caplog.messages if "is not JSON" in text]) == 1, "once for each change"
            replace(path, f"{first.address}\n{second.address}\n")
            assert eventually(lambda: addresses(producer) == {first.address, second.address})


def test_a_limit_of_frames_in_a_file_holds_from_then_on(tmp_path, monkeypatch):
    monkeypatch.setattr(proxies, "_LOOK_SECONDS", 0.01)
    path = tmp_path / "proxies.json"
    with Scripted() as server:
        data = {"nodeList": [{"ip": "127.0.0.1", "port": server.port}]}
        path.write_text(json.dumps(data))
        with dataproxy.Producer(f"file://{path}", group_id="g") as producer:
            producer.send("s", b"x" * 100_000).result(SECONDS)
            replace(path, json.dumps({**data, "maxPacketLength": 9000}))

            def refused():
                try:
                    producer.send("s", b"x" * 10_000).result(SECONDS)
                except dataproxy.InvalidMessageError:
                    return True
                return False

            assert eventually(refused)
            producer.send("s", b"x" * 8000).result(SECONDS)


def test_without_the_file_nothing_starts_unless_lazily(tmp_path, monkeypatch):
    monkeypatch.setattr(proxies, "_LOOK_SECONDS", 0.01)
    path = tmp_path / "proxies"
    before = threading.active_count()
    with pytest.raises(dataproxy.DiscoveryError, match="No such file") as caught:
        dataproxy.Producer(f"file://{path}", group_id="g")
    assert caught.value.code == "LIST_FILE"
    assert threading.active_count() <= before
    with Scripted() as server, dataproxy.Producer(f"file://{path}", group_id="g", start="lazy") as producer:
        delivery = producer.send("s", b"x")
        replace(path, server.address)
        assert delivery.result(SECONDS)


# --- a name


class Names:
    """A name service with one name, ``proxies.example``."""

    def __init__(self):
        self.found = {socket.AF_INET: ["127.0.0.1"], socket.AF_INET6: []}
        self.asked = 0
        self.real = socket.getaddrinfo

    def look_up(self, host, port, *args, **options):
        """Answer as ``socket.getaddrinfo``."""
        if host != "proxies.example":
            return self.real(host, port, *args, **options)
        self.asked += 1
        return [
            (family, socket.SOCK_STREAM, 6, "", (address, port) if family == socket.AF_INET else (address, port, 0, 0))
            for family, several in self.found.items()
            for address in several
        ]


@pytest.fixture
def names(monkeypatch):
    found = Names()
    monkeypatch.setattr(discovery.socket, "getaddrinfo", found.look_up)
    monkeypatch.setattr(pace, "_SOON_SECONDS", 0.01)
    monkeypatch.setattr(pace, "_SOON_MOST", 0.05)
    return found


def test_all_addresses_of_a_name_are_proxies(names):
    names.found[socket.AF_INET] = ["127.0.0.1", "127.0.0.2"]
    names.found[socket.AF_INET6] = ["::1"]
    with (
        Hub(host="127.0.0.1") as hub,
        dataproxy.Producer(f"dns://proxies.example:{hub.port}", group_id="g", connections=3) as producer,
    ):
        tried = {connection.address for connection in producer.stats().connections}
        assert producer.send("s", b"x").result(SECONDS)
    assert tried == {f"proxies.example:{hub.port} ({one})" for one in ("127.0.0.1", "127.0.0.2", "::1")}


def test_a_name_is_asked_again_at_once_when_no_proxy_is_left(names):
    with Scripted() as second:
        with Scripted() as first:
            target = f"dns://proxies.example:{first.port}"
            producer = dataproxy.Producer(target, group_id="g", reconnect_backoff=0.01, reconnect_backoff_max=0.05)
            producer.send("s", b"x").result(SECONDS)
            asked = names.asked
        assert eventually(lambda: names.asked > asked)
        assert second.port != first.port
    producer.close(0)


def test_an_empty_answer_of_the_name_service_is_an_error(names):
    names.found[socket.AF_INET] = []
    with pytest.raises(
        dataproxy.DiscoveryError, match=r"'proxies\.example' \(the name service knows the name"
    ) as caught:
        dataproxy.Producer("dns://proxies.example", group_id="g")
    assert caught.value.code == "UNRESOLVED_HOST"


def test_an_empty_answer_later_keeps_what_is_known(names):
    with (
        Scripted() as server,
        dataproxy.Producer(f"dns://proxies.example:{server.port}", group_id="g", discovery_interval=1) as producer,
    ):
        producer.send("s", b"x").result(SECONDS)
        names.found[socket.AF_INET] = []
        asked = names.asked
        assert eventually(lambda: names.asked > asked)
        producer.send("s", b"y").result(SECONDS)
        assert len(addresses(producer)) == 1


# --- kept lists


@pytest.fixture
def manager():
    """Yield a hub whose Manager names a proxy, and the proxy."""
    with Scripted() as server, Hub() as hub:
        hub.manager.nodes = (("127.0.0.1", server.port),)
        yield hub, server


def test_a_start_without_a_manager_uses_the_kept_list_and_says_so_once(tmp_path, manager, caplog, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    hub, server = manager
    folder = tmp_path / "lists"
    with dataproxy.Producer(hub.manager_url, group_id="g", cache_dir=str(folder)) as producer:
        producer.send("s", b"1").result(SECONDS)
    (kept,) = folder.iterdir()
    assert kept.name.startswith("g-")
    hub.close()
    caplog.clear()
    with dataproxy.Producer(hub.manager_url, group_id="g", cache_dir="~/lists") as producer:
        assert producer.send("s", b"2").result(SECONDS).node == server.address
    (warning,) = [record.message for record in caplog.records if record.name == "dataproxy.route"]
    assert (
        "cannot be reached: Connection refused; the list of group 'g' in cache_dir is used, which is 0 s old" in warning
    )
    os.utime(kept, (0, 0))  # its age is what it says, not what the file system says
    kept.write_text(kept.read_text().replace('"written": ', '"written": 1e9, "old": '))
    with pytest.raises(dataproxy.DiscoveryError, match="cannot be reached"):
        dataproxy.Producer(hub.manager_url, group_id="g", cache_dir=str(folder))
    with pytest.raises(dataproxy.DiscoveryError, match="cannot be reached"):
        dataproxy.Producer(hub.manager_url, group_id="another", cache_dir=str(folder))


def test_each_protocol_has_a_kept_list_of_its_own(tmp_path):
    options = {"group_id": "g", "cache_dir": str(tmp_path)}
    with Hub() as manager, Hub() as hub:
        manager.manager.nodes = (("127.0.0.1", hub.nodes[0].tcp.port),)
        manager.manager.http_nodes = (("127.0.0.1", hub.nodes[0].http.port),)
        for protocol in ("tcp", "http"):
            dataproxy.Producer(manager.manager_url, protocol=protocol, **options).close()
        manager.close()
        assert len(list(tmp_path.iterdir())) == 2
        for protocol, listener in (("tcp", hub.nodes[0].tcp), ("http", hub.nodes[0].http)):
            with dataproxy.Producer(manager.manager_url, protocol=protocol, **options) as producer:
                assert producer.send("s", b"x").result(SECONDS).node == listener.address


def test_a_manager_that_returns_takes_the_place_of_the_kept_list(tmp_path, manager, monkeypatch):
    monkeypatch.setattr(pace, "_SOON_SECONDS", 0.01)
    monkeypatch.setattr(pace, "_SOON_MOST", 0.05)
    hub, server = manager
    port = int(hub.manager_url.rpartition(":")[2])
    dataproxy.Producer(hub.manager_url, group_id="g", cache_dir=str(tmp_path)).close()
    hub.close()
    with dataproxy.Producer(f"http://127.0.0.1:{port}", group_id="g", cache_dir=str(tmp_path)) as producer:
        producer.send("s", b"1").result(SECONDS)
        with Hub(manager_port=port) as other:
            assert eventually(lambda: addresses(producer) == {other.listeners[0].address})


def test_what_the_manager_says_of_the_group_is_no_reason_for_the_kept_list(tmp_path, manager):
    hub, _ = manager
    dataproxy.Producer(hub.manager_url, group_id="g", cache_dir=str(tmp_path)).close()
    hub.manager.denied = frozenset({"g"})
    with pytest.raises(dataproxy.DiscoveryError, match="refused group 'g'"):
        dataproxy.Producer(hub.manager_url, group_id="g", cache_dir=str(tmp_path))


def test_a_folder_that_cannot_be_written_to_hurts_nothing(tmp_path, manager, caplog):
    hub, _ = manager
    (tmp_path / "file").write_text("")
    with dataproxy.Producer(hub.manager_url, group_id="g", cache_dir=str(tmp_path / "file" / "x")) as producer:
        producer.send("s", b"1").result(SECONDS)
    assert "is not kept in cache_dir" in caplog.text


# --- credentials that rotate


def test_a_secret_in_a_file_rotates_while_a_producer_runs(tmp_path, caplog):
    path = tmp_path / "secret"
    path.write_text("me:first-s3cret")
    path.chmod(0o600)
    with (
        caplog.at_level(logging.DEBUG),
        Hub(secret_id="me", secret_key="first-s3cret") as hub,
        Scripted() as server,
        dataproxy.Producer(
            hub.manager_url, group_id="g", discovery_interval=1, manager_secret_file=str(path)
        ) as producer,
    ):
        producer.send("s", b"x").result(SECONDS)
        hub.manager.secrets = {"me": "second-s3cret"}
        assert eventually(lambda: "HTTP 403" in caplog.text)
        assert f"check the file {str(path)!r}" in caplog.text
        hub.manager.nodes = (("127.0.0.1", server.port),)
        replace(path, "me:second-s3cret\n")
        assert eventually(lambda: addresses(producer) == {server.address})
        shown = caplog.text + repr(producer) + repr(producer.config) + repr(producer.stats())
    assert "s3cret" not in shown


def test_a_function_gives_the_header(caplog):
    with Hub(secret_id="admin", secret_key="87haw3VYTPqK5fK0") as hub:
        with dataproxy.Producer(
            hub.manager_url, group_id="g", manager_auth=lambda: "Basic YWRtaW46ODdoYXczVllUUHFLNWZLMA=="
        ) as producer:
            producer.send("s", b"x").result(SECONDS)
        with pytest.raises(dataproxy.DiscoveryError, match="HTTP 403; check manager_auth"):
            dataproxy.Producer(hub.manager_url, group_id="g", manager_auth=lambda: "Basic bm86bm8=")
