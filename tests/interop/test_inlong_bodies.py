"""InLong's own classes read what we send and store, and we read what they write."""

import socketserver
import struct
import threading

import pytest

import dataproxy
from dataproxy._core.server.store.view import StoreView
from dataproxy._core.wire.inlong import message
from dataproxy.hub import Hub

BODIES = [b"hello", b"in long", b"\x00\x01\xff", "größer".encode(), b"x" * 5000, b"a\nb"]
FORMS = [(7, "none"), (7, "snappy"), (5, "none"), (5, "snappy")]


class _Recorder(socketserver.BaseRequestHandler):
    """Keep every data frame and acknowledge it."""

    def handle(self) -> None:
        stream = self.request.makefile("rb")
        while True:
            head = stream.read(4)
            if len(head) < 4:
                return
            frame = head + stream.read(struct.unpack(">I", head)[0])
            self.server.frames.append(frame)
            if frame[4] & 0x1F == 7:
                reply = struct.pack(">IB4sHH", 9, 7, frame[17:21], 0, 0xEE01)
            else:
                attrs = _text_parts(frame)[1]
                mid = b"mid=" + attrs.split(b"mid=")[1].split(b"&")[0]
                reply = struct.pack(">IBI1sI", 10 + len(mid), frame[4], 1, b"2", len(mid)) + mid
            self.request.sendall(reply)


def _text_parts(frame: bytes) -> tuple[bytes, bytes]:
    size = struct.unpack(">I", frame[5:9])[0]
    return frame[9 : 9 + size], frame[13 + size :]


@pytest.fixture
def recorder():
    """Run a proxy that keeps frames."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Recorder) as server:
        server.daemon_threads = True
        server.frames = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def _pack_body(frame: bytes) -> tuple[bytes, bool]:
    """Return the items of a frame and whether they are compressed."""
    if frame[4] & 0x1F == 7:
        size = struct.unpack(">I", frame[21:25])[0]
        return frame[25 : 25 + size], bool(frame[4] & 0x20)
    body, attrs = _text_parts(frame)
    return body, b"cp=snappy" in attrs


@pytest.mark.parametrize(("kind", "compression"), FORMS)
def test_inlong_decodes_the_packs_of_our_producer(recorder, body_driver, tmp_path, kind, compression):
    target = f"tcp://127.0.0.1:{recorder.server_address[1]}"
    options = {"message_type": kind, "compression": compression, "compression_min_bytes": 1}
    with dataproxy.Producer(target, group_id="g", **options) as producer:
        producer.send_batch("s", BODIES)
    (frame,) = recorder.frames
    body, compressed = _pack_body(frame)
    assert compressed == (compression == "snappy")
    path = tmp_path / "pack"
    path.write_bytes(body)
    lines = body_driver("pack", path, f"snappy={str(compressed).lower()}")
    assert [line["body"] for line in lines] == BODIES


@pytest.mark.parametrize("compress_entries", [True, False])
@pytest.mark.parametrize(("kind", "compression"), FORMS)
def test_inlong_decodes_what_our_hub_stores(body_driver, tmp_path, kind, compression, compress_entries):
    store = tmp_path / "store"
    options = {"message_type": kind, "compression": compression, "compression_min_bytes": 1}
    with (
        Hub(store, compress_entries=compress_entries) as hub,
        dataproxy.Producer(hub.target, group_id="g", **options) as producer,
    ):
        producer.send_batch("s", BODIES)
    view = StoreView.open(str(store))
    try:
        ((_, _, value),) = view.read("g", 0, 0)
    finally:
        view.close()
    path = tmp_path / "message"
    path.write_bytes(value)
    head, *lines = body_driver("message", path)
    assert head["version"] == (4 if kind == 7 else 1)
    assert [line["body"] for line in lines] == BODIES
    attrs = dict(part.split("=") for part in lines[0]["attributes"].split("&"))
    assert attrs["groupId"] == "g"
    assert attrs["streamId"] == "s"


@pytest.mark.parametrize("compress", ["true", "false"])
def test_we_decode_what_inlong_encodes(body_driver, tmp_path, compress):
    path = tmp_path / "made"
    attrs = "groupId=g&streamId=s&dt=1700000000000"
    bodies = ["hello", "in long", "größer", "x" * 5000]
    body_driver("make", path, attrs, *bodies, f"compress={compress}")
    found = message.decode(path.read_bytes())
    (group,) = found.groups
    assert group.records == [body.encode() for body in bodies]
    assert group.attrs == {"groupId": "g", "streamId": "s", "dt": "1700000000000"}
