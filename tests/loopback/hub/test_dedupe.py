"""The de-duplication window through the hub's DataProxy port: raw frames, and a producer that sends again."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from dataproxy import Producer
from dataproxy._core.wire.inlong import message
from dataproxy.hub import Hub
from tests.loopback.hub.peer import read_frame, wait_until


def frame(uniq: int, items: list, sid: str | None = "p", group: str = "g", stream: str = "s") -> bytes:
    """Return a frame of type 7; items are bodies, or (body, attributes)."""
    attrs = {"groupId": group, "streamId": stream, **({"sid": sid} if sid else {})}
    return message.encode(4, [(attrs, items)], create_time_ms=1_700_000_000_000, seq=uniq)[2:-2]


def text_frame(kind: int, body: bytes, sid: str) -> bytes:
    """Return a frame of a text type."""
    attrs = f"groupId=g&streamId=s&dt=1700000000000&mid=1&cnt=1&sid={sid}".encode()
    rest = bytes([kind]) + len(body).to_bytes(4, "big") + body + len(attrs).to_bytes(4, "big") + attrs
    return len(rest).to_bytes(4, "big") + rest


def bodies(hub: Hub) -> list[bytes]:
    return [record.body for record in hub.records("g")]


@pytest.fixture(params=[True, False], ids=["durable", "memory"])
def dedupe_hub(request, start_hub, tmp_path) -> Hub:
    return start_hub(tmp_path / "store" if request.param else None, dedupe="ids")


@pytest.fixture
def ask(connect) -> Callable[[Hub, bytes], bytes]:
    """Return a function that sends a frame over the test's connection and returns the answer, which is a success."""
    opened: list[socket.socket] = []

    def ask_one(hub: Hub, request: bytes) -> bytes:
        if not opened:
            opened.append(connect(hub))
        opened[0].sendall(request)
        reply = read_frame(opened[0])
        assert b"errCode" not in reply
        return reply

    return ask_one


def test_a_frame_that_comes_again_is_answered_and_stored_once(dedupe_hub, ask):
    first = ask(dedupe_hub, frame(7, [b"a", b"b"]))
    again = ask(dedupe_hub, frame(7, [b"a", b"b"]))
    assert b"dpIp=127.0.0.1&dup=600,0,0&" in first
    assert b"dpIp=127.0.0.1&dup=600,2,0&" in again
    assert bodies(dedupe_hub) == [b"a", b"b"]
    stats = dedupe_hub.stats()
    assert (stats["duplicates"], stats["conflicts"], stats["frames"]) == (2, 0, 2)
    assert (stats["entries"], stats["records"], stats["replies"]) == (1, 2, 2)
    assert dedupe_hub.counts()["g", "s"][:2] == (1, 2)


def test_a_burst_of_copies_is_stored_once(dedupe_hub, connect):
    connection = connect(dedupe_hub)
    connection.sendall(b"".join(frame(i, [b"%d" % (i % 3)], f"p{i % 3}") for i in range(300)))
    for _ in range(300):
        assert b"errCode" not in read_frame(connection)
    assert bodies(dedupe_hub) == [b"0", b"1", b"2"]
    assert dedupe_hub.stats()["duplicates"] == 297


def test_of_a_mixed_frame_only_the_new_messages_are_stored(dedupe_hub, ask):
    ask(dedupe_hub, frame(1, [(b"1", {"msgid": "x"})], "p"))
    ask(dedupe_hub, frame(2, [(b"1", {"msgid": "x"}), (b"2", {"k": "v"}), (b"3", {"msgid": "y"})], "q"))
    ask(dedupe_hub, frame(2, [(b"1", {"msgid": "x"}), (b"2", {"k": "v"}), (b"3", {"msgid": "y"})], "q"))
    found = [(r.body, r.attrs["msgid"], r.message_id) for r in dedupe_hub.records("g")]
    assert found == [(b"1", "x", "x"), (b"2", "q.1", "q.1"), (b"3", "y", "y")]
    assert dedupe_hub.stats()["records"] == 3


def test_the_same_id_with_another_body_is_answered_and_counted_and_the_first_one_stays(dedupe_hub, ask):
    for body in (b"1", b"2", b"1"):
        ask(dedupe_hub, frame(1, [(body, {"msgid": "x"})], None))
    assert bodies(dedupe_hub) == [b"1"]
    stats = dedupe_hub.stats()
    assert (stats["duplicates"], stats["conflicts"], stats["records"]) == (1, 1, 1)


@pytest.mark.parametrize("durable", [True, False])
def test_where_both_are_wanted_the_same_id_with_another_body_is_stored_too(start_hub, ask, tmp_path, durable):
    hub = start_hub(tmp_path / "store" if durable else None, dedupe="ids", dedupe_conflict="both")
    for body in (b"1", b"2", b"1"):
        ask(hub, frame(1, [(body, {"msgid": "x"})], None))
    assert bodies(hub) == [b"1", b"2"]
    assert (hub.stats()["duplicates"], hub.stats()["conflicts"]) == (1, 1)


