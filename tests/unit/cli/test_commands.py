"""The command line without any network: help, options, configuration, exit codes."""

import builtins
import json
import logging
import re
import tomllib
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from dataproxy import errors
from dataproxy._core.server.store.core import StoreCore
from dataproxy.cli import main as entry
from dataproxy.cli.app import app
from dataproxy.cli.outcome import ExitCode, outcome, reported
from dataproxy.cli.settings import named_options, named_values
from dataproxy.config import CONSUMER, HUB, PRODUCER
from tests.native.probe_feed import append_entries

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"


def run(*arguments, **options):
    return CliRunner().invoke(app, list(arguments), **options)


COMMANDS = {
    (): ["--show-completion", "hub", "send", "tail", "consume", "topics", "stats", "frames", "config", "version"],
    ("hub",): ["--store", "--memory", "--port"],
    ("send",): [
        "--stream",
        "--group",
        "--target",
        "--file",
        "--delimiter",
        "--null",
        "--max-lines",
        "--option",
        "--json",
    ],
    ("doctor",): [
        "--group",
        "--stream",
        "--send",
        "--body",
        "--frame-limit",
        "--timeout",
        "--config",
        "--option",
        "--strict",
        "--json",
        "--progress",
    ],
    ("tail",): ["--store", "--hub", "--start", "--last", "--max", "--follow", "--count", "--json"],
    ("consume",): [
        "--group",
        "--target",
        "--filter",
        "--from",
        "--format",
        "--null",
        "--max",
        "--timeout",
        "--config",
        "--option",
        "--raw",
        "--progress",
        "--verbose",
    ],
    ("topics",): ["--target", "--config", "--option", "--json"],
    ("stats",): ["--hub", "--json"],
    ("frames",): ["--sender", "--limit", "--full", "--json"],
    ("config", "show"): ["--origin", "--changed", "--config", "--option", "--json"],
}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help(command):
    result = run(*command, "--help", env={"COLUMNS": "200", "TERM": "dumb"})
    assert result.exit_code == 0
    text = re.sub(r"\x1b\[[0-9;]*m", "", result.stdout)
    for word in COMMANDS[command]:
        assert word in text
    assert run(*command, "-h").exit_code == 0


def test_page_names_every_option_and_code():
    page = PAGE.read_text()
    for command, words in COMMANDS.items():
        assert not command or f"## `dataproxy {' '.join(command)}`" in page
        for word in words:
            assert word in page
    for code in ExitCode:
        assert f"| {int(code)} |" in page


def test_version():
    for arguments in (["version"], ["--version"]):
        result = run(*arguments)
        assert result.exit_code == 0
        assert result.stdout.startswith("dataproxy ")


