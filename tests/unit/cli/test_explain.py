"""``dataproxy explain``."""

import json
import subprocess
import sys

import pytest

from dataproxy.cli.explain import explain_code
from dataproxy.cli.optionwords import foreign_names
from dataproxy.cli.outcome import ExitCode
from dataproxy.config import CONSUMER, HUB, PRODUCER
from dataproxy.config.tables.spark import READ_OPTIONS, SINK_OPTIONS, SOURCE_OPTIONS
from dataproxy.rows.bodies import TIMES
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
        (["BUFER_FULL"], "'BUFER_FULL' is not a code, an error class or an option; did you mean BUFFER_FULL?"),
        (["zzzz"], "'zzzz' is not a code, an error class or an option; dataproxy explain --list has"),
        (["lingr"], "; did you mean linger?"),
        (["rowId_"], "; did you mean rowIds?"),
        (["linger_m"], "; did you mean linger_ms?"),
        (
            ["99999999999999999999"],
            "is not a code, an error class or an option; dataproxy explain --list has the codes",
        ),
        (["2147483648"], "is not a code, an error class or an option; dataproxy explain --list has the codes"),
        (["-5"], "No such option: -5"),
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


def test_every_option_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    for table in (PRODUCER, CONSUMER, HUB):
        for option in table.options:
            explain_code(option.name, json=True)  # without the command line, which takes longer than all else
            facts = json.loads(capsys.readouterr().out)
            assert isinstance(facts, list), "capitals tell an option from a code"
            assert (table.section, option.doc) in [(one["part"], one["meaning"]) for one in facts]


@pytest.mark.parametrize(
    ("word", "first", "said"),
    [
        ("linger.ms", "linger.ms  (option of Kafka's clients)", "Here it is linger, in seconds: linger=0.005."),
        ("kafka.batch.size", "kafka.batch.size  (option of Kafka's clients)", "Here it is batch_bytes, in bytes"),
        ("ACKS", "ACKS  (option of Kafka's clients)", "Every message is acknowledged here"),
        (
            "pack_timeout",
            "pack_timeout  (option of InLong's SDKs)",
            "It is accepted and means `linger`, milliseconds.",
        ),
        (
            "retry_num",
            "retry_num  (option of InLong's SDKs)",
            "It has no counterpart here: retries are limited by time",
        ),
        (
            "rpcTimeoutMs",
            "rpcTimeoutMs  (option of TubeMQ's consumers)",
            "It is accepted and means `call_timeout`, milliseconds.",
        ),
        (
            "pushFetchThreadCnt",
            "pushFetchThreadCnt  (option of TubeMQ's consumers)",
            "It has no counterpart here: there are no listeners",
        ),
        ("ROWIDS", "rowIds  (option of the Spark sink)", "Give each row an id that stays the same"),
        ("dataproxy.startingOffsets", "startingOffsets  (option of the Spark reader)", "First offset of each log"),
    ],
)
def test_an_option_of_somebody_else(word: str, first: str, said: str) -> None:
    done = run("explain", word)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == first
    assert lines[2].startswith(said)
    told = json.loads(run("explain", word, "--json").stdout)
    facts = told[0] if isinstance(told, list) else told
    assert facts["option"].lower() == word.removeprefix("dataproxy.").lower()
    assert facts["page"] in ("CONFIGURATION.md", "docs/spark.md", "docs/spark-source.md")


def test_every_name_that_is_answered_elsewhere_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    for table in (PRODUCER, CONSUMER):
        for name, _ in foreign_names(table):
            explain_code(name)
            assert name in capsys.readouterr().out
    for option in (*SINK_OPTIONS, *READ_OPTIONS, *SOURCE_OPTIONS):
        explain_code(option.name)
        assert "of the Spark" in capsys.readouterr().out, option.name


@pytest.mark.parametrize("word", ["rowIds", "startingOffsets", "timestampFormat", "groupWait"])
def test_options_of_spark_are_known_without_pyspark(word: str) -> None:
    code = "import sys; sys.modules['pyspark'] = None; from dataproxy.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "explain", word], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{word}  (option of the Spark ")


def test_styles_of_timestamps_are_those_of_bodies() -> None:
    (option,) = (one for one in SINK_OPTIONS if one.name == "timestampFormat")
    assert option.choices == TIMES
