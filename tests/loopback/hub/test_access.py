"""Who may ask and change what over HTTP: names and origins, tokens, credentials, and listening beyond this machine."""

import base64
import json
import stat
from http.client import HTTPConnection
from pathlib import Path

import pytest

from dataproxy.cli.hub.client import HubClient, find_token
from dataproxy.errors import ConfigError, HubError
from dataproxy.hub import Hub
from dataproxy.hub.tokenfile import read_token, remove_token, runtime_file, write_token

KILL = b'{"kind": "kill"}'
JSON = {"Content-Type": "application/json"}
DISCOVER = "/inlong/manager/openapi/dataproxy/getIpList/g"
READS = (
    "/hub/stats",
    "/hub/counts",
    "/hub/records?group=g",
    "/hub/logs?group=g",
    "/hub/faults",
    "/hub/listeners",
    "/hub/nowhere",
)
CHANGES = (
    ("POST", "/hub/faults", KILL),
    ("DELETE", "/hub/faults", b""),
    ("DELETE", "/hub/faults/1", b""),
    ("POST", "/hub/listeners/0/kill", b"{}"),
    ("POST", "/hub/listeners/0/refuse", b"{}"),
    ("POST", "/hub/listeners/0/restart", b"{}"),
)


def call(hub, method, path, body=b"", **headers):
    """Send one request, with ``_`` in the names of headers for ``-``; return (status, JSON)."""
    connection = HTTPConnection("127.0.0.1", hub.manager_port, timeout=30)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.putrequest(method, path, skip_host="Host" in named)
        for name, value in {**named, "Content-Length": str(len(body))}.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def bearer(hub):
    return {"Authorization": f"Bearer {hub.token}"}


@pytest.fixture
def hub(start_hub):
    return start_hub(fault_api="on")


def unharmed(hub):
    """Tell whether nobody has changed anything."""
    return not len(hub.faults) and all(listener.listens for listener in hub.listeners)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8083", "127.0.0.1.evil.example", "localhost.evil.example", "", "[", "a@127.0.0.1.b"],
)
def test_a_name_that_somebody_pointed_here_gets_nothing(hub, host):
    for path in READS:
        status, found = call(hub, "GET", path, Host=host, **bearer(hub))
        assert (status, found["success"]) == (403, False)
        assert "allowed_hosts" in found["errMsg"]
    for method, path, body in CHANGES:
        assert call(hub, method, path, body, Host=host, Content_Type="application/json", **bearer(hub))[0] == 403
    assert unharmed(hub)
    if host:
        assert call(hub, "POST", DISCOVER, Host=host)[1]["success"], "SDKs ask the Manager by any name"
        assert call(hub, "GET", "/healthz", Host=host)[0] == 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8083", "10.1.2.3", "hub.test:80"])
