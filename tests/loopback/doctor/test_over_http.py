"""Proxies that are spoken to over HTTP, and servers that are none."""

import contextlib
import http.server
import re
import threading

import pytest

from dataproxy.doctor import Level, examine
from dataproxy.errors import ConfigError
from dataproxy.hub import Hub
from tests.loopback.doctor.servers import CERTIFICATE, answering, closing, nobody, tls_context

FAST = 0.4  # seconds for each step where an answer never comes
AMPLE = 20.0
SENT = {"group_id": "g", "stream_id": "s", "send": True}
HEAD = b"HTTP/1.1 200 OK\r\n"
WELL = b'{"code":"0","msg":"Ok"}'
OK = HEAD + b"Content-Length: 23\r\n\r\n" + WELL
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n"


def looked(target, timeout=AMPLE, **options):
    """Examine one proxy; return its report and the lines about it."""
    found = examine(target, timeout=timeout, protocol="http", **options)
    (report,) = found.proxies
    return report, [one for one in found.findings if one.check in ("proxy", "message", "frame", "tls")]


def state_of(target, timeout=AMPLE, **options):
    """Examine one that is not well; return its state and text."""
    report, (line, *_) = looked(target, timeout, **options)
    assert (line.check, line.level) == ("proxy", Level.ERROR)
    assert line.text == report.text
    assert "\n" not in line.text + line.means + line.advice
    assert line.means
    assert line.advice
    return report.state, report.text


def answers(*each, messages=b"", sizes=b"", asked=None):
    """Return a talk that answers one request after the other with these bytes, and then ends the connection.

    ``messages``, ``sizes``: answers to messages, and to heartbeats with a form, in their place.  ``asked`` collects the
    requests.
    """

    def talk(sock):
        for answer in each:
            request = b""
            while b"\r\n\r\n" not in request:
                part = sock.recv(1 << 16)
                if not part:
                    return
                request += part
            head, _, form = request.partition(b"\r\n\r\n")
            size = re.search(rb"Content-Length: (\d+)", head)
            while size and len(form) < int(size[1]):
                form += sock.recv(1 << 16)
            if asked is not None:
                asked.append((head, form))
            others = {b"POST /dataproxy/message": messages, b"POST /dataproxy/heartbeat": sizes}
            sock.sendall(others.get(head.split(b" HTTP")[0]) or answer)

    return talk


def test_a_proxy_that_is_well():
    with Hub(http_port=0) as hub:
        report, (line, *_) = looked(hub.http_target, group_id="g")
        assert list(hub.records("g")) == []
    assert (report.state, report.heartbeat, report.load, report.clock_offset) == ("ok", "http", None, None)
    assert report.connect_seconds > 0
    assert report.heartbeat_seconds > 0
    assert line.level is Level.OK


def test_one_marked_message():
    with Hub(http_port=0) as hub:
        report, lines = looked(hub.http_target, **SENT)
        (record,) = hub.records("g", "s")
    assert [one.level for one in lines] == [Level.OK, Level.OK]
    assert (report.message.state, report.message.code) == ("acknowledged", 0)
    assert report.message.id.encode() in record.body


@pytest.mark.parametrize("body", ["a=1&b=2", "100 %+x", "grüße"])
def test_a_message_with_a_body_of_its_own(body):
    with Hub(http_port=0) as hub:
        looked(hub.http_target, body=body.encode(), **SENT)
        assert [record.body.decode() for record in hub.records("g", "s")] == [body]


def test_a_group_that_the_proxy_does_not_know():
    said = b'{"code":"115","msg":"Topic not configured for groupId(g),streamId(,s)"}'
    refused = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(said), said)
    with answering(answers(OK, messages=refused)) as target:
        report, (_, line) = looked(target, **SENT)
    assert (report.state, report.message.state, report.message.code) == ("ok", "refused", 115)
    assert line.level is Level.ERROR
    assert "refused with code 115 TOPIC_IS_BLANK: Topic not configured for groupId(g)" in line.text


