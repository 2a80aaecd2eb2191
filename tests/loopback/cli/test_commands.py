"""``send``, ``tail`` and ``stats`` in this process, against a hub on loopback."""

import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from dataproxy import Producer
from dataproxy.cli.app import app
from dataproxy.cli.hub.client import HubClient
from dataproxy.cli.send.sending import Accounting, _Pace, _progress_line
from dataproxy.errors import HubError, TransportError
from dataproxy.hub import Hub
from tests.campaigns.httppeers.answers import ANSWERS, HostileAnswer, HostileServer


@pytest.fixture
def hub():
    with Hub() as running:
        yield running


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"one\n\ntwo\n\xff\n")
    return path


def test_send_with_progress_and_table(hub, lines):
    result = run("send", "-t", hub.target, "-g", "g", "-s", "s", "-f", lines, "--progress")
    assert result.exit_code == 0
    assert not result.stdout
    assert [record.body for record in hub.records("g")] == [b"one", b"two", b"\xff"]
    for words in ("lines read", "empty lines skipped", "delivered", "bytes accepted"):
        assert words in result.stderr


def test_send_refused(hub, lines):
    hub.set_service("stopped")
    result = run("send", "-t", hub.target, "-g", "g", "-s", "s", "-f", lines, "--delivery-timeout", "200ms")
    assert result.exit_code == 1
    assert "code 2 SERVICE_CLOSED" in result.stderr


def test_bad_names_and_attributes(hub, lines):
    for arguments in (["-s", "a&b"], ["-s", "s", "-a", "sid=1"]):
        result = run("send", "-t", hub.target, "-g", "g", "-f", lines, *arguments)
        assert result.exit_code == 2
        assert "BAD_" in result.stderr


def test_no_lines(hub, tmp_path):
    (tmp_path / "none").write_bytes(b"")
    result = run("send", "-t", hub.target, "-g", "g", "-s", "s", "-f", tmp_path / "none", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["ok"]


def test_tail(hub, lines):
    run("send", "-t", hub.target, "-g", "g", "-s", "s", "-f", lines)
    assert run("tail", "g", "s", "--hub", hub.manager_url).stdout_bytes == b"one\ntwo\n\xff\n"
    assert run("tail", "g", "s", "--hub", hub.manager_url, "--max", "2", "-0").stdout_bytes == b"one\0two\0"
    assert run("tail", "g", "s", "--hub", hub.manager_url, "--count").stdout == "3\n"
    assert run("tail", "g", "s", "--hub", hub.manager_url, "-n", "2", "-0").stdout_bytes == b"two\0\xff\0"
    assert run("tail", "g", "s", "--hub", hub.manager_url, "-n", "9").stdout_bytes == b"one\ntwo\n\xff\n"
    assert run("tail", "g", "s", "--hub", hub.manager_url, "-n", "0").exit_code == 0
    assert run("tail", "g", "s", "--hub", hub.manager_url, "--start", "1").stdout == ""
    rows = [json.loads(line) for line in run("tail", "g", "s", "--hub", hub.manager_url, "--json").stdout.splitlines()]
    assert [row.get("body", row.get("body_base64")) for row in rows] == ["one", "two", "/w=="]
    assert [row["index"] for row in rows] == [0, 1, 2]


@pytest.mark.parametrize(("more", "code"), [([], 1), (["--count"], 0)])
def test_a_stream_that_is_not_there_is_named(hub, lines, more, code):
    run("send", "-t", hub.target, "-g", "g", "-s", "s", "-f", lines)
    result = run("tail", "g", "other", "--hub", hub.manager_url, *more)
    assert (result.exit_code, result.stdout) == (code, "0\n" if more else "")
    assert "there is no record of group 'g' and stream 'other'; dataproxy stats lists" in result.stderr


def test_tail_reads_page_after_page(hub, tmp_path, monkeypatch):
    """More entries than fit into one answer of the hub."""
    monkeypatch.setattr("dataproxy.cli.hub.client._PAGE_RECORDS", 3)
    path = tmp_path / "many"
    path.write_bytes(b"".join(b"%d\n" % i for i in range(20)))
    run("send", "-t", hub.target, "-g", "g", "-s", "s", "-f", path, "-o", "batch_messages=2")
    printed = run("tail", "g", "s", "--hub", hub.manager_url).stdout_bytes
    assert sorted(printed.split(), key=int) == [b"%d" % i for i in range(20)]
    assert run("tail", "g", "s", "--hub", hub.manager_url, "-n", "5").stdout_bytes.split() == printed.split()[-5:]


def test_tail_of_a_store(tmp_path, lines):
    with Hub(tmp_path / "store") as hub:
        run("send", "-t", hub.target, "-g", "g", "-s", "s", "-f", lines)
        assert run("tail", "g", "s", "--store", tmp_path / "store").stdout_bytes == b"one\ntwo\n\xff\n"


def test_stats(hub, lines):
    run("send", "-t", hub.target, "-g", "g", "-s", "s", "-f", lines)
    shown = run("stats", "--hub", hub.manager_url).stdout
    assert "store." in shown
    assert "connections" in shown
    found = json.loads(run("stats", "--hub", hub.manager_url, "--json").stdout)
    assert [(row["group"], row["stream"], row["records"]) for row in found["streams"]] == [("g", "s", 3)]


def test_credentials(hub):
    hub.manager.secrets = {"me": "key"}
    refused = run("stats", "--hub", hub.manager_url)
    assert refused.exit_code == 1
    assert "HTTP 403: 'authentication failed" in refused.stderr
    assert "give --secret-id and --secret-key" in refused.stderr
    assert run("stats", "--hub", hub.manager_url, "--secret-id", "me", "--secret-key", "key").exit_code == 0


def test_not_a_hub(hub):
    with pytest.raises(HubError, match="HTTP 404"):
        HubClient(hub.manager_url + "/elsewhere").get("/hub/stats")


@pytest.mark.parametrize("token", ["a-secret\nof-two-lines", "a-secret-\u20ac", "a-secret-\x7f"])
@pytest.mark.parametrize("command", ["events", "offsets reset g --to first"])
def test_a_token_that_no_header_can_have_is_refused_and_not_shown(command, token, monkeypatch):
    monkeypatch.setenv("DATAPROXY_HUB_TOKEN", token)
    result = run(*command.split(), "--hub", "http://127.0.0.1:9")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "token has characters that an HTTP header cannot have" in result.stderr
    assert "a-secret" not in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["tail", "g\udcff", "s"],
        ["tail", "g", "s\udcff", "--follow"],
        ["groups", "\udcff"],
        ["tubemq", "members", "\udcff"],
        ["stats", "--secret-id", "\udcff", "--secret-key", "key"],
        ["events", "--follow", "--secret-id", "me", "--secret-key", "hidden\udcff"],
    ],
    ids=" ".join,
)
def test_an_argument_that_is_no_text_is_wrong_and_the_hub_is_not_away(hub, arguments):
    result = run(*arguments, "--hub", hub.manager_url)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "not valid UTF-8" in result.stderr and "cannot be reached" not in result.stderr
    assert "hidden" not in result.stderr