@pytest.mark.parametrize("arguments", [["nope"], ["send"], ["send", "--nope"], ["tail", "g"], ["config", "show", "x"]])
def test_usage_errors(arguments):
    result = run(*arguments)
    assert result.exit_code == ExitCode.USAGE
    assert not result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["send", "-s", "s"], "there is no target"),
        (["send", "-s", "s", "-t", "tcp://127.0.0.1:9", "-f", "/dev/null"], "no group was given; give --group ID"),
        (["send", "-s", "s", "-g", "g", "-t", "h:1"], "target 'h:1' has no scheme"),
        (["doctor", "tubemq://h:1", "--group", "g"], "target 'tubemq://h:1' names masters of TubeMQ"),
        (["perf", "run", "tubemq://h:1"], "target 'tubemq://h:1' names masters of TubeMQ"),
        (["send", "-s", "s", "-t", "tcp://h", "-o", "lingr=1"], "no option 'lingr', did you mean 'linger'?"),
        (["send", "-s", "s", "-t", "tcp://h", "-o", "linger"], "-o 'linger' has no value; write -o name=value"),
        (["send", "-s", "s", "-t", "tcp://h", "-o", "linger=1", "-o", "linger=2"], "-o gives 'linger' twice"),
        (["send", "-s", "s", "-t", "tcp://h", "-o", "target=tcp://i"], "target is given twice"),
        (["send", "-s", "s", "-t", "tcp://h", "-o", "env=1"], "there is no option 'env'"),
        (["send", "-s", "s", "-t", "tcp://h", "--delivery-timeout", "5MB"], "has 'MB', which is not a unit of time"),
        (["send", "-s", "s", "-t", "tcp://h", "-0", "--delimiter", "x"], "both --null and --delimiter are given"),
        (["send", "-s", "s", "-t", "tcp://h", "--delimiter", ""], "a delimiter cannot be empty"),
        (["send", "-s", "s", "-t", "tcp://h", "-c", "no.toml"], "'no.toml' cannot be read: No such file"),
        (
            ["send", "-s", "s", "-t", "tcp://h", "-g", "g", "-f", "/no/file"],
            "--file '/no/file' cannot be read: No such file",
        ),
        (["tail", "g", "s", "--store", "a", "--hub", "http://h"], "both --store and --hub are given"),
        (["tail", "g", "s", "--count", "--follow"], "--count and --follow do not go together"),
        (["tail", "g", "s", "-n", "3", "--max", "3"], "--last does not go with --max or --count"),
        (["tail", "g", "s", "--hub", "ftp://h"], "hub 'ftp://h' is not a URL"),
        (["consume", "a"], "there is no target"),
        (["consume", "a", "-t", "tubemq://h"], "there is no group"),
        (["consume", "", "-t", "tubemq://h", "-g", "g"], "there are no topics"),
        (["consume", "a", "-t", "tcp://h", "-g", "g"], "has the unknown scheme 'tcp'"),
        (["consume", "a", "-t", "tubemq://h", "-g", "g", "-o", "topics=b"], "topics is given twice"),
        (["consume", "a", "-t", "tubemq://h", "-g", "g", "--timeout", "5MB"], "--timeout '5MB' has 'MB'"),
        (["consume", "a", "-t", "tubemq://h", "-g", "g", "-0", "--format", "json"], "--null does not go with --format"),
        (["consume", "a=b", "-t", "tubemq://h", "-g", "g", "--filter", "c"], "filter items of TOPIC were both given"),
        (["consume", "a", "-t", "tubemq://h", "-g", "g", "--filter", "a b"], "'a b'"),
        (["topics", "a"], "there is no target"),
        (["topics", "a=b", "-t", "tubemq://h"], "a TOPIC has filter items"),
        (["topics", "", "-t", "tubemq://h"], "no topic was named"),
        (["topics", "a", "-t", "tubemq://h", "-o", "target=tubemq://i"], "target is given twice"),
        (["hub"], "no store was given"),
        (["config", "show", "-o", "executors=99"], "option executors (argument): '99' is too large"),
        (["--log-level", "loud", "version"], "--log-level 'loud' is unknown"),
        (["--log-config", "/no/file", "version"], "--log-config '/no/file' cannot be used"),
    ],
)
def test_wrong_configuration(arguments, message):
    result = run(*arguments)
    assert result.exit_code == ExitCode.USAGE, result.output
    assert message in result.stderr
    assert result.stderr.startswith("dataproxy: ")
    assert not result.stdout


@pytest.mark.parametrize(("part", "table"), [("producer", PRODUCER), ("consumer", CONSUMER), ("hub", HUB)])
def test_config_show_is_toml(part, table):
    result = run("config", "show", part, "--origin")
    assert result.exit_code == 0
    shown = tomllib.loads(result.stdout)
    assert list(shown) == list(table.by_name)
    for line, option in zip(result.stdout.splitlines(), table.options, strict=True):
        assert line.endswith("  # default")
        assert str(shown[option.name]) in (option.format(option.default), str(option.default))


def test_config_show_origins(tmp_path, monkeypatch):
    path = tmp_path / "p.toml"
    path.write_text('linger = "7ms"\n')
    monkeypatch.setenv("DATAPROXY_MANAGER_SECRET_ID", "me")
    monkeypatch.setenv("DATAPROXY_MANAGER_SECRET_KEY", "s3cret")
    result = run(
        "config", "show", "--changed", "--origin", "-c", str(path), "-o", "executors=2", "-o", "delivery_timeout=5s"
    )
    assert [re.split(r" = |  +# ", line) for line in result.stdout.splitlines()] == [
        ["executors", "2", "argument"],
        ["linger", '"7ms"', f"file {path}"],
        ["delivery_timeout", '"5s"', "argument"],
        ["ack_timeout", '"1664ms"', "default, changed to fit delivery_timeout"],
        ["connect_timeout", '"1664ms"', "default, changed to fit delivery_timeout"],
        ["manager_secret_id", '"***"', "environment variable DATAPROXY_MANAGER_SECRET_ID"],
        ["manager_secret_key", '"***"', "environment variable DATAPROXY_MANAGER_SECRET_KEY"],
    ]
    shown = json.loads(run("config", "show", "--json", "-o", "delivery_timeout=5s").stdout)
    assert shown["ack_timeout"] == {"value": "1665ms", "origin": "default, changed to fit delivery_timeout"}
    assert "s3cret" not in json.dumps(shown)


