"""The driver's log in Spark's own processes."""

import errno
import logging
import signal
import socket
import sys
from types import SimpleNamespace

import pytest
from pyspark.sql.types import StringType, StructType

from dataproxy.logs import logger
from dataproxy.spark import driverlog
from dataproxy.spark.driverlog import open_log
from dataproxy.spark.planning.plan import plan_write

SINK = logger("spark.sink")


@pytest.fixture
def main(monkeypatch):
    """Return a function that names the main module of this process, whose loggers then have no handlers."""

    def named(name):
        for one in (logging.getLogger(), logging.getLogger("dataproxy.spark")):
            monkeypatch.setattr(one, "handlers", [])
        monkeypatch.setattr(logging.getLogger("dataproxy"), "handlers", [logging.NullHandler()])
        monkeypatch.setattr(logging.getLogger("dataproxy"), "level", logging.NOTSET)
        monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__spec__=SimpleNamespace(name=name)))

    yield named
    named("pyspark.daemon")
    open_log(False)


def test_records_are_seen_in_a_process_of_sparks(main, capsys):
    main("pyspark.daemon")
    for _ in range(2):
        open_log(True)
        SINK.info("12 rows")
    assert capsys.readouterr().err.count(" INFO dataproxy.spark.sink: 12 rows\n") == 2
    open_log(False)
    SINK.warning("12 rows")
    assert capsys.readouterr().err == ""


def test_spark_may_gather_them_itself(main, capsys, caplog):
    main("pyspark.sql.worker.commit_data_source_write")
    logging.getLogger().handlers.append(caplog.handler)
    open_log(True)
    SINK.info("12 rows")
    assert caplog.messages == ["12 rows"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("log", ["true", "false"])
def test_a_proxy_that_is_down_is_named_whether_or_not_reports_are_logged(main, capsys, monkeypatch, log):
    def refuse(address, timeout):
        raise OSError(errno.ECONNREFUSED, "Connection refused")

    monkeypatch.setattr(socket, "create_connection", refuse)
    main("pyspark.sql.worker.write_into_data_source")
    options = {"target": "tcp://127.0.0.1:1", "groupId": "g", "streamId": "s", "reportLog": log}
    plan_write(options, StructType().add("value", StringType()), job="job")
    words = "WARNING dataproxy.spark.target: 1 of 1 proxies cannot be reached from the driver: 127.0.0.1:1: Connection"
    assert words in capsys.readouterr().err
    SINK.info("12 rows")
    assert ("12 rows" in capsys.readouterr().err) == (log == "true")


@pytest.mark.parametrize("name", ["application", "pytest.__main__"])
def test_other_processes_stay_as_they_are(main, capsys, name):
    main(name)
    open_log(True)
    SINK.info("12 rows")
    assert capsys.readouterr().err == ""


@pytest.fixture
def termination():
    """Restore what this process does with SIGTERM."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("termination")
def test_only_processes_of_spark_end_in_order(monkeypatch):
    driverlog.end_in_order()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    monkeypatch.setattr(driverlog, "is_sparks_own", lambda: True)
    driverlog.end_in_order()
    with pytest.raises(SystemExit):
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.usefixtures("termination")
def test_a_process_that_handles_the_signal_itself_is_left_alone(monkeypatch):
    monkeypatch.setattr(driverlog, "is_sparks_own", lambda: True)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    driverlog.end_in_order()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