@pytest.mark.parametrize(("service", "code"), [("not_ready", 1), ("stopped", 2)])
def test_a_proxy_that_is_not_ready(service, code):
    with Hub(http_port=0) as hub:
        hub.set_service(service)
        report, (line, *_) = looked(hub.http_target, **SENT)
    assert (report.state, report.reached, report.message) == ("not_ready", True, None)
    assert f"code {code} " in line.text


def test_a_list_in_a_file_has_proxies_of_both_protocols(tmp_path):
    path = tmp_path / "list.json"
    with Hub(http_port=0) as hub:
        both = [("TCP", hub.port), ("HTTP", hub.nodes[0].http.port)]
        entries = [f'{{"ip": "127.0.0.1", "port": {port}, "protocolType": "{protocol}"}}' for protocol, port in both]
        path.write_text(f'{{"nodeList": [{", ".join(entries)}]}}')
        report, _ = looked(f"file://{path}")
    assert (report.state, report.heartbeat) == ("ok", "http")


def test_the_limit_of_requests():
    with Hub(http_port=0, max_frame_bytes=65536) as hub:
        report, lines = looked(hub.http_target, frame_limit=True)
    assert (report.frame_taken, report.frame_refused) == (65536, 128 << 10)
    assert "it takes no request of 131,072 bytes" in lines[1].text


@pytest.mark.parametrize(
    ("answer", "taken"),
    [
        (HEAD + b'Content-Length: 12\r\n\r\n{"code":"1"}', True),
        (HEAD + b'Content-Length: 13\r\n\r\n{"code":"31"}', False),
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 6\r\n\r\n<html>", False),
        (b"nonsense\r\n", False),
    ],
    ids=["not ready", "31", "502", "401", "nonsense"],
)
def test_an_answer_of_somebody_else_says_nothing_of_the_limit(answer, taken):
    with answering(answers(OK, sizes=answer)) as target:
        report, lines = looked(target, frame_limit=True, max_frame_bytes=4096)
    assert (report.frame_taken, report.frame_refused, report.frame_unanswered) == (
        4096 if taken else None,
        None,
        None if taken else 4096,
    )
    assert ["no usable answer in time" in one.text for one in lines[1:]] == [True] * (not taken)


def test_a_size_is_that_of_the_whole_request():
    asked = []
    with answering(answers(OK, asked=asked)) as target:
        report, _ = looked(target, frame_limit=True, max_frame_bytes=100_000)
    (_, _), (head, form) = asked
    assert head.startswith(b"POST /dataproxy/heartbeat HTTP/1.1\r\nHost: 127.0.0.1:")
    assert len(head) + 4 + len(form) == report.frame_taken == 100_000


