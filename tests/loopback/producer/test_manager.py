"""A Manager that answers well, badly, late or not at all: each its own message."""

import base64
import http.server
import json
import logging
import re
import socket
import ssl
import threading
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from dataproxy.config import load_producer_config
from dataproxy.errors import ConfigError, DiscoveryError
from dataproxy.producer.discovery.credentials import Credentials
from dataproxy.producer.discovery.targets import Endpoint, ManagerClient, ProxyList, parse_target

PAGE = Path(__file__).parents[3] / "docs" / "errors.md"
CERTIFICATE = Path(__file__).parents[2] / "data" / "tls" / "loopback.pem"
NODES = [{"id": 1, "ip": "10.0.0.1", "port": 46801, "protocolType": "TCP", "nodeLoad": 65535}]
FULL = {
    "clusterId": 1,
    "reportSourceType": None,
    "isIntranet": None,
    "isSwitch": None,
    "load": 20,
    "maxPacketLength": None,
}


def answer(**data):
    return json.dumps({"success": True, "errMsg": None, "data": {**FULL, "nodeList": NODES, **data}}).encode()


class Stub(http.server.ThreadingHTTPServer):
    """Answer every POST with ``reply`` (status, content type, body), or wait for ``release`` when it is None."""

    daemon_threads = True
    reply = (200, "application/json", answer())

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen = []
        self.redirects = []  # (status, location), used up one by one
        self.release = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        self.server.seen.append(SimpleNamespace(path=self.path, headers=self.headers, body=body))
        if self.server.redirects:
            status, where = self.server.redirects.pop(0)
            self.send_response(status)
            self.send_header("location", where)
            self.send_header("content-length", "0")
            self.end_headers()
            return
        if self.server.reply is None:
            self.server.release.wait(30)
            return
        status, kind, body = self.server.reply
        self.send_response(status)
        if kind:
            self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def stub():
    server = Stub()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.release.set()
    server.shutdown()
    thread.join()
    server.server_close()


def fetch(url, group="b_app", **options):
    client = ManagerClient(parse_target(url), load_producer_config(url, env={}, **options))
    try:
        return client.fetch(group)
    finally:
        client.close()
        client.close()


def test_request(stub):
    secret = {"manager_secret_id": "admin", "manager_secret_key": "87haw3VYTPqK5fK0"}
    assert fetch(stub.url + "/gate", "b/a b?&", **secret) == ProxyList(1, (Endpoint("10.0.0.1", 46801),), ids=("1",))
    (request,) = stub.seen
    assert request.path == "/gate/inlong/manager/openapi/dataproxy/getIpList/b%2Fa%20b%3F%26"
    assert request.headers["authorization"] == "Basic YWRtaW46ODdoYXczVllUUHFLNWZLMA=="
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    assert request.body == "ip=127.0.0.1&version=dataproxy-python&protocolType=TCP"
    fetch(stub.url)
    assert stub.seen[1].headers["authorization"] is None


def test_client_is_reusable(stub):
    client = ManagerClient(parse_target(stub.url), load_producer_config(stub.url, env={}))
    assert client.fetch("g") == client.fetch("g")
    client.close()
    assert client.fetch("g").cluster_id == 1
    client.close()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"load": 500, "isSwitch": 3, "maxPacketLength": 1000, "clusterId": None}, (None, 200, 3, 1000)),
        ({"load": -5, "maxPacketLength": -1, "clusterId": "7"}, (7, 0, 0, 0)),
        ({"load": None}, (1, 20, 0, 0)),
    ],
)
def test_fields(stub, data, expected):
    stub.reply = (200, "application/json;charset=UTF-8", answer(**data))
    found = fetch(stub.url)
    assert (found.cluster_id, found.load, found.is_switch, found.max_packet_length) == expected


def test_nodes(stub):
    nodes = [
        {"id": "a", "ip": "h1", "port": "46801"},
        {"id": 2, "ip": "h2", "port": 8080, "protocolType": "HTTP"},
        {"id": 3, "ip": " h3 ", "port": 1, "protocolType": "tcp", "extra": [1]},
        {"id": 4, "ip": "h1", "port": 46801, "protocolType": "TCP"},
    ]
    stub.reply = (200, "application/json", answer(nodeList=nodes))
    found = fetch(stub.url)
    assert found.endpoints == (Endpoint("h1", 46801), Endpoint("h3", 1))
    assert found.ids == ("a", "3")