def test_a_folder_in_the_place_of_the_file_with_the_token_has_none(hub, tmp_path, monkeypatch):
    monkeypatch.setenv("DATAPROXY_HUB_TOKEN_FILE", str(tmp_path))
    before = len(list(Path("/proc/self/fd").iterdir()))
    result = run("offsets", "reset", "g", "--to", "first", "--hub", hub.manager_url)
    assert result.exit_code == 2
    assert "need the hub's token" in result.stderr
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def answered(body, kind="application/json"):
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    return HostileAnswer(head.encode() + body)


@pytest.mark.parametrize(
    ("body", "said"),
    [(b"{}", "HTTP 200: b'{}'"), (b'{"success": false, "errMsg": "log in first"}', "HTTP 200: 'log in first'")],
)
@pytest.mark.parametrize(
    "command",
    ["stats", "tail g s", "clients", "groups g", "events", "offsets reset g --to first", "tubemq groups"],
)
def test_an_object_of_another_server_is_no_answer_of_a_hub(command, body, said, monkeypatch):
    """As InLong's Manager gives them, which has the same port by default."""
    monkeypatch.setenv("DATAPROXY_HUB_TOKEN", "a-token-of-this-test")
    with HostileServer(answered(body)) as server:
        result = run(*command.split(), "--hub", f"http://127.0.0.1:{server.port}")
    assert (result.exit_code, result.stdout) == (1, "")
    assert said in result.stderr
    assert "check that --hub is the Manager port of a dataproxy hub" in result.stderr


@pytest.mark.parametrize("name", ["a huge length", "a negative chunk", "a huge chunk", "arrays in arrays"])
def test_what_is_no_answer_at_all_is_an_error_with_a_name(name):
    with HostileServer(ANSWERS[name]) as server, pytest.raises((HubError, TransportError)):
        HubClient(f"http://127.0.0.1:{server.port}").get("/hub/stats")


@pytest.mark.parametrize(
    "text",
    [
        b"id: r-1\ndata: {nope",
        b"id: r-1\ndata: [1]",
        b'id: r-1\ndata: {"number": 1}',
        b'id: r-1\ndata: {"number": 1, "time_ms": "x", "event": "came"}',
        b'id: r-1\ndata: {"number": 1, "time_ms": 1e300, "event": "came"}',
        b'id: r-1\ndata: {"number": 1, "time_ms": 999999999999999999, "event": "came"}',
        b'id: r-\xc3\xa9\ndata: {"number": 1, "time_ms": 1, "event": "came"}',
        b'id: r\rx: y\ndata: {"number": 1, "time_ms": 1, "event": "came"}',
        b"event: missed\ndata: {}",
        b'event: missed\ndata: {"missed": "x"}',
    ],
)
def test_a_message_that_is_no_event_is_an_error(text):
    with HostileServer(answered(text + b"\n\n", "text/event-stream")) as server:
        result = run("events", "--follow", "--hub", f"http://127.0.0.1:{server.port}")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "sent what is no event" in result.stderr


@pytest.mark.parametrize("name", ["a head without a body", "a huge chunk", "gzip that is none"])
def test_a_refusal_of_a_stream_that_breaks_off_is_an_error_with_a_name(name):
    with HostileServer(ANSWERS[name]) as server, pytest.raises(TransportError, match="cannot be reached"):
        next(HubClient(f"http://127.0.0.1:{server.port}").follow("/hub/events/stream", 0, print))


def test_progress_line_before_the_producer():
    assert not _progress_line(Accounting(), _Pace()).plain


def test_the_pace_is_that_of_the_last_seconds():
    pace = _Pace()
    assert pace.rate(0.0, 0) == 0
    assert pace.rate(1.0, 1000) == 1000
    for second in range(2, 20):
        latest = pace.rate(float(second), 1000)
    assert latest == 0, "nothing was delivered of late"


def test_the_progress_is_one_line_in_a_narrow_terminal(hub):
    with Producer(hub.target, group_id="g") as producer:
        accounting = Accounting(lines=123_456_789_012, producer=producer)
        (line,) = Console(width=40).render_lines(_progress_line(accounting, _Pace()))
        assert "".join(part.text for part in line).startswith("123,456,789,012 read  ")