def test_names_that_are_its_own(start_hub, host):
    hub = start_hub(allowed_hosts=["Hub.test"])
    assert call(hub, "GET", "/hub/stats", Host=host)[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "file://127.0.0.1:8083"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_pages_of_others_are_refused(hub, headers):
    for path in READS:
        assert call(hub, "GET", path, **headers, **bearer(hub))[0] == 403
    for method, path, body in CHANGES:
        assert call(hub, method, path, body, **headers, Content_Type="application/json", **bearer(hub))[0] == 403
    assert unharmed(hub)
    assert call(hub, "POST", DISCOVER, **headers)[1]["success"]


def test_a_page_of_the_hub_itself_may_ask(hub):
    own = f"http://127.0.0.1:{hub.manager_port}"
    assert call(hub, "GET", "/hub/stats", Origin=own, Sec_Fetch_Site="same-origin")[0] == 200


@pytest.mark.parametrize(
    "authorization", [None, "Bearer", "Bearer x", "Basic x", "Bearer \xe9\xff", "{token}", "Basic {token}"]
)
def test_changes_need_the_token(hub, authorization):
    headers = {"Content_Type": "application/json"}
    if authorization is not None:
        headers["Authorization"] = authorization.format(token=hub.token)
    for method, path, body in CHANGES:
        status, found = call(hub, method, path, body, **headers)
        assert (status, "token" in found["errMsg"]) == (403, True)
    assert unharmed(hub)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x", None])
def test_changes_are_json(hub, kind):
    headers = {} if kind is None else {"Content_Type": kind}
    for method, path, body in CHANGES:
        expected = 415 if body else 200 if path == "/hub/faults" else 404
        assert call(hub, method, path, body, **headers, **bearer(hub))[0] == expected
    assert call(hub, "POST", "/hub/listeners/0/kill", **bearer(hub))[0] == 415
    assert unharmed(hub)


def test_faults_are_off_unless_asked_for(start_hub):
    hub = start_hub()
    for method, path, body in [*CHANGES, ("GET", "/hub/faults", b""), ("GET", "/hub/listeners", b"")]:
        headers = {"Content_Type": "application/json"} if body else {}
        status, found = call(hub, method, path, body, **headers, **bearer(hub))
        assert (status, "fault_api=on" in found["errMsg"]) == (403, True)
    assert hub.faults.add("kill").fired == 1, "code of the same process may"


def test_credentials_are_options(start_hub):
    hub = start_hub(secret_id="me", secret_key="s3cr3t-w0rd")
    right = {"Authorization": "Basic " + base64.b64encode(b"me:s3cr3t-w0rd").decode()}
    for path in READS[:3]:
        assert call(hub, "GET", path)[0] == 403
        assert call(hub, "GET", path, **right)[0] == 200
        assert call(hub, "GET", path, **bearer(hub))[0] == 200, "the token opens everything"
    assert call(hub, "POST", DISCOVER)[0] == 403
    assert call(hub, "POST", DISCOVER, **right)[0] == 200
    assert "s3cr3t-w0rd" not in f"{hub!r} {hub.config!r} {hub.manager!r} {list(hub.config.shown())}"
    with pytest.raises(HubError, match="--secret-id"):
        HubClient(hub.manager_url).get("/hub/stats")
    assert HubClient(hub.manager_url, "me", "s3cr3t-w0rd").get("/hub/stats")


def test_credentials_go_together():
    with pytest.raises(ConfigError, match="secret_id is given without secret_key"):
        Hub(secret_id="me")


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_beyond_this_machine_it_wants_credentials(host):
    with pytest.raises(ConfigError) as caught:
        Hub(host=host)
    assert caught.value.code == "INSECURE"
    assert "--insecure" in str(caught.value)


def test_beyond_this_machine_with_credentials_or_in_spite():
    for options in ({"secret_id": "me", "secret_key": "s3cr3t-w0rd"}, {"insecure": True}):
        with Hub(host="0.0.0.0", **options) as hub:
            assert call(hub, "GET", "/healthz")[0] == 200


def test_tokens(tmp_path):
    with Hub() as first, Hub() as second:
        assert first.token != second.token
        assert len(first.token) > 40
        assert first.token not in f"{first!r} {first.config!r}"
    file = tmp_path / "token"
    with Hub(token="chosen-by-somebody", token_file=str(file)) as hub:
        assert hub.token == read_token(file) == "chosen-by-somebody"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert "chosen-by-somebody" not in repr(hub.config)
    assert not file.exists()
    with pytest.raises(ConfigError, match="token is too short"):
        Hub(token="short")
    with pytest.raises(HubError, match="token cannot be written"):
        Hub(token_file=str(tmp_path / "nowhere" / "token"))


def test_the_file_of_a_token_is_this_users_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    file = runtime_file("127.0.0.1", 8083)
    file.parent.mkdir(mode=0o755)
    with pytest.raises(HubError, match="other users may write"):
        write_token(file, "t", folder=True)
    file.parent.chmod(0o700)
    file.symlink_to(tmp_path / "elsewhere")
    write_token(file, "t", folder=True)
    assert (read_token(file), (tmp_path / "elsewhere").exists(), file.is_symlink()) == ("t", False, False)
    remove_token(file, "another hub's")
    assert read_token(file) == "t"
    file.chmod(0o644)
    assert read_token(file) == "", "others could have read it, or written it"
    assert [one.name for one in file.parent.iterdir()] == [file.name]


def test_commands_find_the_token_of_a_hub_on_this_machine(tmp_path, monkeypatch, start_hub):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    hub = start_hub(secret_id="me", secret_key="s3cr3t-w0rd")
    write_token(runtime_file(hub.host, hub.manager_port), hub.token, folder=True)
    write_token(runtime_file("127.0.0.2", hub.manager_port), "of another address", folder=True)
    assert HubClient(hub.manager_url).get("/hub/stats")["connections"] == 0
    for elsewhere in ("http://hub.test:%d", "http://10.0.0.1:%d"):
        assert find_token(elsewhere % hub.manager_port) == "", "told to nobody else"
    assert find_token("http://127.0.0.1:x") == ""
    assert find_token(f"http://[::1]:{hub.manager_port}") == "", "another address"
    assert find_token(f"http://localhost:{hub.manager_port}") == hub.token
    file = tmp_path / "given"
    write_token(Path(file), "from-the-file")
    monkeypatch.setenv("DATAPROXY_HUB_TOKEN_FILE", str(file))
    assert find_token("http://hub.test") == "from-the-file"
    monkeypatch.setenv("DATAPROXY_HUB_TOKEN", "from-the-variable")
    assert find_token("http://hub.test") == "from-the-variable"


@pytest.mark.parametrize("url", ["http://", "http://[::1", "http://127.0.0.1:99999"])
def test_a_hub_without_host_and_port_is_a_wrong_option(url):
    with pytest.raises(ConfigError, match="names no host and port"):
        HubClient(url)
