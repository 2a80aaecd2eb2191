"""A hub on a name that has an IPv4 and an IPv6 address: both are listened on, at the same ports, by data and HTTP."""

import errno
import socket
from http.client import HTTPConnection
from urllib.request import urlopen

import pytest

from dataproxy import Producer
from dataproxy.errors import ConfigError, HubError
from dataproxy.hub import addresses
from tests.loopback.hub.peer import wait_until
from tests.support.ipv6 import needs_ipv6
from tests.support.ports import HeldPorts

BOTH = ("127.0.0.1", "::1")
NAME = "both.test"

pytestmark = needs_ipv6


@pytest.fixture
def point_name(monkeypatch):
    """Return a function that gives NAME its addresses, IPv6 ones first."""
    usual = socket.getaddrinfo

    def point(*addresses):
        def getaddrinfo(host, port, *rest, **options):
            if host != NAME:
                return usual(host, port, *rest, **options)
            found = [answer for one in addresses for answer in usual(one, port, *rest, **options)]
            return sorted(found, key=lambda answer: answer[0] != socket.AF_INET6)

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    point(*BOTH)
    return point


def bracketed(address):
    return f"[{address}]" if ":" in address else address


def refuses(address, port):
    """Tell whether nobody takes connections there."""
    try:
        socket.create_connection((address, port), timeout=30).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.usefixtures("point_name")
@pytest.mark.parametrize("way", ["tcp", "manager"])
def test_messages_arrive_by_both_families_on_one_port(start_hub, way):
    hub = start_hub(host=NAME, nodes=2)
    for address in BOTH:
        host = bracketed(address)
        target = f"tcp://{host}:{hub.port}" if way == "tcp" else f"http://{host}:{hub.manager_port}"
        with Producer(target, group_id="g") as producer:
            node = producer.send("s", b"x").result(30).node
        assert node in {f"{host}:{one.port}" for one in hub.listeners}, "the Manager names the family it is asked by"
        *_, record = hub.records("g", "s")
        assert record.source == address
    assert hub.host == "127.0.0.1"
    assert hub.target == ",".join(one.target if i == 0 else one.address for i, one in enumerate(hub.listeners))


@pytest.mark.usefixtures("point_name")
def test_a_listener_is_refused_killed_and_restarted_in_both_families(start_hub):
    hub = start_hub(host=NAME, nodes=2)
    one, other = hub.listeners
    with hub.faults.add("refuse_connections", listener=0):
        assert [refuses(address, one.port) for address in BOTH] == [True, True]
        assert [refuses(address, other.port) for address in BOTH] == [False, False]
    assert [refuses(address, one.port) for address in BOTH] == [False, False]
    wait_until(lambda: one.accepted == 2)
    peers = [socket.create_connection((address, one.port), timeout=30) for address in BOTH]
    bystanders = [socket.create_connection((address, other.port), timeout=30) for address in BOTH]
    wait_until(lambda: one.accepted == 4)  # the kernel alone knows of a connection that waits: it would reset it
    with hub.faults.add("kill", listener=0):
        assert [peer.recv(1) for peer in peers] == [b"", b""]
        assert [refuses(address, one.port) for address in BOTH] == [True, True]
    assert [refuses(address, one.port) for address in BOTH] == [False, False]
    for peer in bystanders:
        peer.setblocking(False)
        with pytest.raises(BlockingIOError):
            peer.recv(1)
    for peer in peers + bystanders:
        peer.close()


@pytest.mark.usefixtures("point_name")
def test_a_closed_hub_listens_in_no_family(start_hub):
    hub = start_hub(host=NAME)
    ports = (hub.port, hub.manager_port)
    hub.close()
    assert all(refuses(address, port) for address in BOTH for port in ports)


@pytest.mark.usefixtures("point_name")
@pytest.mark.parametrize("option", ["port", "manager_port"])
@pytest.mark.parametrize("taken", BOTH)
def test_a_port_that_is_taken_in_one_family_is_told_and_free_again_in_the_other(start_hub, option, taken):
    family = socket.AF_INET6 if ":" in taken else socket.AF_INET
    ports = HeldPorts(*BOTH)
    port = ports.take()
    with socket.create_server((taken, port), family=family):
        with pytest.raises(HubError, match=f"cannot listen on {NAME}:{port}: Address already in use") as caught:
            start_hub(host=NAME, **{option: port})
        assert caught.value.code == "LISTEN"
    start_hub(host=NAME, **{option: port})
    ports.close()


def test_a_free_port_is_free_in_both_families(monkeypatch):
    """The kernel chooses a port for IPv4 that is taken in IPv6: another one is taken."""
    refused = []

    class Crowded(socket.socket):
        def bind(self, where):
            if self.family == socket.AF_INET6 and len(refused) < 3:
                refused.append(where[1])
                raise OSError(errno.EADDRINUSE, "Address already in use")
            super().bind(where)

    monkeypatch.setattr(addresses.socket, "socket", Crowded)
    four, six = addresses.bind_all(BOTH, 0)
    with four, six:
        port = four.getsockname()[1]
        assert port == six.getsockname()[1]
    refused.clear()
    with pytest.raises(OSError, match="in use"):
        addresses.bind_all(BOTH, port)
    assert len(refused) == 1, "a port that was asked for is tried once"


@pytest.mark.parametrize(("found", "left"), [(("127.0.0.1", "2001:db8::1"), 0), (("192.0.2.1", "::1"), 1)])
def test_an_address_that_the_machine_does_not_have_is_left_out(start_hub, point_name, caplog, found, left):
    point_name(*found)
    with caplog.at_level("WARNING", logger="dataproxy.hub"):
        hub = start_hub(host=NAME)
    assert hub.host == found[left]
    assert f"this machine has no address {found[1 - left]}" in caplog.text
    with Producer(hub.target, group_id="g") as producer:
        assert producer.send("s", b"x").result(30)


def test_a_name_without_an_address_of_this_machine_is_told(start_hub, point_name):
    point_name("192.0.2.1", "2001:db8::1")
    with pytest.raises(HubError, match="this machine has no such address") as caught:
        start_hub(host=NAME, insecure=True)
    assert caught.value.code == "LISTEN"


@pytest.mark.parametrize("found", [("0.0.0.0", "::1"), ("127.0.0.1", "::")])
def test_one_family_beyond_loopback_needs_credentials(start_hub, point_name, found):
    point_name(*found)
    with pytest.raises(ConfigError, match="without credentials") as caught:
        start_hub(host=NAME)
    assert caught.value.code == "INSECURE"
    hub = start_hub(host=NAME, insecure=True)
    for address in BOTH:
        with urlopen(f"http://{bracketed(address)}:{hub.manager_port}/healthz", timeout=30) as answer:
            assert answer.status == 200


@pytest.mark.usefixtures("point_name")
def test_the_name_itself_may_be_asked_for_in_both_families(start_hub):
    hub = start_hub(host=NAME)
    for address in BOTH:
        connection = HTTPConnection(address, hub.manager_port, timeout=30)
        connection.request("GET", "/hub/stats", headers={"Host": NAME})
        assert connection.getresponse().status == 200
        connection.close()
