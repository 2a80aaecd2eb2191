"""Transport, poller, wake-up and addresses over loopback sockets."""

import errno
import os
import signal
import socket
import threading

import pytest

from tests.native.probe_io_transport import Poll, Stream, parse_address
from tests.support.waiting import eventually

ST_OK, ST_WANT_READ, ST_WANT_WRITE, ST_EOF = 0, 2, 3, 4
ST_SYSTEM, ST_INVALID = -5, -6
READ, WRITE, HANGUP = 1, 2, 4


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    stream = Stream()
    assert stream.adopt(ours.detach()) == ST_OK
    with theirs:
        yield stream, theirs
    stream.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "10.1.2.3", "::1", "2001:db8::5"])
def test_addresses_come_back(host):
    assert parse_address(host.encode(), 46801) == (ST_OK, host, 46801)


@pytest.mark.parametrize("host", ["", "localhost", "1.2.3", "1.2.3.4.5", "::g", "127.0.0.1 "])
def test_names_and_nonsense_are_no_addresses(host):
    assert parse_address(host.encode(), 1)[0] == ST_INVALID


def test_connect_finishes_when_writable(listener):
    stream, poll = Stream(), Poll()
    status = stream.connect(b"127.0.0.1", listener.getsockname()[1])
    assert status in (ST_OK, ST_WANT_WRITE)
    poll.add(stream, 1, WRITE)
    assert poll.wait(5_000_000)[1] & WRITE
    assert stream.finish() == ST_OK
    peer, _ = listener.accept()
    with peer:
        assert stream.peer_port() == listener.getsockname()[1]
        own = socket.socket(fileno=socket.dup(stream.fileno))
        with own:
            assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
            assert own.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert own.get_inheritable() is False
    stream.close()
    assert stream.fileno == -1


def test_nagle_and_buffer_sizes_are_options(listener):
    stream = Stream()
    stream.connect(b"127.0.0.1", listener.getsockname()[1], nagle=True, send_buffer=16384, recv_buffer=16384)
    with socket.socket(fileno=socket.dup(stream.fileno)) as own:
        assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 0
        assert own.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 32768
        assert own.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 32768


def test_refused_connect_keeps_errno(listener):
    port = listener.getsockname()[1]
    listener.close()
    stream, poll = Stream(), Poll()
    status = stream.connect(b"127.0.0.1", port)
    if status == ST_WANT_WRITE:
        poll.add(stream, 1, WRITE)
        assert poll.wait(5_000_000)[1] & HANGUP
        status = stream.finish()
    assert status == ST_SYSTEM
    assert stream.error == errno.ECONNREFUSED


def test_bytes_both_ways_and_end_of_stream(pair):
    stream, theirs = pair
    assert stream.recv(10) == (ST_WANT_READ, b"")
    theirs.sendall(b"hello")
    assert stream.recv(3) == (ST_OK, b"hel")
    assert stream.recv(10) == (ST_OK, b"lo")
    assert stream.send([b"a", b"", b"bc", b"d" * 5]) == (ST_OK, 8)
    assert theirs.recv(100) == b"abcddddd"
    theirs.close()
    assert stream.recv(10) == (ST_EOF, b"")
    status, _ = stream.send([b"x"])
    assert status == ST_SYSTEM
    assert stream.error == errno.EPIPE


def test_full_socket_wants_write(pair):
    stream, theirs = pair
    total = 0
    while True:
        status, sent = stream.send([b"x" * 65536])
        if status == ST_WANT_WRITE:
            break
        total += sent
    poll = Poll()
    poll.add(stream, 5, READ | WRITE)
    assert poll.wait(0) == {}
    read = 0
    while read < total:
        read += len(theirs.recv(1 << 20))
    assert poll.wait(5_000_000) == {5: WRITE}


def test_a_socket_tells_what_the_other_host_has_not_taken(listener):
    stream, poll = Stream(), Poll()
    stream.connect(b"127.0.0.1", listener.getsockname()[1], send_buffer=65536)
    poll.add(stream, 1, WRITE)
    peer, _ = listener.accept()
    with peer:
        assert poll.wait(5_000_000)[1] & WRITE
        assert stream.finish() == ST_OK
        assert stream.held == 0
        total = 0
        while True:
            status, sent = stream.send([b"x" * 65536])
            if status == ST_WANT_WRITE:
                break
            total += sent
        assert 0 < stream.held < total
        while total:
            total -= len(peer.recv(1 << 20))
        patience = threading.Event()
        for _ in range(500):  # what was read last is acknowledged within a fraction of a second
            if stream.held == 0:
                break
            patience.wait(0.01)
        assert stream.held == 0
    stream.close()
    assert stream.held == 0


def test_poller_reports_by_interest(pair):
    stream, theirs = pair
    poll = Poll()
    assert poll.add(stream, 9, READ) == ST_OK
    assert poll.wait(0) == {}
    theirs.send(b"x")
    assert poll.wait(0) == {9: READ}
    assert poll.wait(0) == {9: READ}, "level-triggered"
    assert poll.set(stream, 9, READ | WRITE) == ST_OK
    assert poll.wait(0) == {9: READ | WRITE}
    assert poll.set(stream, 9, 0) == ST_OK
    assert poll.wait(0) == {}
    theirs.shutdown(socket.SHUT_WR)
    assert poll.wait(0) == {}, "a half-close must not spin a loop that stopped reading"
    theirs.close()
    assert poll.wait(0) == {9: HANGUP}
    poll.remove(stream)
    assert poll.wait(0) == {}


def test_wakeups_coalesce(pair):
    poll = Poll()
    assert poll.wait(0) == {}
    for _ in range(1000):
        poll.signal()
    assert poll.pending == 1
    assert poll.wait(0) == {0: READ}
    poll.clear()
    assert poll.pending == 0
    assert poll.wait(0) == {}
    poll.signal()
    assert poll.wait(0) == {0: READ}


def test_a_wakeup_is_closed_behind_those_who_signal():
    poll = Poll()
    poll.stop_signaller()
    closing = threading.Thread(target=poll.close_wakeup)
    closing.start()
    assert eventually(lambda: poll.pending == 1)  # its first step: whoever comes now writes nothing
    poll.signal()
    closing.join(0.05)
    waits = closing.is_alive()
    assert poll.resume_signaller() == 0, "the descriptor was still there"
    assert waits
    closing.join(20)
    assert not closing.is_alive()
    poll.signal()


def test_a_forked_child_does_not_wait_for_signals_of_its_parent():
    poll = Poll()
    poll.stop_signaller()
    child = os.fork()
    if child == 0:
        poll.close_wakeup()
        os._exit(0)
    ended = eventually(lambda: os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT))
    if not ended:
        os.kill(child, signal.SIGKILL)
    poll.resume_signaller()  # first: the end of `poll` waits for it
    assert os.waitpid(child, 0)[1] == 0


def test_wakeup_ends_a_wait_of_another_thread():
    poll = Poll()
    seen = []
    thread = threading.Thread(target=lambda: seen.append(poll.wait(60_000_000)))
    thread.start()
    poll.signal()
    thread.join(30)
    assert seen == [{0: READ}]
