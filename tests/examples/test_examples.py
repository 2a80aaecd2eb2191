"""The examples run as they stand, against the hub that they start, and tell the truth."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dataproxy
from dataproxy.hub import Hub
from dataproxy.perf import read_result

EXAMPLES = Path(__file__).parents[2] / "examples"
PACKAGES = Path(dataproxy.__file__).parents[1]
SPARK_PROGRAMS = sorted(
    path.name
    for path in EXAMPLES.glob("*.py")
    if path.name.startswith(("spark_", "flights_")) and "__main__" in path.read_text()
)
pytestmark = pytest.mark.timeout(300)


def run(*arguments, folder=None, status=0, seconds=280):
    """Run an example in a folder and return its finished process, whose exit status is checked."""
    path = os.pathsep.join(part for part in (str(PACKAGES), os.environ.get("PYTHONPATH", "")) if part)
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / arguments[0]), *arguments[1:]],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr[-3000:]
    return done


def test_send(tmp_path):
    done = run("send.py", folder=tmp_path)
    assert "2,000 accepted = 2,000 delivered + 0 failed" in done.stdout
    assert "1,000 records of shop/clicks" in done.stderr


@pytest.mark.parametrize("words", [(), ("--uvloop",)], ids=["asyncio", "uvloop"])
def test_asyncio_service(tmp_path, words):
    done = run("asyncio_service.py", *words, folder=tmp_path)
    assert "5,000 of 5,000 lines answered with ok; 5,000 messages acknowledged" in done.stdout
    assert "5,000 records of service/lines" in done.stderr


def test_read_transform_write(tmp_path):
    done = run("read_transform_write.py", folder=tmp_path)
    assert done.stdout == "10,000 orders read, 10,000 invoices acknowledged; 0 orders may come again\n"
    assert len(re.findall(r"hub has 5,000 records of invoices/(?:web|shop)", done.stderr)) == 2


def test_read_transform_write_goes_on_where_it_stopped(tmp_path):
    with Hub(tmp_path / "store", tubemq_port=0) as hub:
        for number in range(2):
            with dataproxy.Producer(hub.tubemq_target) as producer:
                producer.send("orders", b'{"id": %d, "channel": "web", "cents": 1999}' % number).result(60)
            done = run("read_transform_write.py", hub.tubemq_target, hub.target, "--quiet", "2", folder=tmp_path)
            assert done.stdout.startswith("1 orders read, 1 invoices acknowledged;")
        bodies = [json.loads(record.body) for record in hub.records("invoices", "web")]
    assert bodies == [{"order": number, "total": "19.99"} for number in range(2)]


def test_read_transform_write_confirms_nothing_that_was_not_written(tmp_path):
    with Hub(tmp_path / "store", tubemq_port=0) as hub:
        with dataproxy.Producer(hub.tubemq_target) as producer:
            producer.send("orders", b'{"id": 1, "channel": "", "cents": 5}').result(60)
        words = ("read_transform_write.py", hub.tubemq_target, hub.target, "--quiet", "2")
        for _ in range(2):
            assert "What is not confirmed comes again." in run(*words, folder=tmp_path, status=1).stderr


def test_send_batch_numpy(tmp_path):
    done = run("send_batch_numpy.py", folder=tmp_path)
    assert "100,140 messages acknowledged" in done.stdout
    assert "100,000 records of plant/readings" in done.stderr


def test_send_arrow(tmp_path):
    done = run("send_arrow.py", folder=tmp_path)
    assert "table: 50,000 acknowledged, 0 skipped" in done.stdout
    assert "with nulls: 2 acknowledged, 1 skipped" in done.stdout
    assert "50,100 records of web/users" in done.stderr


def test_tables_notebook(tmp_path):
    done = run("tables_notebook.py", str(tmp_path), folder=tmp_path)
    assert "27,004 accepted, 27,004 acknowledged, 0 refused" in done.stdout
    assert "27,004 stored; 0 missing, 0 changed" in done.stdout
    assert (tmp_path / "tables.png").read_bytes().startswith(b"\x89PNG")


def test_spark_sink(tmp_path):
    done = run("spark_sink.py", folder=tmp_path)
    assert "10,000 rows = 10,000 acknowledged + 0 skipped" in done.stdout
    assert len(re.findall(r"hub has 3,33[34] records of web/visits_", done.stderr)) == 3


@pytest.mark.parametrize("words", [[], ["--batch"]])
def test_spark_tubemq(tmp_path, words):
    done = run("spark_tubemq.py", *words, folder=tmp_path)
    assert "10,000 messages read and written" in done.stdout
    assert re.findall(r"hub has 5,000 records of invoices/(\w+)", done.stderr) == ["shop", "web"]


def test_load_test_keeps_to_its_plan(tmp_path):
    page = tmp_path / "report.html"
    wanted = ("--rate", "5000", "--threads", "2", "--size", "64", "--duration", "1", "--max-lag", "60")
    done = run("load_test.py", *wanted, "--html", str(page), folder=tmp_path)
    assert done.stdout.startswith("valid: ")
    assert "5,000 messages due, 5,000 accepted, 5,000 delivered" in done.stdout
    assert "latency from the planned time to the result, 5,000 samples" in done.stdout
    assert "2,500 records of load/load_1" in done.stderr
    assert page.read_text().startswith("<!doctype html>")


def test_load_test_gives_json_that_the_command_reads(tmp_path):
    done = run("load_test.py", "--rate", "500", "--arrivals", "poisson", "--duration", "0.2", "--json", folder=tmp_path)
    found = read_result(done.stdout)
    assert found.counts["due"] == found.counts["accepted"] == found.counts["delivered"] == len(found.latencies) > 0


@pytest.mark.parametrize("wrong", [["--size", "0"], ["--rate", "-1"], ["--threads", "0"], ["--duration", "0"]])
def test_load_test_refuses_what_makes_no_sense(tmp_path, wrong):
    done = run("load_test.py", *wrong, folder=tmp_path, status=2)
    assert wrong[0] in done.stderr


@pytest.mark.parametrize("name", SPARK_PROGRAMS)
def test_spark_programs_tell_what_they_take(tmp_path, name):
    assert run(name, "--help", folder=tmp_path).stdout.startswith(f"usage: {name}")


@pytest.mark.parametrize(
    ("name", "wrong", "words"),
    [
        ("spark_backfill.py", ["--rows", "0"], "--rows must be at least 1"),
        ("flights_demo.py", ["--rows", "-1"], "--rows must be at least 1"),
        ("flights_stream.py", [], "target, folder"),
        ("flights_group.py", [], "target, topic, rows, number"),
        ("spark_sink.py", ["tcp://127.0.0.1:1", "more"], "unrecognized arguments: more"),
        ("spark_tubemq.py", ["--batch", "--checkpoint", "there"], "--batch keeps no offsets"),
        ("spark_tubemq.py", ["--topic", "orders,payments"], "name --masters for several"),
    ],
)
def test_spark_programs_refuse_what_makes_no_sense(tmp_path, name, wrong, words):
    assert words in run(name, *wrong, folder=tmp_path, status=2).stderr


def test_an_interrupted_spark_program_ends_without_a_traceback(tmp_path):
    words = [sys.executable, str(EXAMPLES / "spark_backfill.py"), "--rows", "100000000"]
    path = os.pathsep.join(part for part in (str(PACKAGES), os.environ.get("PYTHONPATH", "")) if part)
    environment = {**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}
    with Hub(tmp_path / "store") as hub, (tmp_path / "said").open("wb") as said:
        words.append(hub.target)
        with subprocess.Popen(
            words, cwd=tmp_path, env=environment, start_new_session=True, stdout=said, stderr=said
        ) as process:
            try:
                while hub.stats()["records"] == 0 and process.poll() is None:
                    time.sleep(0.05)
                os.killpg(process.pid, signal.SIGINT)  # as a terminal does
                status = process.wait(60)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
    printed = (tmp_path / "said").read_text()
    assert (status, printed.count("interrupted; what was acknowledged stays delivered")) == (130, 1), printed
    assert "Traceback" not in printed


@pytest.mark.timeout(860)  # the servers alone miss a member that was killed after half a minute
def test_flights_demo(tmp_path):
    done = run("flights_demo.py", "--rows", "5000", "--out", str(tmp_path / "out"), seconds=840)
    words = re.sub(r"[│\s]+", " ", done.stdout)
    assert "rows in the source 5,000" in words
    assert "missing 0 changed 0" in words
    assert "5,000 read = 5,000 acknowledged + 0 skipped" in words
    assert "the counts balance yes" in words
    assert (tmp_path / "out" / "flights.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "out" / "report.json").read_text())["acked"] == 5000
    assert "rows stored 5,000 missing 0 changed 0 stored twice 0" in words
    assert (tmp_path / "out" / "flights-stream.png").read_bytes().startswith(b"\x89PNG")
    assert len((tmp_path / "out" / "stream.jsonl").read_text().splitlines()) >= 12
    lost = int(re.search(r"rows in packs without an answer to their confirm ([\d,]+)", words)[1].replace(",", ""))
    twice = int(re.search(r"read twice 0 0 ([\d,]+)", words)[1].replace(",", ""))
    assert 0 < twice <= lost
    assert f"rows read 5,000 5,000 {5000 + twice:,}" in words
    assert "missing 0 0 0 changed 0 0 0" in words
    assert "read twice, though confirmed 0" in words
    assert float(re.search(r"seconds until the other one had its partitions ([\d.]+)", words)[1]) > 25
