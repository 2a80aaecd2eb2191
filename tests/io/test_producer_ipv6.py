"""Proxies and Managers by IPv6 address."""

import socket

import pytest

import dataproxy
from dataproxy.hub import Hub


def has_loopback() -> bool:
    """Tell whether this machine has the address ::1."""
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_loopback(), reason="no IPv6 loopback")
@pytest.mark.parametrize("way", ["target", "manager_url"])
def test_messages_reach_a_hub_on_the_ipv6_loopback(way):
    with Hub(host="::1") as hub:
        with dataproxy.Producer(getattr(hub, way), group_id="g") as producer:
            node = producer.send("s", b"hello").result(10).node
        assert node == hub.target.removeprefix("tcp://")
        assert [record.body for record in hub.records("g", "s")] == [b"hello"]
