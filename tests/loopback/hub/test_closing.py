"""A hub that is closed in the middle of a load: what it stored is acknowledged, what it did not store is sent again."""

import itertools
import signal
import socket
import threading

import pytest

from dataproxy import Producer
from dataproxy.hub import Hub, open_store
from tests.loopback.hub.peer import binary_frame, wait_until


def keep_sending(connection: socket.socket, ended: threading.Event) -> None:
    """Send numbered requests without waiting for answers until the other side has ended the stream."""
    parts = [b"".join(binary_frame(n, [b"%d" % n]) for n in range(first, first + 100)) for first in range(0, 2000, 100)]
    for part in itertools.cycle(parts):
        if ended.is_set():
            return
        try:
            connection.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            return  # the hub closed its side for good before this thread was told


def read_acks(connection: socket.socket, ended: threading.Event) -> list[int]:
    """Return the numbers of acknowledged requests, up to the end of the stream; a reset is an error."""
    received = b""
    try:
        while part := connection.recv(1 << 20):
            received += part
    finally:
        ended.set()
    acked, place = [], 0
    while place < len(received):
        end = place + 4 + int.from_bytes(received[place : place + 4], "big")
        assert b"errCode" not in received[place:end]
        acked.append(int.from_bytes(received[place + 5 : place + 9], "big"))
        place = end
    assert place == len(received), "the last ack is whole"
    return acked


@pytest.mark.parametrize("threads", [1, 2])
def test_a_peer_that_goes_on_sending_gets_every_ack_and_an_orderly_end(tmp_path, threads):
    hub = Hub(tmp_path / "store", threads=threads)
    ended = threading.Event()
    with socket.create_connection(("127.0.0.1", hub.port), timeout=30) as one:
        sender = threading.Thread(target=keep_sending, args=(one, ended))
        sender.start()
        wait_until(lambda: hub.stats()["frames"] > 500)
        closing = threading.Thread(target=hub.close)
        closing.start()
        acked = read_acks(one, ended)
        sender.join()
    closing.join()
    with open_store(tmp_path / "store") as store:
        stored = [int(record.body) for record in store.records("g", "s")]
    assert acked == stored
    assert len(stored) > 500


def test_a_silent_peer_does_not_keep_the_hub_open(start_hub, connect):
    hub = start_hub()
    connection = connect(hub)
    wait_until(lambda: hub.stats()["connections"] == 1)
    hub.close()
    assert connection.recv(1) == b""


def test_a_hub_that_ends_refuses_connections_at_once(start_hub, connect):
    hub = start_hub()
    connection = connect(hub)
    wait_until(lambda: hub.stats()["connections"] == 1)
    closing = threading.Thread(target=hub.close)
    closing.start()
    assert connection.recv(1) == b"", "the hub has told its peers that it ends"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", hub.port), timeout=30)
    connection.close()
    closing.join()


def test_a_producer_sees_no_duplicates_when_hubs_follow_each_other_on_one_store(tmp_path):
    hub = Hub(tmp_path / "store", threads=2)
    port, count = hub.port, 0
    with Producer(hub.target, group_id="g", linger=0.0, batch_messages=20, reconnect_backoff=0.01) as producer:
        for _ in range(4):
            for _ in range(20_000):
                producer.send_nowait("s", b"%d" % count)
                count += 1
            hub.close()
            hub = Hub(tmp_path / "store", port=port, threads=2)
        report = producer.flush()
    hub.close()
    with open_store(tmp_path / "store") as store:
        stored = [int(record.body) for record in store.records("g", "s")]
    assert (report.delivered, len(stored)) == (count, count)
    assert sorted(stored) == list(range(count))


def test_what_a_signal_handler_raises_in_a_close_leaves_nothing_open(tmp_path, monkeypatch):
    """As Ctrl-C does: it is raised when all threads have ended and the store is closed."""

    def interrupt(number, frame):
        raise KeyboardInterrupt

    hub = Hub(tmp_path / "store")
    close = hub._manager.close

    def disturbed():
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
        close()

    monkeypatch.setattr(hub._manager, "close", disturbed)
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            hub.close()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not any(thread.is_alive() for thread in hub._threads)
    with Hub(tmp_path / "store"):
        pass
