"""What others have named and written, in the output of commands: shown, never obeyed."""

import json
import logging
import os
import pty
import socket
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from dataproxy.cli.app import app
from dataproxy.hub import Hub
from dataproxy.shown import printable
from tests.campaigns.httppeers.names import STORED
from tests.loopback.hub.peer import binary_frame, read_frame


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def store(hub, group, stream, body=b"body"):
    with socket.create_connection(("127.0.0.1", hub.port), timeout=30) as one:
        one.sendall(binary_frame(1, [body], group, stream))
        return read_frame(one)


@pytest.fixture(scope="module")
def hub():
    with Hub() as running:
        for text in STORED.values():
            store(running, text, text)
        yield running


def test_such_names_are_stored(hub):
    assert {group for group, _ in hub.counts()} == set(STORED.values())


def test_stats(hub):
    shown = run("stats", "--hub", hub.manager_url)
    assert shown.exit_code == 0
    assert shown.stdout.replace("\n", "").isprintable()
    for text in STORED.values():
        assert printable(text) in shown.stdout
    result = run("stats", "--hub", hub.manager_url, "--json")
    assert result.stdout.replace("\n", "").isprintable()
    assert {row["group"] for row in json.loads(result.stdout)["streams"]} == set(STORED.values())


@pytest.mark.parametrize("name", STORED)
def test_tail_as_json(hub, name):
    result = run("tail", STORED[name], STORED[name], "--hub", hub.manager_url, "--json")
    assert result.exit_code == 0
    (line,) = result.stdout.splitlines()
    assert line.isprintable()
    assert json.loads(line)["group_id"] == STORED[name]


@pytest.mark.parametrize("name", [name for name, text in STORED.items() if "\0" not in text])
def test_complaints(hub, name):
    for arguments in (
        ("explain", STORED[name]),
        ("stats", "--hub", STORED[name]),
        ("config", "show", "-o", f"target={STORED[name]}"),
        ("config", "show", "--origin", "--json", "-o", f"group_id={STORED[name]}"),
        ("send", "-t", STORED[name], "-s", "s", "-f", "/dev/null"),
        ("send", "-t", hub.target, "-g", "g", "-s", STORED[name], "-f", STORED[name]),
        ("--log-level", STORED[name], "version"),
    ):
        result = run(*arguments)
        assert (result.stdout + result.stderr).replace("\n", "").isprintable(), arguments
        if "show" not in arguments:
            assert result.stderr.startswith("dataproxy: ")
            assert result.stderr.count("\n") == 1


def test_log_lines(hub):
    run("--log-level", "info", "version")
    (handler,) = [one for one in logging.getLogger("dataproxy").handlers if isinstance(one, logging.StreamHandler)]
    for text in STORED.values():
        record = logging.LogRecord("dataproxy.x", logging.ERROR, "f", 1, "said %s", (text,), None)
        assert handler.format(record) == f"ERROR dataproxy.x: said {printable(text)}"
    try:
        raise ValueError("\x1b[2J")
    except ValueError:
        record = logging.LogRecord("dataproxy.x", logging.ERROR, "f", 1, "a\nb", (), sys.exc_info())
    first, *rest = handler.format(record).split("\n")
    assert first == r"ERROR dataproxy.x: a\nb"
    assert rest[0].startswith("Traceback")
    assert all(line.isprintable() for line in rest)


@pytest.mark.parametrize(("options", "shown"), [((), b"a\\x1b[2J\\xff\\n\r\n"), (("--raw",), b"a\x1b[2J\xff\r\n\r\n")])
def test_tail_to_a_terminal(options, shown):
    with Hub() as hub:
        store(hub, "g", "s", b"a\x1b[2J\xff\n")
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "dataproxy", "tail", "g", "s", "--hub", hub.manager_url, *options]
        done = subprocess.run(command, stdout=theirs, stdin=subprocess.DEVNULL, check=False, timeout=60)
        os.close(theirs)
        found = os.read(ours, 1000)
        os.close(ours)
    assert (done.returncode, found) == (0, shown)


def test_no_secret_of_a_url_is_shown():
    for url in ("http://me:s3cr3t@127.0.0.1:1", "http://127.0.0.1:1/?s3cr3t", "me:s3cr3t@h", "tcp://h?s3cr3t"):
        for arguments in (
            ("config", "show", "-o", f"target={url}", "--origin"),
            ("config", "show", "--json", "-o", f"target={url}"),
            ("config", "show", "-o", f"target={url}\0"),
            ("stats", "--hub", url),
            ("tail", "g", "s", "--hub", url),
            ("send", "-t", url, "-g", "g", "-s", "s", "-f", "/dev/null"),
        ):
            result = run(*arguments)
            assert "s3cr3t" not in result.stdout + result.stderr, arguments
