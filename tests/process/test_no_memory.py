"""Messages that wait for their packs when there is no memory for these: told of, counted, and room for the next."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dataproxy.hub import Hub
from tests.campaigns.preload import build_preload
from tests.process.programs import ROOT

STREAMS = 600  # so many open packs that messages are staged
PROGRAM = """
import ctypes, json, sys, time
from dataproxy import Producer

refuse = ctypes.CDLL(None).refuse_packs
producer = Producer(sys.argv[1], group_id="g", linger="200ms", delivery_timeout="600ms", ack_timeout="200ms")
small = [producer.stream(f"s{n}").send_nowait for n in range(STREAMS)]
for send in small:
    send(b"first")              # opens the pack of each stream
refuse(1)
staged = 0
try:
    while True:                 # 64 wait; they have no pack then, and the next is not accepted
        small[staged % 200](b"x" * 1000)
        staged += 1
except MemoryError as error:
    print(json.dumps([staged, str(error)]))
WHEN
"""
GIVEN_UP = """
while (stats := producer.stats()).open or stats.pending:
    time.sleep(0.01)
refuse(0)
producer.send_nowait("s1", b"last")
"""
CLOSED = """
producer.close(0.05)
refuse(0)
"""
END = """
report = producer.close(30)
print(json.dumps([report.accepted, report.delivered, report.dropped, report.failed, report.expired, report.errors]))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build_preload(Path(__file__).with_name("no_memory.c"), tmp_path_factory.mktemp("preload"))


def run(library, target, when):
    environment = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": str(ROOT)}
    code = PROGRAM.replace("WHEN", when).replace("STREAMS", str(STREAMS)) + END
    done = subprocess.run(
        [sys.executable, "-c", code, target], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_after_the_delivery_timeout_they_are_dropped_and_counted(library):
    with Hub() as hub:
        (staged, words), accounting = run(library, hub.target, GIVEN_UP)
        assert sum(count.records for count in hub.counts().values()) == STREAMS + 1
    assert staged > 1
    assert words == "no memory for the message"
    assert accounting == [STREAMS + staged + 1, STREAMS + 1, staged, 0, 0, {"EXPIRED": staged}]


def test_when_the_producer_closes_they_are_dropped_and_counted(library):
    with Hub() as hub:
        (staged, _), (accepted, delivered, dropped, failed, expired, errors) = run(library, hub.target, CLOSED)
        assert sum(count.records for count in hub.counts().values()) == delivered
    assert accepted == STREAMS + staged == delivered + dropped + failed + expired
    assert dropped >= staged
    assert errors == {"CLOSED": dropped + failed}
