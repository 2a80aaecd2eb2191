"""Partitions that Spark's sink writes, with a producer whose results the test decides: ``use_fakes`` puts it in."""

from types import SimpleNamespace
from typing import ClassVar

import pyarrow as pa

from dataproxy.errors import FlushTimeout, InvalidMessageError
from dataproxy.producer.discovery.targets import parse_target
from dataproxy.spark.planning.columns import ColumnPlan
from dataproxy.spark.planning.options import SinkOptions
from dataproxy.spark.planning.writeplan import TaskPlace, WritePlan
from dataproxy.spark.reporting.outlets import Outlets
from dataproxy.spark.writing import producers

__all__ = ["PLACE", "FakeProducer", "batches", "plan", "use_fakes"]

PLACE = TaskPlace(partition=3, attempt=1, run="job")


def plan(stream="s"):
    """Return the plan of a write to one proxy, which nobody listens at."""
    producer = (("group_id", "g"), ("target", "tcp://127.0.0.1:1"))
    return WritePlan("job", SinkOptions(producer, stream), ColumnPlan(value=0), Outlets())


class FakeProducer:
    """Takes every row; `refuse` names bodies that a proxy refuses, `bad` bodies that are not accepted."""

    made: ClassVar[list["FakeProducer"]] = []
    refuse: ClassVar[set[str]] = set()
    bad: ClassVar[set[str]] = set()
    silent: ClassVar[bool] = False

    def __init__(self, *, config):
        self.config = config
        self.closed = False
        self.counts = dict.fromkeys(
            (
                "accepted",
                "delivered",
                "sent",
                "failed",
                "expired",
                "dropped",
                "pending",
                "retries",
                "duplicates_filtered",
                "conflicts",
                "maybe_delivered",
            ),
            0,
        )
        self.rows = []
        self.waits = []
        FakeProducer.made.append(self)

    def _known_endpoints(self):
        return list(parse_target(self.config.target).endpoints)

    def _follow(self, config, first):
        self.followed = (config.target, first)

    def accept(self, batch, value):
        values = batch.column(value).to_pylist()
        for row, value in enumerate(values):
            if value in self.bad:
                raise InvalidMessageError("the body is no good", details={"item": row})
        nulls = values.count(None)
        failed = sum(value in self.refuse for value in values)
        self.rows += [value for value in values if value is not None]
        self.counts["accepted"] += len(values) - nulls
        self.counts["failed"] += failed
        self.counts["pending" if self.silent else "delivered"] += len(values) - nulls - failed
        return len(values) - nulls, nulls, 0, sum(len(value) for value in values if value is not None)

    def flush(self, timeout):
        self.waits.append(timeout)
        if self.silent:
            if len(self.waits) == 3:  # the first of those that nobody answers
                self.counts["expired"] += 1
                self.counts["pending"] -= 1
            raise FlushTimeout("no result", report=self.report())

    def report(self):
        return SimpleNamespace(**self.counts)

    def _counts(self):
        return {
            **self.counts,
            "open": 0,
            "in_flight": self.counts["pending"],
            "delivered_bytes": 10 * self.counts["delivered"],
            "codes": {108: self.counts["failed"]} if self.counts["failed"] else {},
            "copies_possible": 0,
            "settled_frames": self.counts["delivered"],
            "filtered_frames": 0,
        }

    def _take_reach(self):
        return None

    def _latency_steps(self):
        return {1000: self.counts["delivered"]} if self.counts["delivered"] else {}

    def close(self, timeout):
        self.closed = True


def use_fakes(monkeypatch):
    """Put ``FakeProducer`` in the place of the sink's producers, with none of them made yet."""
    monkeypatch.setattr(producers, "Producer", FakeProducer)
    monkeypatch.setattr(producers, "send_record_batch", lambda to, batch, *, value, **names: to.accept(batch, value))
    monkeypatch.setattr("dataproxy.spark.writing.partition.PRODUCERS", producers.ProducerPool())
    monkeypatch.setattr(FakeProducer, "made", [])
    monkeypatch.setattr(FakeProducer, "refuse", set())
    monkeypatch.setattr(FakeProducer, "bad", set())


def batches(*columns):
    """Yield a record batch for each list of texts."""
    for column in columns:
        yield pa.record_batch([pa.array(column, pa.string())], names=["value"])
