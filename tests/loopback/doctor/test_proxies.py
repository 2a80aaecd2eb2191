"""Proxies that are well, and those that are not: each gets its own state and words."""

import errno
import http.server
import json
import random
import socket
import ssl
import struct
import threading
from types import SimpleNamespace

import pytest

from dataproxy.doctor import Level, conversation, examine
from dataproxy.hub import Hub
from dataproxy.testing import FaultProxy
from tests.loopback.doctor.servers import CERTIFICATE, answering, closing, nobody, tls_context
from tests.native.probe_wire import Server
from tests.support.ipv6 import needs_ipv6
from tests.support.scripted import Scripted, only_accept, refusal, silent

FAST = 0.4  # seconds for each step where an answer never comes
AMPLE = 20.0


def looked(target, timeout=AMPLE, **options):
    """Examine one proxy; return its report, the lines about it and everything."""
    found = examine(target, timeout=timeout, **options)
    (report,) = found.proxies
    return report, [one for one in found.findings if one.check in ("proxy", "message", "frame", "tls")], found


def state_of(target, timeout=AMPLE, **options):
    report, (line, *_), found = looked(target, timeout, **options)
    assert (line.check, line.level) == ("proxy", Level.ERROR)
    assert line.text == report.text
    assert "\n" not in line.text + line.means + line.advice
    assert line.means
    assert line.advice
    assert not found.ok
    assert not found.reachable
    return report.state, report.text


def test_a_proxy_that_is_well():
    with Hub() as hub:
        report, (line,), found = looked(hub.target, group_id="g")
        assert list(hub.records("g")) == []
    assert (report.state, report.heartbeat, report.load) == ("ok", "binary", 0)
    assert report.connect_seconds > 0
    assert report.heartbeat_seconds > 0
    assert abs(report.clock_offset) < 5
    assert line.level is Level.OK
    assert found.ok
    assert found.reachable
    assert any(one.check == "clock" and one.level is Level.OK for one in found.findings)


def test_only_heartbeats_are_sent():
    with Scripted() as proxy:
        looked(proxy.target, group_id="g", stream_id="s", frame_limit=True)
        assert proxy.frames == []
        assert [frame[4] for _, frame in proxy.heartbeats] == [8, 1]
        assert [len(frame) for _, frame in proxy.heartbeats] == [18, 524288]


@pytest.mark.parametrize("kind", [7, 5, 3])
def test_one_marked_message(kind):
    with Hub() as hub:
        report, lines, _ = looked(hub.target, group_id="g", stream_id="s", send=True, message_type=kind)
        (record,) = hub.records("g", "s")
    assert [one.level for one in lines] == [Level.OK, Level.OK]
    assert (report.message.state, report.message.code, report.message.node) == ("acknowledged", 0, "127.0.0.1")
    assert record.attrs["doctor"] == report.message.id
    assert report.message.id.encode() in record.body


def test_a_message_with_a_body_of_its_own():
    with Hub() as hub:
        looked(hub.target, group_id="g", stream_id="s", send=True, body=b"1,2,3")
        assert [record.body for record in hub.records("g", "s")] == [b"1,2,3"]


def test_a_group_that_the_proxy_does_not_know():
    with Scripted(lambda peer, frame: peer.send(refusal(frame, 115, b"Topic not configured"))) as proxy:
        report, (well, refused), found = looked(proxy.target, group_id="g", stream_id="s", send=True)
        assert len(proxy.frames) == 1
    assert well.level is Level.OK
    assert (report.message.state, report.message.code) == ("refused", 115)
    assert "refused with code 115 TOPIC_IS_BLANK: Topic not configured" in refused.text
    assert found.reachable
    assert not found.ok


def misaddressed(peer, frame):
    peer.send(Server().serve(frame[:17] + struct.pack(">I", 5) + frame[21:], 0)["reply"])
    peer.close()