@pytest.mark.parametrize("said", [b"Connection: close\r\n", b""], ids=["said", "not said"])
def test_a_server_that_ends_the_connection_behind_each_answer(said):
    asked = []
    with answering(answers(HEAD + said + OK.removeprefix(HEAD), asked=asked)) as target:
        report, _ = looked(target, **SENT)
    assert report.message.state == "acknowledged"
    assert [head.split(b" ")[1] for head, _ in asked] == [b"/dataproxy/heartbeat", b"/dataproxy/message"]


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot found", "http", "with status 404: 'not found'"),
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", "http", "with status 502"),
        (b'HTTP/1.1 500 Oh\r\nContent-Length: 12\r\n\r\n{"code":"0"}', "http", "with status 500"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>", "http", "without a DataProxy's code: '<html>'"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", "http", "without a DataProxy's code: '[]'"),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 28\r\n\r\n{"code":"1","msg":"a "b" c"}', "not_ready", 'a "b" c'),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{"code":1e400}', "http", "without a DataProxy's code"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "banner", "'SSH-2.0-OpenSSH_9.2'"),
        (b"\x15\x03\x01\0\2\2\x46", "tls", "in TLS"),
        (b"\0\0\0\1\1\n", "garbage", "00 00 00 01 01"),
        (b"HTTP/1.1 ", "closed", "in the middle of one"),
        (HEAD + b'Content-Length: 50\r\n\r\n{"code":"0"}', "closed", "in the middle of one, after 51 bytes"),
        (b"", "closed", "without an answer"),
    ],
    ids=[
        "404",
        "502",
        "code beside 500",
        "page",
        "list",
        "quotes",
        "1e400",
        "ssh",
        "tls",
        "frame",
        "cut",
        "short",
        "nothing",
    ],
)
def test_servers_that_are_no_proxies(answer, state, words):
    with answering(answers(answer)) as target:
        found, text = state_of(target)
    assert found == state
    assert words in text


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/2.0 200 OK\r\n\r\n", "its first line is 'HTTP/2.0 200 OK'"),
        (b"HTTP/1.1 99 Odd\r\n\r\n", "its first line is 'HTTP/1.1 99 Odd'"),
        (HEAD + b"no field\r\n\r\n", "its head has the line 'no field'"),
        (HEAD + b"X: a\r\n b\r\n\r\n", "its head has the line 'b'"),
        (HEAD + b"X: a\r\n" * 257 + b"\r\n", "its head has more than 256 fields"),
        (HEAD + b"X: " + b"a" * (1 << 16), "its head has more than 65,536 bytes"),
        (HEAD + b"Content-Length: -5\r\n\r\n" + WELL, "its Content-Length is '-5'"),
        (HEAD + b"Content-Length: 23\r\nContent-Length: 22\r\n\r\n" + WELL, "its Content-Length is '22'"),
        (CHUNKED + b"Content-Length: 23\r\n\r\n", "its Content-Length is '23'"),
        (HEAD + b"Transfer-Encoding: gzip\r\n\r\n" + WELL, "its Transfer-Encoding is 'gzip'"),
        (CHUNKED + b"\r\nxyz\r\n", "a chunk of it begins with 'xyz'"),
        (CHUNKED + b"\r\n1\r\n{}\r\n", "a chunk of it is longer than it says"),
        (CHUNKED + b"\r\n" + b"1\r\n \r\n" * 1025, "it has more than 1,024 chunks"),
    ],
)
def test_answers_that_a_producer_cannot_read(answer, words):
    """A server that a producer would not understand is never well, and what is wrong is told, not waited for."""
    with answering(answers(answer, b"")) as target:
        assert state_of(target) == ("malformed", f"its answer to a heartbeat cannot be read: {words}")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 1000 + OK,
        b"\r\n\r\n" + OK,
        HEAD.replace(b" OK", b"") + b"\n" + WELL,
        HEAD + b"content-length:23\nContent-Length: 23 \n\n" + WELL,
        CHUNKED + b"\r\n1;a=b\r\n{\r\n16\r\n" + WELL[1:] + b"\r\n0\r\nX: a\r\n\r\n",
        HEAD + b'Content-Length: 13\r\n\r\nf({"code":0})',
        OK + OK,
    ],
    ids=["hints", "continue", "lines", "no length", "twice", "chunks", "call", "two"],
)
def test_answers_that_a_producer_reads(answer):
    with answering(answers(answer, OK)) as target:
        assert looked(target)[0].state == "ok"


def test_an_answer_that_does_not_end():
    done = threading.Event()

    def talk(sock):
        sock.sendall(HEAD + b"Content-Length: 23\r\n\r\n{")
        done.wait(AMPLE)

    with answering(talk) as target:
        assert state_of(target, FAST) == ("silent", f"no answer to a heartbeat within {FAST} s (40 bytes of one came)")
        done.set()


@pytest.mark.parametrize(
    ("code", "state", "shown"),
    [
        (b'"35"', "malformed", "code 35 HTTP_UNSUPPORTED_SERVICE_URI"),
        (b"115", "malformed", "code 115 TOPIC_IS_BLANK"),
        (b'"-1"', "http", "without a DataProxy's code"),
        (b"false", "http", "without a DataProxy's code"),
        (b"0.0", "http", "without a DataProxy's code"),
        ('"\u0660"'.encode(), "http", "without a DataProxy's code"),
        (b'"1_0"', "http", "without a DataProxy's code"),
        (b"9" * 4000, "http", "without a DataProxy's code"),
    ],
)
def test_codes_that_are_no_heartbeats(code, state, shown):
    said = b'{"code":%b,"msg":"m"}' % code
    with answering(answers(HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(said), said))) as target:
        report, (line, *_) = looked(target)
    assert (report.state, shown in report.text) == (state, True)
    assert "stopped" not in line.means


