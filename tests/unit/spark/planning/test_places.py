"""Where ids of rows name places in partitions, the log says so, once for a query and not for each micro-batch."""

import logging
import sys
from dataclasses import replace

import pytest

from dataproxy.spark.planning import places
from dataproxy.spark.planning.columns import ColumnPlan
from dataproxy.spark.planning.options import SinkOptions
from dataproxy.spark.planning.places import say_what_ids_name
from dataproxy.spark.planning.writeplan import WritePlan
from dataproxy.spark.reporting.outlets import Outlets

PLAN = WritePlan("", SinkOptions((("group_id", "g"),), "s"), ColumnPlan(value=0), Outlets(), row_ids=True)
NAMED = replace(PLAN, id_run="abcdefgh")


@pytest.fixture
def said(monkeypatch, caplog):
    """Return a function that plans a write and returns what it added to the log."""
    monkeypatch.setattr(places, "_said", set())

    def plan(write, **more):
        caplog.clear()
        with caplog.at_level(logging.INFO):
            say_what_ids_name(write, **more)
        return caplog.text

    return plan


def test_a_stream_says_it_once_and_check_each_time(said):
    text = said(PLAN, stream=True)
    assert (
        "rows for the group g: their ids are made from their places in their partitions. When a micro-batch is run"
        in text
    )
    assert "idFrom" in text
    assert said(PLAN, stream=True) == ""
    assert said(PLAN, stream=True, again=True) == text
    assert said(replace(PLAN, options=SinkOptions((), "s")), stream=True).count("of the column group_id") == 1


def test_a_named_write_says_it_once_whatever_its_name_is(said):
    assert "When the write is run again" in said(NAMED, stream=False)
    assert said(replace(NAMED, id_run="ijklmnop"), stream=False) == ""


def test_the_process_that_commits_micro_batches_leaves_it_to_the_one_that_plans(said, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["daemon.py", "pyspark.sql.worker.python_streaming_sink_runner"])
    assert said(PLAN, stream=True) == ""
    monkeypatch.setattr(sys, "argv", ["daemon.py", "pyspark.sql.worker.write_into_data_source"])
    assert said(PLAN, stream=True) != ""


@pytest.mark.parametrize(
    "write",
    [
        PLAN,
        replace(NAMED, columns=ColumnPlan(value=0, id_from=(1,))),
        replace(NAMED, row_ids=False),
        replace(NAMED, outlets=Outlets(log=False)),
    ],
    ids=["not named", "of columns", "no ids", "no log"],
)
def test_others_say_nothing(said, write):
    assert said(write, stream=False) == ""