def test_a_message_whose_id_a_producer_made_is_stored_under_it_with_another_body_too(dedupe_hub):
    with Producer(dedupe_hub.target, group_id="g") as producer:
        producer.send("s", b"1")
        producer.flush()
        (name,) = [record.message_id for record in dedupe_hub.records("g")]
        for body in (b"2", b"3"):
            producer.send("s", body, message_id=name)
            producer.flush()
    assert sorted(bodies(dedupe_hub)) == [b"1", b"2", b"3"]
    assert dedupe_hub.stats()["conflicts"] == 1


def test_after_a_restart_the_first_body_of_an_id_stays(start_hub, connect, tmp_path):
    for run in range(3):
        hub = start_hub(tmp_path / "store", dedupe="ids")
        connection = connect(hub)
        connection.sendall(frame(1, [(b"%d" % run, {"msgid": "x"})], None))
        assert b"errCode" not in read_frame(connection)
        assert bodies(hub) == [b"0"]
        assert hub.stats()["conflicts"] == int(run > 0)
        connection.close()
        hub.close()


@pytest.mark.parametrize(("kind", "body"), [(3, b"a\nb"), (5, b"\0\0\0\1a\0\0\0\1b"), (6, b"\0\0\0\1a\0\0\0\3k=v")])
def test_text_frames_have_ids_too(dedupe_hub, ask, kind, body):
    ask(dedupe_hub, text_frame(kind, body, "p"))
    before = bodies(dedupe_hub)
    ask(dedupe_hub, text_frame(kind, body, "p"))
    assert bodies(dedupe_hub) == before
    ask(dedupe_hub, text_frame(kind, body, "q"))
    assert bodies(dedupe_hub) == 2 * before


def test_without_an_id_and_without_the_option_everything_is_stored(dedupe_hub, start_hub, ask, connect):
    for _ in range(2):
        ask(dedupe_hub, frame(1, [b"a"], None))
    assert bodies(dedupe_hub) == [b"a", b"a"]
    plain = start_hub()
    connection = connect(plain)
    for _ in range(2):
        connection.sendall(frame(1, [b"a"]))
        read_frame(connection)
    assert bodies(plain) == [b"a", b"a"]
    assert (plain.stats()["duplicates"], plain.stats()["conflicts"]) == (0, 0)


def test_the_window_is_there_after_a_restart(start_hub, connect, tmp_path):
    for run in range(3):
        hub = start_hub(tmp_path / "store", dedupe="ids")
        connection = connect(hub)
        connection.sendall(frame(1, [b"a"]) + frame(2, [b"%d" % run], f"run{run}"))
        read_frame(connection)
        read_frame(connection)
        assert bodies(hub) == [b"a", *(b"%d" % i for i in range(run + 1))]
        connection.close()
        hub.close()


class Forwarder:
    """Stand in front of a hub and keep its answers on the first connections to itself.

    Such a connection ends with the first answer, which the producer never sees.
    """

    def __init__(self, port: int, silent: int) -> None:
        self._to = port
        self._silent = silent
        self._opened: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._to))
            self._opened += [near, far]
            silent, self._silent = self._silent > 0, self._silent - 1
            threading.Thread(target=self._pump, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(far, near, silent), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, silent: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if silent:
                    break
                sink.sendall(data)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Accept no more and let go of every connection."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        for one in self._opened:
            one.close()


@pytest.fixture
def forward() -> Iterator[Callable[[Hub, int], Forwarder]]:
    """Return a function that puts a forwarder in front of a hub."""
    made: list[Forwarder] = []

    def start(hub: Hub, silent: int) -> Forwarder:
        made.append(Forwarder(hub.port, silent))
        return made[-1]

    yield start
    for one in made:
        one.close()


def test_what_a_producer_sends_again_is_stored_once(dedupe_hub, forward):
    front = forward(dedupe_hub, 3)
    options = {"connections": 1, "heartbeat": "off", "reconnect_backoff": 0.01, "retry_backoff": 0.01}
    with Producer(f"tcp://127.0.0.1:{front.port}", group_id="g", **options) as producer:
        for i in range(20):
            producer.send("s", b"%d" % i)
            producer.flush()
        report = producer.flush()
    assert (report.delivered, report.failed) == (20, 0)
    assert report.retries > 0
    wait_until(lambda: dedupe_hub.stats()["duplicates"] > 0)
    assert bodies(dedupe_hub) == [b"%d" % i for i in range(20)]
    assert dedupe_hub.stats()["conflicts"] == 0
