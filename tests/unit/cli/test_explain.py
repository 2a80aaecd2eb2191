"""``dataproxy explain``."""

import json

import pytest

from dataproxy.cli.outcome import ExitCode
from dataproxy.config import HUB, PRODUCER
from tests.unit.cli.test_commands import run


def test_a_code() -> None:
    done = run("explain", "114")
    assert done.exit_code == 0
    assert done.stdout == (
        "114 PUT_EVENT_TO_CHANNEL_FAILURE  (retry later)\n"
        "\n"
        "The proxy says: Put event to Channels failure.\n"
        "The frame is sent again after growing pauses, through any proxy, until `delivery_timeout`.\n"
        "What to do: the proxy's queue is full; wait\n"
        "Class: DeliveryFailed   Page: docs/errors.md#114\n"
    )


def test_json() -> None:
    told = json.loads(run("explain", "--json", "BufferFullError").stdout)
    assert told["name"] == "BufferFullError"
    everything = json.loads(run("explain", "--list", "--json").stdout)
    assert {114, "CLOSED", "ConfigError"} <= {told["topic"] for told in everything}


def test_list() -> None:
    lines = run("explain", "--list").stdout.splitlines()
    assert any(line.startswith("2 SERVICE_CLOSED ") and " node drained " in line for line in lines)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["BUFER_FULL"], "'BUFER_FULL' is no code, no error class and no option; did you mean BUFFER_FULL?"),
        (["zzzz"], "'zzzz' is no code, no error class and no option; dataproxy explain --list has"),
        (["lingr"], "; did you mean linger?"),
        ([], "name one code, e.g. dataproxy explain 114, or give --list"),
        (["114", "--list"], "name one code, e.g. dataproxy explain 114, or give --list"),
    ],
)
def test_misuse(words: list[str], text: str, capfd: pytest.CaptureFixture[str]) -> None:
    done = run("explain", *words)
    assert done.exit_code == ExitCode.USAGE
    assert text in done.output + capfd.readouterr().err


@pytest.mark.parametrize("word", ["batch_bytes", "batchBytes", "dataproxy.batch_bytes", "DATAPROXY_BATCH_BYTES"])
def test_an_option_in_each_spelling(word: str) -> None:
    done = run("explain", word)
    assert done.exit_code == 0
    assert done.stdout.startswith(
        "batch_bytes  (option of the producer)\n\nA pack is sent when its body reaches this size."
    )
    assert "Type: size   Default: 256KiB   Range: 1 .. " in done.stdout
    assert "Environment: DATAPROXY_BATCH_BYTES" in done.stdout


def test_every_option_is_explained() -> None:
    for table in (PRODUCER, HUB):
        for option in table.options:
            facts = json.loads(run("explain", option.name, "--json").stdout)
            assert isinstance(facts, list), "capitals tell an option from a code"
            assert (table.section, option.doc) in [(one["part"], one["meaning"]) for one in facts]