def test_the_port_for_tcp():
    with Hub() as hub:
        assert state_of(hub.target)[0] == "closed"


@pytest.mark.parametrize(
    "page",
    [
        b"<html>\r\n<head><title>400 The plain HTTP request was sent to HTTPS port</title></head>",  # nginx
        b"Client sent an HTTP request to an HTTPS server.\n",  # Go
    ],
    ids=["nginx", "go"],
)
def test_a_port_for_tls_that_says_so(page):
    said = b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n%b" % (len(page), page)
    with answering(answers(said)) as target:
        report, (line, *_) = looked(target)
    assert report.state == "tls"
    assert "tls://" in line.advice


def test_a_port_for_tls_that_ends_the_connection():
    with answering(closing) as target:
        report, (line, *_) = looked(target)
    assert report.state in ("closed", "reset")
    assert "TLS" in line.means
    assert "tls://" in line.advice


def test_nobody_and_a_server_that_never_answers():
    with nobody() as target:
        assert state_of(target)[0] == "refused"
    done = threading.Event()
    with answering(lambda _sock: done.wait(AMPLE)) as target:
        assert state_of(target, FAST)[0] == "silent"
        done.set()


def test_an_answer_that_drips():
    done = threading.Event()

    def talk(sock):
        with contextlib.suppress(OSError):
            sock.sendall(HEAD + b"X: ")
            while not done.wait(0.02):
                sock.sendall(b"a")

    with answering(talk) as target:
        assert state_of(target, FAST)[0] == "silent"
        done.set()


def test_another_web_server():
    quiet = type("Quiet", (http.server.BaseHTTPRequestHandler,), {"log_message": lambda *_: None})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        state, text = state_of(f"tcp://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()
    assert state == "http"
    assert "with status 501" in text


def test_tls():
    with answering(answers(OK, OK), tls=tls_context()) as target:
        report, lines = looked(target, tls=True, tls_ca=str(CERTIFICATE), **SENT)
    assert (report.state, report.message.state) == ("ok", "acknowledged")
    assert report.tls.version.startswith("TLSv1.")
    assert all(one.level is not Level.ERROR for one in lines)


def test_tls_where_there_is_none():
    with Hub(http_port=0) as hub:
        state, text = state_of(hub.http_target, tls=True)
    assert (state, text.startswith("the port does not speak TLS")) == ("tls_failed", True)


@pytest.mark.parametrize("name", ["a..b", ".b", "b" * 300])
def test_a_server_name_that_no_certificate_can_have(name):
    with Hub(http_port=0, tls_certificate=str(CERTIFICATE)) as hub:
        state, text = state_of(hub.http_target, tls_ca=str(CERTIFICATE), tls_server_name=name)
    assert (state, "is no name of a server" in text) == ("tls_failed", True)


def test_a_body_that_no_producer_would_send_over_http():
    with Hub(http_port=0) as hub:
        with pytest.raises(ConfigError, match="each byte counts three times over HTTP"):
            examine(hub.http_target, body=b"%" * 300_000, protocol="http", **SENT)
        with pytest.raises(ConfigError, match="body is of type str"):
            examine(hub.http_target, body="text", protocol="http", **SENT)
        with pytest.raises(ConfigError, match="tls is of type str"):
            examine(hub.http_target, tls="yes", protocol="http")
        assert looked(hub.http_target, body=b"%" * 174_000, **SENT)[0].message.state == "acknowledged"


def test_a_closing_server():
    with answering(closing) as target:
        assert state_of(target)[0] in ("closed", "reset")