def test_a_bad_entry_hides_no_good_one(stub):
    bad = [
        {"ip": "h", "port": 0},
        {"ip": 4, "port": 1},
        None,
        {"ip": "a b", "port": 1},
        {"port": 1},
        {"ip": "h", "port": []},
    ]
    stub.reply = (200, "application/json", answer(nodeList=[*bad, {"id": {"odd": 1}, "ip": "good", "port": 1}, *bad]))
    found = fetch(stub.url)
    assert (found.endpoints, found.ids) == ((Endpoint("good", 1),), ())
    assert len(found.ignored) == 12
    assert found.ignored[:3] == (
        "port 0 - at `$.data.nodeList[0].port`",
        "Expected `str`, got `int` - at `$.data.nodeList[1].ip`",
        "Expected `object`, got `null` - at `$.data.nodeList[2]`",
    )


def test_a_cluster_by_its_name(stub):
    assert fetch(stub.url + "/getIpListByClusterName/west%20one", "").endpoints == (Endpoint("10.0.0.1", 46801),)
    assert stub.seen[0].path == "/inlong/manager/openapi/dataproxy/getIpListByClusterName/west%20one"
    stub.reply = (200, "application/json", b'{"success":false,"errMsg":"no such cluster"}')
    with pytest.raises(DiscoveryError, match="refused cluster 'west': 'no such cluster'; check that it exists"):
        fetch(stub.url + "/getIpListByClusterName/west", "g")
    stub.reply = (200, "application/json", answer(nodeList=[]))
    with pytest.raises(DiscoveryError, match="has no TCP proxy for cluster 'west'; check that the cluster has"):
        fetch(stub.url + "/getIpListByClusterName/west", "g")


def test_the_tenant_is_a_header(stub):
    fetch(stub.url)
    fetch(stub.url, manager_tenant="blue")
    assert [request.headers["tenant"] for request in stub.seen] == [None, "blue"]
    for bad in ("a\r\nb", " a", "\N{SNOWMAN}"):
        with pytest.raises(ConfigError, match="manager_tenant="):
            fetch(stub.url, manager_tenant=bad)


def test_a_header_from_a_function_comes_with_each_question(stub):
    tokens = iter(["Bearer 1", ("X-Token", "2")])
    config = load_producer_config(stub.url, env={})
    credentials = Credentials(config, lambda: next(tokens))
    for _ in range(2):
        with closing(ManagerClient(parse_target(stub.url), config, credentials=credentials)) as client:
            client.fetch("g")
    assert [(one.headers["authorization"], one.headers["x-token"]) for one in stub.seen] == [
        ("Bearer 1", None),
        (None, "2"),
    ]


def test_a_function_that_hangs_is_bounded_by_the_timeout(stub):
    config = load_producer_config(stub.url, env={}, manager_timeout="200ms")
    hang = threading.Event()
    credentials = Credentials(config, lambda: hang.wait(60) and "Bearer late")
    client = ManagerClient(parse_target(stub.url), config, credentials=credentials)
    try:
        with pytest.raises(DiscoveryError) as caught:
            client.fetch("g")
    finally:
        hang.set()
        client.close()
    assert caught.value.code == "MANAGER_TIMEOUT"
    assert stub.seen == []


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_on_the_same_address_is_followed(stub, status):
    stub.redirects = [(status, "/gate" + "/other/path")]
    assert fetch(stub.url, manager_secret_id="a", manager_secret_key="b").cluster_id == 1
    assert [one.path for one in stub.seen][1:] == ["/gate/other/path"]
    assert stub.seen[1].body == stub.seen[0].body
    assert stub.seen[1].headers["authorization"] == stub.seen[0].headers["authorization"]


@pytest.mark.parametrize(
    "where", ["http://evil.example/x", "//evil.example/", "https://127.0.0.1/", "http://127.0.0.1:1/", "http://[::1"]
)
def test_a_redirect_to_another_address_is_refused(stub, where):
    stub.redirects = [(302, where + "?token=s3cret")]
    with pytest.raises(
        DiscoveryError, match=r"redirects to another address, .*, which is not asked; give that"
    ) as caught:
        fetch(stub.url, manager_secret_id="a", manager_secret_key="b")
    assert caught.value.code == "MANAGER_URL"
    assert "s3cret" not in str(caught.value)
    assert len(stub.seen) == 1


