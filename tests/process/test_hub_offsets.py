"""Offsets of consumer groups after the hub was killed: what was confirmed stays confirmed."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataproxy.hub import Hub
from tests.support.rawclient import INDEX, Connection, Reader, Sender, bodies

ROOT = Path(__file__).parents[2]
HUB = """
import sys
from dataproxy.hub import Hub
hub = Hub(sys.argv[1], tubemq_port=0)
print(hub.tubemq_port, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def hubs(tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for one in started:
        one.kill()
        one.communicate()


def begun(hubs: list[subprocess.Popen[str]], path: Path) -> Connection:
    """Start a hub in a process of its own and connect to it."""
    hubs.append(
        subprocess.Popen(
            [sys.executable, "-c", HUB, str(path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
    )
    out = hubs[-1].stdout
    assert out is not None
    return Connection(int(out.readline()))


def test_a_killed_hub_loses_no_confirmed_offset(tmp_path: Path, hubs: list[subprocess.Popen[str]]) -> None:
    """Confirms come in every way that there is; each hub is killed as soon as the last one is answered."""
    connection = begun(hubs, tmp_path)
    sender = Sender(connection, connection, "demo")
    for i in range(120):
        assert sender.send(0, b"%d" % i + b"." * 60_000)["errCode"] == 200
    seen: list[int] = []
    for round_ in range(6):
        one = Reader(connection, "demo", "g")
        answer = one.register(0)
        assert (answer.errCode, answer.currOffset) == (200, len(seen) * INDEX)
        for _ in range(2):
            found = bodies(one.get(consumed=round_ % 2 == 1))
            assert found
            seen += [int(body.rstrip(b".")) for body in found]
            if round_ % 2 == 0:
                assert one.commit()["currOffset"] == len(seen) * INDEX
        if round_ % 2 == 1:
            assert one.unregister(0).errCode == 200
        hubs[-1].send_signal(signal.SIGKILL)
        hubs[-1].wait()
        connection.close()
        connection = begun(hubs, tmp_path)
    connection.close()
    assert seen == list(range(len(seen)))
    hubs[-1].kill()
    hubs[-1].wait()
    with Hub(tmp_path, tubemq_port=0) as hub, Connection(hub.tubemq_port) as last:
        assert Reader(last, "demo", "g").register(0).currOffset == len(seen) * INDEX