def test_log_config(tmp_path):
    path = tmp_path / "l.toml"
    path.write_text('version = 1\n[loggers."dataproxy"]\nlevel = "DEBUG"\n')
    assert run("--log-config", str(path), "version").exit_code == 0
    assert logging.getLogger("dataproxy").level == logging.DEBUG
    assert run("--log-level", "off", "version").exit_code == 0
    path.write_text("version = 2\n")
    assert run("--log-config", str(path), "version").exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConfigError("x"), 2),
        (errors.DiscoveryError("x"), 3),
        (errors.TransportError("x"), 3),
        (errors.InvalidMessageError("x"), 1),
        (errors.StoreError("x"), 1),
        (KeyboardInterrupt(), 130),
        (ModuleNotFoundError("x", name="aiohttp"), 2),
        (ModuleNotFoundError("x", name="google.protobuf"), 2),
    ],
)
def test_outcome(error, code, capfd):
    with pytest.raises(typer.Exit) as caught, outcome():
        raise error
    assert caught.value.exit_code == code
    out, err = capfd.readouterr()
    assert not out
    assert err.startswith("dataproxy: ") or code == 130


def test_what_is_missing_for_tubemq_is_named(capfd):
    with pytest.raises(typer.Exit), outcome():
        raise ModuleNotFoundError("no google", name="google")
    wanted = "dataproxy: the package 'protobuf' is missing; pip install 'dataproxy-sdk[tubemq]'\n"
    assert capfd.readouterr().err == wanted


def test_other_errors_stay_what_they_are():
    with pytest.raises(ZeroDivisionError), outcome():
        raise ZeroDivisionError


def test_reported_keeps_the_signature():
    def command(name: str) -> None:
        raise errors.ConfigError(name)

    assert reported(command).__wrapped__ is command
    with pytest.raises(typer.Exit):
        reported(command)("x")


def test_named_values():
    assert named_values(["a=1", " b =2=3"], "-a") == {"a": "1", "b": "2=3"}
    with pytest.raises(errors.ConfigError) as caught:
        named_values(["s3cret"], "-a")
    assert "'s3cret' has no value" in str(caught.value)
    assert named_options(["linger=1"]) == {"linger": "1"}


def test_missing_extra(monkeypatch, capfd):
    real = builtins.__import__

    def no_typer(name, *arguments):
        if name == "dataproxy.cli.app":
            raise ModuleNotFoundError("no typer", name="typer")
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", no_typer)
    with pytest.raises(SystemExit) as caught:
        entry.main()
    assert caught.value.code == 2
    assert capfd.readouterr().err == "dataproxy: the package 'typer' is missing; pip install 'dataproxy-sdk[cli]'\n"


def test_store_verify(tmp_path) -> None:
    store = StoreCore(str(tmp_path))
    append_entries(store, [("g", "s", b"x" * 5000)])
    assert run("store", "verify", str(tmp_path)).exit_code == ExitCode.FAILED  # in use
    store.close()
    done = run("store", "verify", str(tmp_path), "--progress")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "1 entries, 1 records, 1 logs" in done.stderr
    assert done.stderr.endswith("no damage\n")
    data = tmp_path / "data.mdb"
    whole = data.read_bytes()
    at = whole.index(b"x" * 1000)
    data.write_bytes(whole[:at] + b"y" + whole[at + 1 :])
    done = run("store", "verify", str(tmp_path))
    assert done.exit_code == ExitCode.FAILED
    assert done.stdout == "'g' (partition 0)\tthe data of entry 0 are not what was stored\n"
    assert "1 damages" in done.stderr
    told = json.loads(run("store", "verify", str(tmp_path), "--json").stdout)
    assert (told["ok"], told["damages"]) == (False, 1)
    assert run("store", "verify", str(tmp_path / "no")).exit_code == ExitCode.FAILED
