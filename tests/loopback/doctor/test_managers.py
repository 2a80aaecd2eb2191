"""Managers that answer well, badly, late or not at all."""

import http.server
import json
import threading
import time
from email.utils import formatdate

import pytest

from dataproxy.doctor import Level, examine
from dataproxy.errors import ConfigError
from dataproxy.hub import Hub

AMPLE = 20.0
PATH = "/inlong/manager/openapi/dataproxy/getIpList/"


class Stub(http.server.ThreadingHTTPServer):
    """Answer every POST with ``reply`` (status, headers, body), or wait for ``release`` where it is None."""

    daemon_threads = True

    def __init__(self, reply):
        super().__init__(("127.0.0.1", 0), Handler)
        self.reply = reply
        self.ahead = 0.0
        self.release = threading.Event()
        self.paths = []
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self.release.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.paths.append(self.path)
        self.rfile.read(int(self.headers["content-length"]))
        if self.server.reply is None:
            self.server.release.wait(30)
            return
        status, headers, body = self.server.reply
        self.send_response_only(status)
        self.send_header("Date", formatdate(time.time() + self.server.ahead, usegmt=True))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def naming(*nodes, **data):
    listed = [{"id": i, "ip": host, "port": port, "protocolType": "TCP"} for i, (host, port) in enumerate(nodes)]
    return json.dumps({"success": True, "errMsg": None, "data": {"clusterId": 3, "nodeList": listed, **data}}).encode()


def lines_of(found, check="manager"):
    return [one for one in found.findings if one.check == check]


def failure(reply, timeout=AMPLE):
    """Examine by a Manager that fails; return what is said of it, and its report."""
    with Stub(reply) as stub:
        found = examine(stub.url, group_id="g", timeout=timeout)
    (line,) = lines_of(found)
    (report,) = found.managers
    assert line.level is Level.ERROR
    assert line.code == report.code
    assert not found.reachable
    return line, report


def test_a_manager_and_its_proxies():
    with Hub() as hub:
        found = examine(hub.manager_url, group_id="g", timeout=AMPLE)
    (report,) = found.managers
    assert report.status == 200
    assert report.nodes == [hub.target[6:]]
    assert abs(report.clock_offset) < 5
    assert [one.level for one in lines_of(found)] == [Level.OK]
    assert [one.state for one in found.proxies] == ["ok"]
    assert found.ok


@pytest.mark.parametrize(
    ("reply", "code", "words"),
    [
        ((200, {"content-type": "text/html"}, b"<html><form>password"), "MANAGER_LOGIN", "login"),
        ((302, {"location": "http://127.0.0.1:1/login"}, b""), "MANAGER_URL", "login"),
        ((404, {"content-type": "text/html"}, b"<html>Not Found"), "MANAGER_URL", "8083"),
        ((200, {"content-type": "application/json"}, b'{"suc'), "MANAGER_ANSWER", "Manager"),
        ((200, {"content-type": "application/json"}, b"[]"), "MANAGER_ANSWER", "Manager"),
        ((500, {}, b"oops"), "MANAGER_ANSWER", "log"),
        ((403, {}, b""), "MANAGER_REFUSED", "manager_secret_id"),
        ((200, {}, b'{"success": false, "errMsg": "no such group"}'), "GROUP_REFUSED", "approved"),
        ((200, {}, naming()), "NO_PROXIES", "nodes"),
    ],
    ids=["page", "redirect", "not found", "cut", "list", "error", "forbidden", "refused", "empty"],
)
def test_bad_answers(reply, code, words):
    line, report = failure(reply)
    assert report.code == code
    assert report.status == reply[0]
    assert words in line.advice
    assert line.means


def test_a_manager_that_hangs():
    line, report = failure(None, 0.3)
    assert (report.code, line.text) == ("MANAGER_TIMEOUT", "did not answer within 0.3 s")
    assert report.status is None


def test_a_manager_that_is_not_there():
    found = examine("http://127.0.0.1:9", group_id="g", timeout=AMPLE)
    (line,) = lines_of(found)
    assert "Connection refused" in line.text
    assert line.code == "DISCOVERY"
    assert not found.reachable


def test_a_manager_without_an_address():
    found = examine("http://no-such-host.invalid:8083", group_id="g", timeout=AMPLE)
    assert [one.level for one in lines_of(found, "name")] == [Level.ERROR]
    assert lines_of(found)[0].code == "UNRESOLVED_HOST"