@pytest.mark.parametrize(
    ("react", "state", "words"),
    [
        (silent, "unanswered", "no answer within"),
        (lambda peer, frame: peer.close(), "closed", "closed by the proxy after a frame of"),
        (lambda peer, frame: peer.send(b"\xff" * 20), "malformed", "bytes that are no answer"),
        (lambda peer, frame: peer.send(bytes.fromhex("00000009 07 00000001 0000 ee02")), "malformed", "magic"),
        (misaddressed, "closed", "closed by the proxy"),
    ],
    ids=["silent", "close", "garbage", "magic", "misaddressed"],
)
def test_a_message_without_a_good_answer(react, state, words):
    with Scripted(react) as proxy:
        timeout = FAST if react is silent else AMPLE
        report, (_, line), _ = looked(proxy.target, timeout, group_id="g", stream_id="s", send=True)
    assert report.message.state == state
    assert words in line.text
    assert line.level is Level.ERROR


def test_nobody_listens():
    with nobody() as target:
        assert state_of(target) == ("refused", "Connection refused")


def test_a_host_that_answers_no_packet():
    with only_accept() as target:
        assert state_of(target, FAST) == ("connect_timeout", "no answer to the connection attempt within 0.4 s")


def test_a_network_without_a_way():
    state, _ = state_of("tcp://255.255.255.255:1", FAST)
    assert state in ("unreachable", "denied")


def reads_and(answer):
    def talk(sock):
        sock.recv(100)
        sock.sendall(answer)

    return talk


def echo(sock):
    while data := sock.recv(1000):
        sock.sendall(data)


