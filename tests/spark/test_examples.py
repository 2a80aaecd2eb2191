"""The examples that need Spark, in the session of these tests and in a small size."""

import importlib
import re
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.tubeserver import TubeServer

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("spark_*.py") if path.stem != "spark_local")


@pytest.fixture
def run(spark, monkeypatch, capsys):
    """Return a function that runs an example and returns what it printed, stdout and stderr."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(SparkSession, "stop", lambda session: None)

    def call(name, *arguments, status=0):
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        ended = importlib.import_module("spark_local").ended
        assert ended(importlib.import_module(name).main) == status
        printed = capsys.readouterr()
        return printed.out, printed.err

    return call


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_target_is_told_in_a_line(run, name):
    out, err = run(name, "nonsense", status=1)
    assert out == ""
    assert err.splitlines()[-1].startswith("target 'nonsense' has no scheme; write ")
    assert "Traceback" not in err


def test_files_to_hub(run):
    out, err = run("spark_files_to_hub")
    assert "10,000 rows = 10,000 acknowledged + 0 skipped" in out
    assert len(re.findall(r"hub has 3,33[34] records of sales/orders_", err)) == 3


def test_reading_a_hub(run):
    out, _ = run("spark_read_hub")
    assert out.splitlines() == [
        "orders_shop: 5,000 orders, the last one 9999",
        "orders_web: 5,000 orders, the last one 9998",
    ]


def test_stream_with_a_restart(run):
    out, err = run("spark_stream_restart")
    acked, batches = re.search(r"([\d,]+) rows acknowledged in (\d+) micro-batches", out).groups()
    stored = int(re.search(r"hub has ([\d,]+) records of clock/ticks", err)[1].replace(",", ""))
    assert int(batches) >= 6
    assert stored % 500 == 0
    assert stored <= int(acked.replace(",", "")) + 500


def test_event_time(run):
    out, err = run("spark_event_time")
    assert "40 windows written" in out
    assert len(re.findall(r"hub has 10 records of counts/page-", err)) == 4


def test_backfill(run):
    out, err = run("spark_backfill", "--rows", "20000")
    assert "20,000 rows = 20,000 acknowledged + 0 skipped" in out
    assert "hub has 20,000 records of plant/readings" in err


def test_query_metrics(run):
    out, _ = run("spark_query_metrics")
    assert float(re.search(r"^sink_rows_acknowledged_total ([\d.]+)$", out, re.MULTILINE)[1]) >= 300
    assert "sink_ack_latency_p99_seconds" in out
    assert re.search(r"^query_active 0.0$", out, re.MULTILINE)  # the query was stopped


def test_tubemq_to_hub(run, tmp_path):
    with TubeServer({"orders": 2}) as server:
        for n in range(100):
            server.put("orders", b"order %d" % n, n % 2, f"$msgType$=kind{n % 2}")
        given = ("--masters", server.target, "--checkpoint", str(tmp_path))
        out, err = run("spark_tubemq", *given)
        assert out == "100 messages read and written\n"
        assert len(re.findall(r"hub has 50 records of invoices/kind", err)) == 2
        server.put("orders", b"late")
        out, err = run("spark_tubemq", *given)
        assert out == "1 messages read and written\n"
        assert "hub has 1 records of invoices/orders" in err
