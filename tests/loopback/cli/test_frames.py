"""``dataproxy frames`` prints what a producer and a hub really send each other."""

import contextlib
import json
import socket
import threading

import pytest
from typer.testing import CliRunner

from dataproxy import Producer
from dataproxy.cli.app import app
from dataproxy.hub import Hub
from tests.native.probe_wire import Wire

WAIT_S = 30
BODIES = [b"a", b"b" * 2000, "中".encode() * 300]


class Capture:
    """A TCP proxy for a hub that keeps the bytes of each direction of each connection."""

    def __init__(self, target):
        host, port = target.removeprefix("tcp://").rsplit(":", 1)
        self.upstream = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(WAIT_S)
        self.target = f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"
        self.requests, self.answers = [], []
        self.threads, self.sockets = [], []
        self._start(self._accept)

    def _start(self, work, *arguments):
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self.threads.append(thread)
        thread.start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near = self.listener.accept()[0]
                far = socket.create_connection(self.upstream, timeout=WAIT_S)
                self.sockets += (near, far)
                for source, sink, kept in ((near, far, self.requests), (far, near, self.answers)):
                    kept.append(bytearray())
                    self._start(self._pass_on, source, sink, kept[-1])

    @staticmethod
    def _pass_on(source, sink, kept):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                kept += data
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in list(self.threads):
            thread.join(WAIT_S)
            assert not thread.is_alive()
        for one in self.sockets:
            one.close()


def dumped(path, streams, *arguments):
    """Return the frames of captured streams as `--json` prints them."""
    out = []
    for data in streams:
        path.write_bytes(data)
        if data:
            result = CliRunner().invoke(app, ["frames", str(path), "--json", "--full", *arguments])
            assert result.exit_code == 0, result.output
            out += map(json.loads, result.stdout.splitlines())
    return out


@pytest.mark.parametrize(
    ("options", "attrs", "types"),
    [
        ({}, None, {7}),
        ({}, {"k": "v"}, {7}),
        ({"compression": "snappy"}, None, {7}),
        ({"compression": "snappy", "message_type": 5}, {"k": "v"}, {6}),
        ({"message_type": 5}, None, {5}),
        ({"message_type": 3, "compression": "snappy"}, None, {3}),
    ],
)
def test_what_a_producer_sends(options, attrs, types, tmp_path):
    with Hub() as hub:
        capture = Capture(hub.target)
        with Producer(capture.target, group_id="g", **options) as producer:
            for body in BODIES * 5:
                producer.send_nowait("s", body, attrs=attrs)
        capture.close()
    sent = [frame for frame in dumped(tmp_path / "requests", capture.requests) if frame["type"] not in (1, 8)]
    assert {frame["type"] for frame in sent} == types
    assert {frame["sender"] for frame in sent} == {"client"}
    items = [item for frame in sent for item in frame["items"]]
    assert [item["body"].encode() for item in items] == BODIES * 5
    if attrs and types != {3}:
        assert all({"key": "k", "value": "v"} in item["attributes"] for item in items)
    if "compression" in options:
        assert any(frame["unpacked_bytes"] > frame["body_bytes"] for frame in sent)
    answers = [frame for frame in dumped(tmp_path / "answers", capture.answers) if "answer" in frame]
    assert [frame["answer"]["code"] for frame in answers] == [0] * len(sent)
    numbers = {field["value"] for frame in sent for field in frame["fields"] if field["name"] == "uniq"}
    numbers |= {int(one["value"]) for frame in sent for one in frame["attributes"] if one["key"] == "mid"}
    assert {frame["answer"]["sequence"] for frame in answers} == numbers


@pytest.mark.parametrize(("heartbeat", "kind"), [("binary", 8), ("message", 1)])
def test_heartbeats(heartbeat, kind, tmp_path):
    with Hub() as hub:
        capture = Capture(hub.target)
        answered = threading.Event()
        with Producer(capture.target, group_id="g", heartbeat=heartbeat, heartbeat_interval="20ms") as producer:
            wire = Wire()
            for _ in range(WAIT_S * 100):
                producer.send("s", b"x").result(timeout=WAIT_S)
                if any(_heartbeats(wire, bytes(data), kind) for data in capture.answers):
                    answered.set()
                    break
                answered.wait(0.05)
        capture.close()
    assert answered.is_set()
    for streams in (capture.requests, capture.answers):
        frames = [frame for frame in dumped(tmp_path / "frames", streams) if frame["type"] == kind]
        assert frames
        if kind == 8:
            assert {frame["sender"] for frame in frames} == {"client" if streams is capture.requests else "server"}


def _heartbeats(wire, data, kind):
    """Return how many heartbeats the whole frames of a stream are, as the compiled reader delimits them."""
    found = 0
    while data:
        status, size = wire.delimit(data)
        if status != 0:
            break
        found += data[4] & 31 == kind
        data = data[size:]
    return found