def reset(sock):
    import socket

    sock.recv(100)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize(
    ("talk", "state", "words"),
    [
        (closing, "closed|reset", ""),
        (lambda sock: sock.recv(100), "closed", "closed the connection without an answer to a heartbeat"),
        (reset, "reset", "Connection reset by peer"),
        (reads_and(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "http", "'HTTP/1.1 400 Bad Request'"),
        (reads_and(b"\x15\x03\x03\0\2\2\x46"), "tls", "it answers in TLS"),
        (reads_and(b"SSH-2.0-x\r\n"), "banner", "another program answers: 'SSH-2.0-x'"),
        (reads_and(b"\xfe\xed" * 40), "garbage", "fe ed"),
        (reads_and(b"\x00\x00\x00\x02\x3f\x00"), "garbage", "00 00 00 02 3f 00"),
        (reads_and(bytes.fromhex("0000001008 6553f101 01 00000002 ffff 0000 ee02")), "malformed", "magic at byte 18"),
        (reads_and(bytes.fromhex("0000001008")), "closed", "in the middle of one, after 5 bytes"),
        (reads_and(bytes.fromhex("00000009 07 00000001 0000 ee01") * 20), "garbage", "00 00 00 09 07"),
        (echo, "garbage", "it sends back what it receives"),
    ],
    ids=["at once", "closes", "resets", "http", "tls", "ssh", "noise", "type", "magic", "cut", "others", "echo"],
)  # fmt: skip
def test_what_answers_is_no_proxy(talk, state, words):
    with answering(talk) as target:
        found, text = state_of(target)
    assert found in state.split("|")
    assert words in text


def test_a_silent_server():
    gate = threading.Event()
    with answering(lambda sock: gate.wait(30)) as target:
        assert state_of(target, FAST) == ("silent", "no answer to a heartbeat within 0.4 s")
        gate.set()


def test_a_server_that_sends_a_byte_at_a_time_and_never_ends():
    gate = threading.Event()

    def drip(sock):
        while not gate.wait(0.05):
            sock.sendall(b"\0")

    with answering(drip) as target:
        state, text = state_of(target, FAST)
        gate.set()
    assert state in ("silent", "garbage")


def test_a_server_that_sends_without_end():
    with answering(lambda sock: [sock.sendall(b"x" * 65536) for _ in range(1000)]) as target:
        assert state_of(target)[0] == "banner"


def test_a_web_server_that_waits_for_a_line_shows_itself():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    http.server.BaseHTTPRequestHandler.log_message = lambda *_: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        state, _ = state_of(f"tcp://127.0.0.1:{server.server_port}", 1.0)
    finally:
        server.shutdown()
        server.server_close()
    assert state == "http"


def test_a_proxy_that_knows_only_the_old_heartbeats():
    with Scripted() as proxy:
        proxy.on_heartbeat = lambda peer, frame: peer.send(bytes.fromhex("0000000101")) if frame[4] == 1 else None
        report, (line,), _ = looked(proxy.target, FAST)
    assert (report.state, report.heartbeat, report.load, report.clock_offset) == ("ok", "message", None, None)
    assert line.level is Level.WARNING
    assert "heartbeat=message" in line.advice


def test_heartbeats_as_the_option_says():
    with Scripted() as proxy:
        report, (line,), _ = looked(proxy.target, heartbeat="message")
        assert [frame for _, frame in proxy.heartbeats] == [bytes.fromhex("0000000101")]
    assert (report.heartbeat, line.level) == ("message", Level.OK)


def test_a_server_with_a_lower_limit_of_frames():
    with Hub(max_frame_bytes=100_000) as hub:
        report, (well, limit), found = looked(hub.target, frame_limit=True)
    assert (report.frame_taken, report.frame_refused) == (65536, 131072)
    assert well.level is Level.OK
    assert "max_frame_bytes=65536" in limit.advice
    assert not found.ok


def test_a_server_that_answers_no_large_heartbeat():
    with Scripted() as proxy:
        proxy.on_heartbeat = lambda peer, frame: peer.send(Server().serve(frame, 0)["reply"]) if len(frame) < 99 else 0
        report, (_, note), found = looked(proxy.target, FAST, frame_limit=True)
    assert (report.frame_taken, report.frame_refused, report.frame_unanswered) == (None, None, 524288)
    assert note.level is Level.NOTE


def test_words_of_a_proxy_are_cut():
    with Scripted(lambda peer, frame: peer.send(refusal(frame, 115, b"x" * 9000))) as proxy:
        report, (_, line), _ = looked(proxy.target, group_id="g", stream_id="s", send=True)
    assert len(line.text) < 400
    assert report.message.code == 115


@pytest.mark.parametrize("seed", range(40))
def test_changed_answers_are_findings_whatever_they_say(seed):
    chance = random.Random(seed)

    def changed(frame):
        data = bytearray(Server(load=5).serve(frame, 1_700_000_000_000)["reply"])
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        return bytes(data[: chance.choice([len(data), chance.randrange(1, len(data) + 1)])])

    with Scripted(lambda peer, frame: (peer.send(changed(frame)), peer.close())) as proxy:
        if seed % 2:
            proxy.on_heartbeat = lambda peer, frame: (peer.send(changed(frame)), peer.close())
        found = examine(proxy.target, group_id="g", stream_id="s", send=True, timeout=AMPLE)
    json.dumps(found.as_json())
    assert all("\n" not in one.text for one in found.findings)
    assert found.seconds < AMPLE


@pytest.mark.parametrize("fault", ["slice", "duplicate"])
def test_answers_in_pieces_and_twice_are_answers(fault):
    with Hub() as hub:
        for on in ("data", "heartbeat"):
            hub.faults.add(fault, on=on)
        report, lines, found = looked(hub.target, group_id="g", stream_id="s", send=True)
    assert report.message.state == "acknowledged"
    assert found.ok, lines


@pytest.mark.parametrize(("fault", "state"), [("drop_reply", "silent"), ("garbage", "garbage"), ("close", "closed")])
def test_a_hub_with_a_fault(fault, state):
    with Hub() as hub:
        hub.faults.add(fault, on="heartbeat")
        assert state_of(hub.target, FAST if fault == "drop_reply" else AMPLE)[0] == state


def test_a_frozen_and_a_vanished_proxy():
    with Hub() as hub, FaultProxy(hub.target) as between:
        between.add("vanish")
        assert state_of(between.target, FAST)[0] in ("silent", "connect_timeout")


def test_dozens_are_asked_at_the_same_time():
    gate = threading.Event()
    with answering(lambda sock: gate.wait(30)) as target, Hub() as hub:
        port = target.rpartition(":")[2]
        several = ",".join(f"127.0.0.{i}:{port}" for i in range(1, 25))
        found = examine(f"tcp://{several},{hub.target[6:]}", timeout=FAST)
        gate.set()
    assert [one.state for one in found.proxies].count("ok") == 1
    assert len(found.proxies) == 25
    assert found.reachable
    assert not found.ok
    assert found.seconds < 24 * FAST


def test_names():
    found = examine("tcp://localhost:9,no-such-host.invalid:9", timeout=AMPLE)
    lines = {one.subject: one for one in found.findings if one.check == "name"}
    assert lines["localhost"].text.startswith("A 127.0.0.1")
    assert lines["no-such-host.invalid"].level is Level.ERROR
    assert lines["no-such-host.invalid"].code == "UNRESOLVED_HOST"
    assert {one.host for one in found.names} == {"localhost", "no-such-host.invalid"}


def test_a_name_service_that_hangs(monkeypatch):
    import socket

    gate = threading.Event()
    real = socket.getaddrinfo

    def slow(host, *rest, **options):
        if host == "slow.test":
            gate.wait(30)
        return real(host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    with Hub() as hub:
        found = examine(f"{hub.target},slow.test:9", timeout=FAST)
    gate.set()
    (line,) = [one for one in found.findings if one.check == "name"]
    assert line.text == "no address: no answer of the name service within 0.4 s"
    assert [one.state for one in found.proxies] == ["ok"]


def test_a_host_with_hundreds_of_addresses(monkeypatch):
    import socket

    real = socket.getaddrinfo

    def many(host, port, *rest, **options):
        if host != "many.test":
            return real(host, port, *rest, **options)
        return [real(f"127.1.{i // 250}.{i % 250 + 1}", port, *rest, **options)[0] for i in range(600)]

    monkeypatch.setattr(socket, "getaddrinfo", many)
    found = examine("tcp://many.test:9", timeout=AMPLE)
    assert len(found.proxies) == 512
    assert any(one.text == "88 more addresses were not looked at" for one in found.findings)


@needs_ipv6
def test_both_families_of_a_name(monkeypatch):
    import socket

    real = socket.getaddrinfo

    def both(host, port, *rest, **options):
        if host != "both.test":
            return real(host, port, *rest, **options)
        return real("127.0.0.1", port, *rest, **options) + real("::1", port, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", both)
    with Hub() as hub:
        port = hub.target.rpartition(":")[2]
        found = examine(f"tcp://both.test:{port}", timeout=AMPLE, group_id="g", stream_id="s", send=True)
    four, six = found.proxies
    assert (four.address, four.used, four.state) == ("127.0.0.1", True, "ok")
    assert (six.address, six.used) == ("::1", False)
    assert six.message is None
    levels = [one.level for one in found.findings if one.check == "proxy"]
    assert levels == [Level.OK, Level.NOTE if six.state != "ok" else Level.OK]


# --- TLS


def trusting():
    context = ssl.create_default_context(cafile=CERTIFICATE)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def proxy_talk(sock):
    """Answer frames as a proxy does."""
    server = Server(load=5)
    data = b""
    while part := sock.recv(65536):
        data += part
        while len(data) >= 4 and len(data) >= 4 + int.from_bytes(data[:4], "big"):
            size = 4 + int.from_bytes(data[:4], "big")
            sock.sendall(server.serve(data[:size], 1_700_000_000_000)["reply"])
            data = data[size:]


def test_tls():
    with answering(proxy_talk, tls=tls_context()) as target:
        report, lines, found = looked(target, tls=trusting(), group_id="g", stream_id="s", send=True)
    assert report.state == "ok"
    assert report.tls.version in ("TLSv1.3", "TLSv1.2")
    assert report.tls.subject == "commonName=loopback for tests"
    assert report.tls.days_left > 1000
    assert report.message.state == "acknowledged"
    assert report.tls.version in lines[0].text
    assert not any(one.check == "tls" for one in found.findings)


@pytest.mark.parametrize(("scheme", "options"), [("tls", {}), ("tcp", {"tls": True})])
def test_tls_where_a_producer_has_it(scheme, options):
    with answering(proxy_talk, tls=tls_context()) as target:
        target = target.replace("tcp://", f"{scheme}://")
        report, _lines, _found = looked(target, tls_ca=str(CERTIFICATE), **options)
        unknown, _text = state_of(target, **options)
        other = target.replace("127.0.0.1", "localhost")
        renamed, _lines, _found = looked(other, tls_ca=str(CERTIFICATE), tls_server_name="127.0.0.1", **options)
    assert (report.state, report.tls.subject) == ("ok", "commonName=loopback for tests")
    assert unknown == "tls_failed"
    assert renamed.state == "ok"


def test_a_certificate_that_nobody_trusts():
    with answering(proxy_talk, tls=tls_context()) as target:
        state, text = state_of(target, tls=ssl.create_default_context())
    assert state == "tls_failed"
    assert text.startswith("nobody that is trusted here has signed the certificate (self-signed certificate")


def test_a_certificate_for_another_name():
    with answering(proxy_talk, tls=tls_context()) as target:
        state, text = state_of(target.replace("127.0.0.1", "localhost"), tls=trusting())
    assert (state, text.split(" (")[0]) == ("tls_failed", "the certificate is for another name")


def test_versions_that_do_not_meet():
    server = tls_context()
    server.maximum_version = ssl.TLSVersion.TLSv1_2
    client = trusting()
    client.minimum_version = ssl.TLSVersion.TLSv1_3
    with answering(proxy_talk, tls=server) as target:
        state, text = state_of(target, tls=client)
    assert (state, text.split(" (")[0]) == ("tls_failed", "no common version of TLS")


def test_a_server_that_wants_a_client_certificate():
    server = tls_context()
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_verify_locations(CERTIFICATE)
    with answering(proxy_talk, tls=server) as target:
        state, text = state_of(target, tls=trusting())
    assert state in ("tls_failed", "closed", "reset")  # the server's alert and its end arrive together
    assert state != "tls_failed" or "client's certificate" in text


def test_a_plain_proxy_asked_for_tls():
    with Hub() as hub:
        assert state_of(hub.target, tls=trusting())[0] == "tls_failed"


def test_a_plain_server_asked_for_tls():
    with answering(reads_and(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as target:
        state, text = state_of(target, tls=trusting())
    assert (state, text.split(" (")[0]) == ("tls_failed", "the port does not speak TLS")


def test_a_tls_server_asked_in_plain():
    with answering(proxy_talk, tls=tls_context()) as target:
        assert state_of(target)[0] in ("tls", "closed", "reset")


def test_a_server_that_hangs_in_the_handshake():
    gate = threading.Event()
    with answering(lambda sock: gate.wait(30)) as target:
        assert state_of(target, FAST, tls=trusting()) == ("tls_failed", "no answer to the TLS handshake within 0.12 s")
        gate.set()


def test_a_proxy_that_takes_the_handshake_for_a_long_frame():
    """It waits for more bytes, as a DataProxy does: what it is shows by a heartbeat without TLS."""

    def talk(sock):
        first = sock.recv(4096)
        if first[:1] == b"\x16":
            sock.recv(1)  # until the other side gives up
        else:
            sock.sendall(first)

    with answering(talk) as target:
        report, _, _ = looked(target, 5.0, tls=trusting())
    assert (report.state, report.text) == ("tls_failed", "the port does not speak TLS")
    assert "tcp://" in report.advice


@pytest.mark.parametrize("protocol", ["tcp", "http"])
@pytest.mark.parametrize("call", ["getpeername", "connect"])
def test_a_connection_that_is_cut_as_soon_as_it_is_made(monkeypatch, protocol, call):
    """The kernel tells of it in the next call, whatever that is."""
    number = {"getpeername": errno.ENOTCONN, "connect": errno.ECONNRESET}[call]

    def cut(*_):
        raise OSError(number, "as the kernel says")

    cut_off = type("CutOff", (socket.socket,), {call: cut})
    monkeypatch.setattr(conversation, "socket", SimpleNamespace(**{**vars(socket), "socket": cut_off}))
    with answering(closing) as target:
        (report,) = examine(target, protocol=protocol, timeout=AMPLE).proxies
    assert (report.state, "as soon as it was made" in report.text) == ("reset", True)