def test_redirects_end(stub):
    stub.redirects = [(307, "/again")] * 10
    with pytest.raises(DiscoveryError, match="redirects more than 3 times") as caught:
        fetch(stub.url)
    assert (caught.value.code, len(stub.seen)) == ("MANAGER_URL", 4)


def retriable_by_the_page():
    """Return what docs/errors.md says of each code."""
    rows = re.findall(r"</a>`([A-Z_]+)` \| `\w+` \| [^|]+ \| (permanent|retry later) \|", PAGE.read_text())
    assert len(rows) > 30
    return {code: word == "retry later" for code, word in rows}


HTML = b"<!DOCTYPE html><html><head><title>Welcome to the company's own landing page</title></head></html>"
BASE = "check that the target is a Manager's base URL"


@pytest.mark.parametrize(
    ("reply", "code", "retriable", "message"),
    [
        (
            (200, "text/html;charset=utf-8", HTML), "MANAGER_LOGIN", True,
            'answered with an HTML page instead of a list of proxies, starting "<!DOCTYPE html><html><head><title>',
        ),
        (
            (200, "", b"\n <HTML><body>Please log in"), "MANAGER_LOGIN", True,
            "answered with an HTML page instead of a list of proxies, starting '<HTML><body>Please log in'; a login",
        ),
        (
            (200, "text/plain", b"Please log in"), "MANAGER_ANSWER", True,
            "answered with text/plain that is not JSON (JSON is malformed: invalid character (byte 0)), starting 'Pl",
        ),
        (
            (200, "", b""), "MANAGER_ANSWER", True,
            "answered with no content type that is not JSON (Input data was truncated), starting ''; " + BASE,
        ),
        (
            (403, "text/plain", b"Forbidden"), "MANAGER_REFUSED", False,
            "refused the request with HTTP 403; it requires credentials: set manager_secret_id and manager_secret_key",
        ),
        (
            (404, "text/plain", b"no such page"), "MANAGER_URL", False,
            "answered with HTTP 404, starting 'no such page'; " + BASE,
        ),
        (
            (302, "text/plain", b""), "MANAGER_URL", False,
            "answered with HTTP 302, starting ''; " + BASE,
        ),
        (
            (429, "text/plain", b"slowly"), "MANAGER_ANSWER", True,
            "answered with HTTP 429, starting 'slowly'; see the Manager's log",
        ),
        (
            (503, "text/plain", b"overloaded"), "MANAGER_ANSWER", True,
            "answered with HTTP 503, starting 'overloaded'; see the Manager's log",
        ),
        (
            (200, "application/json", answer(nodeList=[])), "NO_PROXIES", True,
            "has no TCP proxy for group 'b_app'; check that the group's cluster has DataProxy nodes",
        ),
        (
            (200, "application/json", b'{"success":true,"data":null}'), "NO_PROXIES", True,
            "has no TCP proxy for group 'b_app'; check that the group's cluster has DataProxy nodes",
        ),
        (
            (200, "application/json", b'{"success":false,"errMsg":"group not found"}'), "GROUP_REFUSED", True,
            "refused group 'b_app': 'group not found'; check that the group exists and is approved",
        ),
        (
            (200, "application/json", b'{"success":false}'), "GROUP_REFUSED", True,
            "refused group 'b_app': 'no reason given'; check that the group exists and is approved",
        ),
        (
            (200, "application/json", b'{"data":{}}'), "MANAGER_ANSWER", True,
            "that has the wrong form: Object missing required field `success`, starting '{\"data\":{}}'; " + BASE,
        ),
        (
            (200, "application/json", b"[]"), "MANAGER_ANSWER", True,
            "that has the wrong form: Expected `object`, got `array`, starting '[]'; " + BASE,
        ),
        (
            (200, "application/json", answer(nodeList=[{"ip": 4, "port": 1}])), "MANAGER_ANSWER", True,
            "that has the wrong form: Expected `str`, got `int` - at `$.data.nodeList[0].ip`",
        ),
        (
            (200, "application/json", answer(nodeList=[{"ip": "h", "port": "x"}])), "MANAGER_ANSWER", True,
            "that has the wrong form: Expected `int`, got `str` - at `$.data.nodeList[0].port`",
        ),
        (
            (200, "application/json", answer(nodeList=[{"ip": "h", "port": 0}, {}, []])), "MANAGER_ANSWER", True,
            "that has the wrong form: port 0 - at `$.data.nodeList[0].port` (and 2 other entries)",
        ),
        (
            (200, "application/json", answer(nodeList=NODES * 10_001)), "MANAGER_ANSWER", True,
            "that names 10001 proxies, more than 10000",
        ),
        (
            (200, "application/json", answer(nodeList=[{"ip": " ", "port": 1}])), "MANAGER_ANSWER", True,
            "that has the wrong form: no address - at `$.data.nodeList[0].ip`",
        ),
        (
            (200, "application/json", b" " * (9 << 20)), "MANAGER_ANSWER", True,
            "answered with more than 8388608 bytes; " + BASE,
        ),
    ],
    ids=lambda value: None if isinstance(value, (tuple, bool, str)) else value,
)  # fmt: skip
def test_bad_answers(stub, reply, code, retriable, message):
    stub.reply = reply
    with pytest.raises(DiscoveryError) as caught:
        fetch(stub.url)
    text = str(caught.value)
    assert text.startswith(f"the Manager at {stub.url} ")
    assert message in text
    assert (caught.value.code, caught.value.retriable) == (code, retriable)
    assert retriable_by_the_page()[code] == retriable