def test_one_of_two_managers_is_enough():
    with Hub() as hub:
        found = examine(f"http://127.0.0.1:9,{hub.manager_url[7:]}", group_id="g", timeout=AMPLE)
    assert [one.level for one in lines_of(found)] == [Level.WARNING, Level.OK]
    assert found.ok


@pytest.mark.parametrize("ahead", [-90.0, 7200.0])
def test_a_clock_that_is_off(ahead):
    with Stub((200, {}, naming(("127.0.0.1", 9)))) as stub:
        stub.ahead = ahead
        found = examine(stub.url, group_id="g", timeout=AMPLE)
    (line,) = lines_of(found, "clock")
    assert found.managers[0].clock_offset == pytest.approx(ahead, abs=3)
    assert line.subject == "this machine"
    assert line.level is (Level.ERROR if ahead > 3600 else Level.WARNING)
    assert ("behind" if ahead > 0 else "ahead of") in line.text


def test_a_manager_with_a_limit_of_frames():
    with Hub() as hub:
        host, port = hub.target[6:].split(":")
        with Stub((200, {}, naming((host, int(port)), maxPacketLength=65536))) as stub:
            found = examine(stub.url, group_id="g", frame_limit=True, timeout=AMPLE)
    assert found.managers[0].max_packet_length == 65536
    assert found.proxies[0].frame_taken == 65536
    assert [one.level for one in lines_of(found, "frame")] == [Level.NOTE]


def test_a_manager_that_names_a_flood_of_nodes():
    nodes = [("127.0.0.1", 1 + i) for i in range(3)] + [(f"127.1.{i // 250}.{i % 250 + 1}", 9) for i in range(5000)]
    with Stub((200, {}, naming(*nodes))) as stub:
        found = examine(stub.url, group_id="g", timeout=AMPLE)
    assert len(found.proxies) == 512
    assert [one.text for one in lines_of(found, "target")] == ["4,491 more addresses were not looked at"]


def test_secrets_are_told_nowhere():
    with Stub((403, {}, b"")) as stub:
        found = examine(stub.url, group_id="g", manager_secret_id="ident", manager_secret_key="S3CR3T", timeout=AMPLE)
    assert "S3CR3T" not in json.dumps(found.as_json()) + repr(found)
    assert "check manager_secret_id" in lines_of(found)[0].advice


def test_an_answer_with_control_characters_is_text():
    line, _ = failure((200, {}, b'{"success": false, "errMsg": "\\u001b[2J\\nred"}'))
    assert "\x1b" not in line.text


@pytest.mark.parametrize("protocol", ["tcp", "http"])
def test_a_function_gives_the_header(protocol):
    with Hub(secret_id="admin", secret_key="87haw3VYTPqK5fK0", http_port=0) as hub:
        asked = {"group_id": "g", "timeout": AMPLE, "protocol": protocol}
        good = examine(hub.manager_url, manager_auth=lambda: "Basic YWRtaW46ODdoYXczVllUUHFLNWZLMA==", **asked)
        bad = examine(hub.manager_url, manager_auth=lambda: ("Host", "x"), **asked)
    assert (good.ok, [one.state for one in good.proxies]) == (True, ["ok"])
    assert [one.code for one in bad.managers] == ["MANAGER_SECRET"]
    assert "names host, which the request itself has" in lines_of(bad)[0].text


def test_credentials_are_looked_into_before_anything_is_sent():
    with Stub((200, {}, naming())) as stub:
        with pytest.raises(ConfigError, match="manager_auth is of type str"):
            examine(stub.url, group_id="g", manager_auth="x")
        with pytest.raises(ConfigError, match="in several ways"):
            examine(stub.url, group_id="g", manager_auth=str, manager_secret_id="a", manager_secret_key="b")
        assert stub.paths == []


@pytest.mark.parametrize(("protocol", "kind"), [("tcp", "TCP"), ("http", "HTTP")])
def test_a_limit_below_the_least_that_a_producer_uses(protocol, kind):
    """What is measured has the size that is told: a request cannot have ten bytes."""
    with Hub(http_port=0) as hub:
        port = int((hub.target if protocol == "tcp" else hub.http_target).rpartition(":")[2])
        listed = naming(("127.0.0.1", port), maxPacketLength=10).replace(b'"TCP"', f'"{kind}"'.encode())
        with Stub((200, {"content-type": "application/json"}, listed)) as stub:
            found = examine(stub.url, group_id="g", frame_limit=True, protocol=protocol, timeout=AMPLE)
    assert [one.frame_taken for one in found.proxies] == [2048]
