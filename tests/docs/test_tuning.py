"""The tuning guide names options that exist, states their defaults, and its tables are those that are measured."""

import re

import pytest

from benchmarks.tuning import PARTS, main, options_of, placed, rows_in
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
            assert name in SPARK_NAMES | {"format"}, name


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_table_has_the_rows_that_are_measured(part):
    assert rows_in(GUIDE)[part.name] == [(row.what, row.shown) for row in part.rows]
    for name, values in options_of(part).items():
        if part.client == "spark_job":
            assert name in SPARK_NAMES
        else:
            for value in values:
                OPTIONS[name].parse(value)


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
