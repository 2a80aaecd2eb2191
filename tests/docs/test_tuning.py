"""The tuning guide names options that exist, states their defaults, and its tables are those that are measured."""

import re

import pytest

from benchmarks.tuning import PARTS, main, medians_in, options_of, placed, rows_in
from dataproxy.config.spark import camel_case
from dataproxy.config.tables.producer import PRODUCER
from dataproxy.config.tables.spark import SINK_OPTIONS
from tests.docs.pages import ROOT

GUIDE = (ROOT / "docs" / "tuning.md").read_text()
OPTIONS = {option.name: option for option in PRODUCER.options}
SPARK_NAMES = {camel_case(name) for name in OPTIONS} | {option.name for option in SINK_OPTIONS}


def test_stated_defaults_are_the_defaults():
    stated = re.findall(r"`(\w+)` \(default `([^`]+)`", GUIDE)
    assert len(stated) >= 10
    for name, value in stated:
        assert OPTIONS[name].parse(value) == OPTIONS[name].default, name


def test_options_of_the_advice_take_their_values():
    given = re.findall(r"`(\w+)=\"?(\w+)\"?`", GUIDE)
    assert {"linger", "compression", "on_full"} <= {name for name, _ in given}
    for name, value in given:
        if name in OPTIONS:
            OPTIONS[name].parse(value)
        else:
            assert name in SPARK_NAMES | {"format", "partitions"}, name


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_table_has_the_rows_that_are_measured(part):
    assert rows_in(GUIDE)[part.name] == [(row.what, row.shown) for row in part.rows]
    for name, values in options_of(part).items():
        if part.client == "spark_job":
            assert name in SPARK_NAMES | {"partitions"} or name.startswith("spark.")
        else:
            for value in values:
                OPTIONS[name].parse(value)


def lingering(rate: str, metric: str) -> dict[str, float]:
    """Return one metric of the latency table at one rate, by the value of linger in ms."""
    rows = medians_in(GUIDE, "latency")
    return {shown.strip("`")[7:-2]: found[metric] for (what, shown), found in rows.items() if what.startswith(rate)}


def streams(metric: str) -> list[float]:
    """Return one metric of the rows with 10,000 streams: defaults, linger=100ms, linger=1s, linger=1s and 16 KiB."""
    return [found[metric] for (what, _), found in medians_in(GUIDE, "streams").items() if what.startswith("10,000")]


def spark(options: str) -> float:
    """Return the rate of one row of the Spark table."""
    return medians_in(GUIDE, "spark")["100 B strings, `local[2]`", options]["rate"]


RATES = ("1,000 ", "50,000 ", "500,000 ")
BATCHES = "`spark.sql.execution.arrow.maxRecordsPerBatch=100000`"
# sentence of the guide: whether the medians of its tables say the same
CLAIMS = {
    "`linger=0` gives the shortest median at each of the three rates": lambda: all(
        min(lingering(rate, "p50_us").items(), key=lambda pair: pair[1])[0] == "0" for rate in RATES
    ),
    "At 1,000 messages a second each message is a frame of its own": lambda: lingering("1,000 ", "packed")["0"] == 1,
    "`linger=0` costs more than twice the CPU of the default": lambda: all(
        lingering(rate, "cpu_per_million")["0"] > 2 * lingering(rate, "cpu_per_million")["5"] for rate in RATES[1:]
    ),
    "From `linger=0` to `1ms` the CPU per message falls most": lambda: all(
        cpu["0"] - cpu["1"] > max(cpu["1"] - cpu["5"], cpu["5"] - cpu["20"])
        for cpu in (lingering(rate, "cpu_per_million") for rate in RATES)
    ),
    "From `5ms` to `20ms` it changes by less than a fifth": lambda: all(
        0.8 < cpu["20"] / cpu["5"] < 1.2 for cpu in (lingering(rate, "cpu_per_million") for rate in RATES)
    ),
    "so that `20ms` gives the same frames as `5ms`": lambda: (
        lingering("500,000 ", "packed")["5"] == lingering("500,000 ", "packed")["20"]
    ),
    "The more streams share the messages, the fewer of them a frame has": lambda: (
        (found := [row["packed"] for (_, shown), row in medians_in(GUIDE, "streams").items() if shown == "defaults"])
        == sorted(found, reverse=True)
    ),
    "`linger=100ms` gives frames no larger than those at the defaults": lambda: (
        streams("packed")[1] <= streams("packed")[0]
    ),
    "the one with `batch_bytes=16KiB` has smaller frames, and a message costs less there": lambda: (
        streams("packed")[3] < streams("packed")[2] and streams("cpu_per_million")[3] < streams("cpu_per_million")[2]
    ),
    "so the options of the sink change its rate little": lambda: all(
        0.75 < spark(shown) / spark("defaults") < 1.33
        for shown in ("`rowIds=false`", "`compression=snappy`", "`batchBytes=32KiB`", "`linger=5ms`")
    ),
    "with `partitions=1` the second core has no task": lambda: spark("`partitions=1`") < 0.9 * spark("`partitions=2`"),
    "in 16 tasks the same rows take longer than in two": lambda: spark("`partitions=16`") < spark("`partitions=2`"),
    "change the rate by less than a quarter": lambda: 0.75 < spark(BATCHES) / spark("defaults") < 1.25,
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_sentence_follows_from_the_figures(claim):
    assert claim in " ".join(GUIDE.split()), "the sentence has gone: take its claim away"
    assert CLAIMS[claim](), "the figures say something else: change the sentence"


def test_the_time_of_a_linger_fits_several_times_into_a_row_with_streams():
    (part,) = (part for part in PARTS if part.name == "streams")
    for row in part.rows:
        longest = [OPTIONS["linger"].parse(text.split("=")[1]) for text in row.options if text.startswith("linger=")]
        seconds = float(row.words[row.words.index("--seconds") + 1])
        assert all(3 * linger <= seconds for linger in longest)


def test_a_guide_without_a_marker_is_refused():
    with pytest.raises(ValueError, match="the markers name"):
        placed("<!-- tuning: throughput -->\n<!-- end -->", {"throughput": "", "latency": ""})


def test_measured_tables_take_the_place_of_old_ones():
    text = "a\n<!-- tuning: one -->\nold\n<!-- end -->\nb\n<!-- tuning: two -->\n<!-- end -->\n"
    wanted = "a\n<!-- tuning: one -->\n| 1 |\n<!-- end -->\nb\n<!-- tuning: two -->\n| 2 |\n<!-- end -->\n"
    assert placed(text, {"one": "| 1 |\n", "two": "| 2 |\n"}) == wanted
    assert placed(wanted, {"one": "| 1 |\n", "two": "| 2 |\n"}) == wanted


def test_one_table_is_not_written_alone(capsys):
    with pytest.raises(SystemExit):
        main(["--only", "memory"])
    assert "--only is for --quick" in capsys.readouterr().err
