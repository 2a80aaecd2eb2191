"""``dataproxy doctor`` in this process, against a hub on loopback."""

import json
import os

import pytest
from typer.testing import CliRunner

from dataproxy.cli.app import app
from dataproxy.cli.doctor.shown import as_text
from dataproxy.doctor import Finding, Findings, Level
from dataproxy.hub import Hub
from tests.support.scripted import Scripted, refusal

NOBODY = "tcp://127.0.0.1:9"
SANITIZED = "DATAPROXY_SANITIZER" in os.environ


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch):
    for name in [*os.environ]:
        if name.startswith("DATAPROXY_"):
            monkeypatch.delenv(name)
    for name in ("COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def hub():
    with Hub() as running:
        yield running


def run(*arguments):
    return CliRunner().invoke(app, ["doctor", *map(str, arguments)])


def test_this_machine():
    result = run()
    assert result.exit_code == 0
    assert "dataproxy doctor: this machine" in result.stdout
    for word in ("version", "open files", "memory", "cores", "local ports"):
        assert word in result.stdout
    assert "proxy" not in result.stdout.replace("dataproxy", "")
    assert "checks in" in result.stderr


def test_a_good_cluster(hub):
    result = run(hub.manager_url, "-g", "b_app", "-s", "s_click", "--send", "--frame-limit")
    assert result.exit_code == 0
    assert "acknowledged by 127.0.0.1" in result.stdout
    assert "takes frames of 524,288 bytes" in result.stdout
    assert "1 proxy: " in result.stdout
    (record,) = hub.records("b_app", "s_click")
    assert record.body.startswith(b"dataproxy doctor: test message")


def test_each_row_is_one_line_in_a_file(hub):
    rows = [line for line in run(f"{NOBODY},{hub.target[6:]}").stdout.splitlines() if "proxy" in line and "127" in line]
    assert len([line for line in rows if "Connection refused" in line]) == 2  # in the table, and above its advice


def test_json(hub):
    result = run(hub.target, "-g", "g", "-s", "s", "--send", "--body", "1|2", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["format"] == 1
    assert found["ok"]
    assert found["proxies"][0]["state"] == "ok"
    assert found["proxies"][0]["message"]["state"] == "acknowledged"
    assert [record.body for record in hub.records("g", "s")] == [b"1|2"]


def test_exit_codes(hub):
    assert run(NOBODY).exit_code == 3
    assert run("http://127.0.0.1:9", "-g", "g").exit_code == 3
    assert run(f"{NOBODY},{hub.target[6:]}").exit_code == 1
    with Scripted(lambda peer, frame: peer.send(refusal(frame, 115))) as proxy:
        result = run(proxy.target, "-g", "g", "-s", "s", "--send")
    assert result.exit_code == 1
    warnings = "1 warning" if SANITIZED else "0 warnings"  # doctor warns of such a build
    assert result.stderr.startswith(f"dataproxy: 2 errors, {warnings}, 1 note: message 127.0.0.1:")
    assert "115 TOPIC_IS_BLANK" in result.stderr
    assert "clock this machine" in result.stderr  # the answers are years old


def test_warnings_count_with_strict(hub):
    few = ["-o", "executors=64", "-o", "connections=64"]
    assert run(hub.target, *few).exit_code == 0
    assert run(hub.target, *few, "--strict").exit_code == 1
    assert run(hub.target, "--strict", "-o", "ordering=key").exit_code == SANITIZED  # a note
    assert "several memory queues" in run(hub.target, "-o", "ordering=key").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tcp//h"], "has no scheme"),
        (["h:46801"], "has no scheme"),
        (["tpc://h"], "did you mean tcp://?"),
        (["tcp://h:0"], "out of range"),
        (["tcp://user:S3CR3T@h"], "contains '@'"),
        ([""], "TARGET is empty"),
        ([" "], "TARGET is empty"),
        (["http://h"], "no group_id"),
        ([NOBODY, "--send"], "give all three"),
        ([NOBODY, "--body", "x"], "nothing is to be sent"),
        ([NOBODY, "-g", "a&b"], "BAD_NAME"),
        ([NOBODY, "-g", "g", "-s", "\u4e2d", "--send"], "BAD_NAME"),
        ([NOBODY, "--timeout", "soon"], "--timeout 'soon'"),
        ([NOBODY, "--timeout", "0s"], "out of range"),
        ([NOBODY, "--timeout", "-1s"], "--timeout '-1s'"),
        ([NOBODY, "-o", "target=tcp://h"], "target is given twice"),
        ([NOBODY, "-o", "lingr=1"], "linger"),
        ([NOBODY, "-c", "no-such-file.toml"], "No such file"),
    ],
)
def test_usage_errors(arguments, words):
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "S3CR3T" not in result.stderr
    assert not result.stdout


def test_the_target_of_the_environment_and_of_a_file(hub, monkeypatch, tmp_path):
    (tmp_path / "producer.toml").write_text(f'[producer]\ntarget = "{hub.target}"\n')
    assert json.loads(run("--config", tmp_path / "producer.toml", "--json").stdout)["target"] == hub.target
    monkeypatch.setenv("DATAPROXY_TARGET", hub.target)
    assert json.loads(run("--json").stdout)["target"] == hub.target
    assert json.loads(run(NOBODY, "--json").stdout)["target"] == NOBODY


def test_progress_in_lines(hub):
    steps = run(hub.target, "--progress").stderr.splitlines()
    assert "reading versions and limits" in steps
    assert "1 of 1 address of proxies" in steps


# --- the text


@pytest.mark.parametrize("columns", ["1", "20", "40", "79", "500"])
def test_narrow_terminals_lose_nothing(hub, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    result = run(hub.target)
    assert result.exit_code == 0
    if int(columns) >= 20:
        said = "".join(character for character in result.stdout if character.isalnum())
        assert "heartbeat" in said
        assert hub.target[6:].replace(":", "").replace(".", "") in said.replace(".", "")


def test_many_proxies_with_the_same_trouble_share_their_advice():
    rows = [Finding("proxy", f"h:{i}", Level.ERROR, "Connection refused", "means", "advice") for i in range(1, 41)]
    text = as_text(Findings("tcp://h", findings=[*rows, Finding("clock", "m", Level.NOTE, "n", "x", "y")]))
    assert text.count("-> advice") == 1
    assert "h:8 and 32 more: Connection refused" in text
    assert text.index("-> advice") < text.index("-> y")


def test_foreign_text_is_no_markup_and_no_command():
    row = Finding("proxy", "[bold]h[/x]", Level.ERROR, "it answers: \x1b[2J\n[red]", "\x07", "\u202eback")
    text = as_text(Findings("tcp://h", findings=[row]))
    assert "[bold]h[/x]" in text
    assert "\\x1b[2J\\n[red]" in text
    assert "\\u202eback" in text
    assert "\x1b" not in text


def test_an_interrupted_examination_says_so():
    assert "(interrupted)" in as_text(Findings("tcp://h", finished=False))
