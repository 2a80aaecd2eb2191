"""The TCP fault proxy in front of an echo server: what the client sees, to the byte."""

import fcntl
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from dataproxy.errors import ClosedError, ConfigError, HubError
from dataproxy.testing import FaultProxy, ProxyFault
from tests.loopback.hub.peer import read_all, read_exactly, wait_until

DATA = bytes(range(256)) * 4


class _Echo(socketserver.BaseRequestHandler):
    def handle(self):
        try:
            while part := self.request.recv(65536):
                self.server.got += part
                self.request.sendall(part)
        except OSError:
            self.server.resets += 1


class Echo(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    got = b""
    resets = 0


@pytest.fixture
def echo() -> Iterator[Echo]:
    with Echo(("127.0.0.1", 0), _Echo) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def proxy(echo) -> Iterator[FaultProxy]:
    with FaultProxy(f"127.0.0.1:{echo.server_address[1]}") as one:
        yield one


@pytest.fixture
def dial(proxy) -> Iterator[Callable[[], socket.socket]]:
    opened = []

    def open_one() -> socket.socket:
        opened.append(socket.create_connection((proxy.host, proxy.port), timeout=30))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


def silent(connection: socket.socket) -> bool:
    """Tell whether nothing can be read now."""
    connection.setblocking(False)
    try:
        connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    finally:
        connection.settimeout(30)
    return False


def test_without_faults_bytes_and_ends_pass(proxy, dial):
    big = DATA * 5000
    c = dial()
    sender = threading.Thread(target=c.sendall, args=(big,))
    sender.start()
    assert read_exactly(c, len(big)) == big
    sender.join()
    c.shutdown(socket.SHUT_WR)
    assert c.recv(1) == b""
    wait_until(lambda: proxy.open_connections == 0)
    assert proxy.connections == 1


@pytest.mark.parametrize("side", ["to_server", "to_client"])
def test_a_reset_behind_a_byte(echo, proxy, dial, side):
    proxy.add("reset", side=side, at_byte=100)
    c = dial()
    c.sendall(DATA)
    assert read_all(c) == DATA[:100] if side == "to_client" else len(read_all(c)) <= 100
    if side == "to_server":
        wait_until(lambda: echo.resets == 1)
        assert echo.got == DATA[:100]


def test_a_reset_is_a_reset(proxy, dial):
    proxy.add("reset", side="to_server")
    with pytest.raises(ConnectionResetError):
        dial().recv(1)


def test_a_close_behind_a_byte(proxy, dial):
    with proxy.fault("close", side="to_client", at_byte=10) as armed:
        c = dial()
        c.sendall(b"x" * 10)
        assert read_exactly(c, 10) == b"x" * 10
        assert c.recv(1) == b""
        assert armed.fired == 1


def test_a_half_close_leaves_the_other_direction(echo, proxy, dial):
    proxy.add("half_close", side="to_client", at_byte=10)
    c = dial()
    c.sendall(b"x" * 20)
    assert read_all(c) == b"x" * 10
    c.sendall(b"y" * 5)
    wait_until(lambda: echo.got == b"x" * 20 + b"y" * 5)


@pytest.mark.parametrize("mask", [0x01, 0xFF])
def test_a_corrupt_byte(proxy, dial, mask):
    with proxy.fault("corrupt", side="to_server", at_byte=513, mask=mask) as armed:
        c = dial()
        c.sendall(DATA[:300])
        received = read_exactly(c, 300)
        c.sendall(DATA[300:])
        received += read_exactly(c, len(DATA) - 300)
        expected = bytearray(DATA)
        expected[512] ^= mask
        assert received == expected
        assert armed.fired == 1


@pytest.mark.parametrize("side", ["to_server", "to_client", "both"])
def test_a_frozen_direction_goes_on_where_it_stopped(echo, proxy, dial, side):
    c = dial()
    with proxy.fault("freeze", side=side, at_byte=100) as armed:
        c.sendall(DATA)
        assert read_exactly(c, 100) == DATA[:100]
        wait_until(lambda: armed.fired >= 1)
        assert silent(c)
        wait_until(lambda: echo.got == (DATA if side == "to_client" else DATA[:100]))
    assert read_exactly(c, len(DATA) - 100) == DATA[100:]


def held(sock: socket.socket) -> int:
    """Return the bytes that the peer's host has not acknowledged."""
    return int.from_bytes(fcntl.ioctl(sock, 0x5411, bytes(4)), sys.byteorder)  # SIOCOUTQ


@pytest.mark.parametrize("side", ["to_server", "to_client", "both"])
def test_a_host_that_vanishes_acknowledges_nothing(echo, proxy, dial, side):
    c = dial()
    c.sendall(DATA[:10])
    assert read_exactly(c, 10) == DATA[:10]
    wait_until(lambda: held(c) == 0)
    with proxy.fault("vanish", side=side):
        c.sendall(DATA[10:])
        assert silent(c)
        if side == "to_client":
            wait_until(lambda: echo.got == DATA)
            dial()
        else:
            assert held(c) == len(DATA) - 10
            assert echo.got == DATA[:10]
            with pytest.raises(TimeoutError):
                socket.create_connection((proxy.host, proxy.port), timeout=0.2)
    assert read_exactly(c, len(DATA) - 10) == DATA[10:], "what was lost is sent again"
    d = dial()
    d.sendall(b"x")
    assert d.recv(1) == b"x"


def test_a_host_may_vanish_behind_a_byte_and_for_one_connection(echo, proxy, dial):
    with proxy.fault("vanish", connection=1, side="to_server", at_byte=100) as armed:
        c, d = dial(), dial()
        c.sendall(DATA)
        assert read_exactly(c, 100) == DATA[:100]
        wait_until(lambda: armed.fired == 1)
        assert silent(c)
        d.sendall(b"x")
        assert d.recv(1) == b"x"
    assert read_exactly(c, len(DATA) - 100) == DATA[100:]


def test_delayed_bytes_go_when_the_fault_is_taken_back(proxy, dial):
    c = dial()
    with proxy.fault("delay", side="to_client", seconds=0) as armed:
        c.sendall(DATA)
        wait_until(lambda: armed.fired > 0)
        assert silent(c)
    assert read_exactly(c, len(DATA)) == DATA


def test_a_short_delay_and_a_bandwidth_lose_nothing(proxy, dial):
    proxy.add("delay", seconds=0.005)
    proxy.add("bandwidth", side="to_server", bytes_per_second=20_000)
    c = dial()
    c.sendall(DATA)
    assert read_exactly(c, len(DATA)) == DATA


def test_slices(proxy, dial):
    with proxy.fault("slice", side="to_client") as armed:
        c = dial()
        c.sendall(DATA)
        assert read_exactly(c, len(DATA)) == DATA
        assert armed.fired >= len(DATA)


def test_refused_connections_and_the_port_afterwards(proxy, dial):
    c = dial()
    with proxy.fault("refuse"):
        with pytest.raises(ConnectionRefusedError):
            dial()
        c.sendall(b"x")
        assert c.recv(1) == b"x"
    d = dial()
    d.sendall(b"y")
    assert d.recv(1) == b"y"


def test_chosen_connections(proxy, dial):
    proxy.add("close", connection=2)
    proxy.add("close", every=5, times=1)
    alive = []
    for _ in range(10):
        c = dial()
        c.sendall(b"x")
        alive.append(read_all(c) if len(alive) in (1, 4) else c.recv(1))
    assert alive == [b"x", b"", b"x", b"x", b"", b"x", b"x", b"x", b"x", b"x"]


def test_a_seed_repeats_itself(echo):
    def fates() -> list[bytes]:
        with FaultProxy(f"tcp://127.0.0.1:{echo.server_address[1]}") as proxy:
            proxy.add("close", share=0.5, seed=7)
            found = []
            for _ in range(20):
                with socket.create_connection((proxy.host, proxy.port), timeout=30) as c:
                    c.sendall(b"x")
                    found.append(c.recv(1))
            return found

    first = fates()
    assert fates() == first
    assert set(first) == {b"", b"x"}


def test_a_server_that_is_gone_resets_the_client():
    with socket.socket() as placeholder:
        placeholder.bind(("127.0.0.1", 0))
        with (
            FaultProxy(f"127.0.0.1:{placeholder.getsockname()[1]}") as proxy,
            pytest.raises(ConnectionResetError),
            socket.create_connection((proxy.host, proxy.port), timeout=30) as c,
        ):
            c.recv(1)


def test_reset_all_and_use_after_close(proxy, dial):
    c = dial()
    c.sendall(b"x")
    assert c.recv(1) == b"x"
    proxy.reset_all()
    with pytest.raises(ConnectionResetError):
        c.recv(1)
    proxy.add("close")
    proxy.clear()
    proxy.close()
    proxy.close()
    with pytest.raises(ClosedError):
        proxy.add("close")


@pytest.mark.parametrize(
    ("kind", "options", "text"),
    [
        ("resett", {}, "did you mean 'reset'"),
        ("reset", {"at_bytes": 1}, "did you mean 'at_byte'"),
        ("reset", {"seconds": 1.0}, "takes no seconds"),
        ("reset", {"side": "up"}, "side='up'"),
        ("reset", {"at_byte": -1}, "at_byte=-1"),
        ("reset", {"every": True}, "every=True"),
        ("reset", {"share": 1.5}, "share=1.5"),
        ("corrupt", {}, "needs at_byte"),
        ("corrupt", {"at_byte": 0}, "counted from 1"),
        ("delay", {}, "needs seconds"),
        ("refuse", {"connection": 1}, "holds for all connections"),
    ],
)
def test_wrong_faults_are_named(kind, options, text):
    with pytest.raises(ConfigError, match=text):
        ProxyFault._of(kind, options)


def test_wrong_addresses_are_named():
    for wrong in ("", "host", "host:0", "host:port", "tcp://a:1,b:2x"):
        with pytest.raises(ConfigError):
            FaultProxy(wrong)
    with FaultProxy("127.0.0.1:9") as first, pytest.raises(HubError):
        FaultProxy("127.0.0.1:9", port=first.port)
