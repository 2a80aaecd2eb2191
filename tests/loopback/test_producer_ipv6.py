"""Proxies and Managers by IPv6 address."""

import socket

import pytest

import dataproxy
from dataproxy.hub import Hub
from tests.support.ipv6 import needs_ipv6


@needs_ipv6
@pytest.mark.parametrize("way", ["target", "manager_url"])
def test_messages_reach_a_hub_on_the_ipv6_loopback(way):
    with Hub(host="::1") as hub:
        with dataproxy.Producer(getattr(hub, way), group_id="g") as producer:
            node = producer.send("s", b"hello").result(10).node
        assert node == hub.target.removeprefix("tcp://")
        assert [record.body for record in hub.records("g", "s")] == [b"hello"]


@needs_ipv6
def test_a_name_with_both_addresses_is_reached_where_only_ipv6_answers(monkeypatch):
    usual = socket.getaddrinfo

    def getaddrinfo(host, port, *rest, **options):
        if host != "both.test":
            return usual(host, port, *rest, **options)
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", port, 0, 0)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # not listening: nobody answers there, and no other process gets this port
        with (
            Hub(host="::1", port=taken.getsockname()[1]) as hub,
            dataproxy.Producer(f"tcp://both.test:{hub.port}", group_id="g", reconnect_backoff="10ms") as producer,
        ):
            assert producer.send("s", b"hello").result(30).attempts == 1
            assert [record.body for record in hub.records("g", "s")] == [b"hello"]