def test_wrong_credentials(stub):
    stub.reply = (403, "text/plain", b"no")
    with pytest.raises(DiscoveryError, match="HTTP 403; check manager_secret_id and manager_secret_key"):
        fetch(stub.url, manager_secret_id="a", manager_secret_key="b")
    with pytest.raises(ConfigError, match="contains ':'"):
        fetch(stub.url, manager_secret_id="a:b", manager_secret_key="c")


def test_silence(stub):
    stub.reply = None
    with pytest.raises(DiscoveryError) as caught:
        fetch(stub.url, manager_timeout="200ms")
    assert caught.value.code == "MANAGER_TIMEOUT"
    assert "did not answer within 0.2 s; check it, or raise manager_timeout" in str(caught.value)


def test_bytes_that_trickle_in_do_not_extend_the_limit():
    """Each byte comes in time, the answer as a whole does not."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def trickle():
            peer, _ = listener.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
                while not stop.wait(0.02):
                    try:
                        peer.sendall(b"1\r\n \r\n")
                    except OSError:
                        return

        thread = threading.Thread(target=trickle)
        thread.start()
        try:
            with pytest.raises(DiscoveryError, match=r"did not answer within 0\.3 s"):
                fetch(f"http://127.0.0.1:{listener.getsockname()[1]}", manager_timeout="300ms")
        finally:
            stop.set()
            thread.join()


def test_nobody_there():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(DiscoveryError) as caught:
            fetch(url)
    assert str(caught.value) == (
        f"the Manager at {url} cannot be reached: Connection refused; check host, port and scheme [DISCOVERY]"
    )


def test_unknown_host(monkeypatch):
    def getaddrinfo(*arguments, **options):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(DiscoveryError) as caught:
        fetch("http://nowhere.example:8083")
    assert caught.value.code == "UNRESOLVED_HOST"
    assert "has no address: Name or service not known; check the host name" in str(caught.value)


def test_https_towards_http(stub):
    with pytest.raises(DiscoveryError, match=r"failed the TLS handshake: .*; write http:// in place of https://"):
        fetch(stub.url.replace("http", "https"))


def test_certificates_are_verified(stub, monkeypatch):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    stub.socket = context.wrap_socket(stub.socket, server_side=True)
    url = stub.url.replace("http", "https")
    with pytest.raises(DiscoveryError, match=r"self-signed certificate; give the authority's .* as manager_tls_ca"):
        fetch(url)
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    assert fetch(url).cluster_id == 1


def test_secrets_are_not_logged(stub, caplog):
    secret = "s3cr3t-w0rd"
    encoded = base64.b64encode(f"me:{secret}".encode()).decode()
    config = load_producer_config(stub.url, env={}, manager_secret_id="me", manager_secret_key=secret)
    client = ManagerClient(parse_target(stub.url), config)
    stub.reply = (500, "text/plain", b"oops")
    with caplog.at_level(logging.DEBUG), pytest.raises(DiscoveryError) as caught:
        client.fetch("g")
    client.close()
    shown = caplog.text + str(caught.value) + repr(caught.value) + repr(client) + repr(caught.value.details)
    assert secret not in shown
    assert encoded not in shown
