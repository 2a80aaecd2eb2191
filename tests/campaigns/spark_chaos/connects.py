"""Rounds over Spark Connect: clients that are killed, and sessions that are stopped, in the middle of a write."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.campaigns.spark_chaos.endings import Ended
from tests.campaigns.spark_chaos.rounds import GROUP

if TYPE_CHECKING:
    from dataproxy.hub import Hub

__all__ = ["connect_round", "why_no_client"]

_CLIENT = Path(__file__).with_name("client.py")
_ROWS = 12_000
_ENDS = 2  # of one round, before a client may end well
_CLIENTS = 20
_SECONDS = 240.0


def why_no_client() -> str:
    """Return why this interpreter has no Spark Connect client; empty where it has one."""
    done = subprocess.run(
        [sys.executable, "-c", "import pyspark.sql.connect.session"], capture_output=True, text=True, check=False
    )
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


def connect_round(server: str, hub: Hub, name: str, *, filtered: bool, kind: str) -> Ended:
    """End clients of a server in the middle of a named write, then let one end well.

    `kind` is ``client killed`` or ``session stopped``.  What a killed client's operation goes on sending are copies.
    """
    result = Ended(name, filtered=filtered)
    for attempt in range(_CLIENTS):
        before = _sent(hub, name)
        command = [sys.executable, str(_CLIENT), server, hub.target, GROUP, name, str(_ROWS)]
        client = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if attempt < _ENDS and _rows_arrive(client, hub, name, before):
            os.kill(client.pid, signal.SIGKILL if kind == "client killed" else signal.SIGTERM)
            result.count(kind)
        try:
            _, said = client.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            client.kill()
            client.communicate()
            result.violations.append(f"{name}: a client did not end")
            break
        if client.returncode == 0:
            break
        result.failures += 1
    else:
        result.violations.append(f"{name}: no client of {_CLIENTS} ended well: {said[-1000:]}")
    result.close(hub, {f"row-{number}".encode() for number in range(_ROWS)})
    return result


def _sent(hub: Hub, name: str) -> int:
    """Return how many rows of this stream came, those that the filter knew included."""
    count = hub.counts().get((GROUP, name))
    return (0 if count is None else count.records) + hub.stats()["duplicates"]


def _rows_arrive(client: subprocess.Popen[str], hub: Hub, name: str, before: int) -> bool:
    """Wait until rows of a client arrive; tell whether it is in the middle then."""
    end = time.monotonic() + _SECONDS
    while client.poll() is None and time.monotonic() < end:
        if _sent(hub, name) > before:
            return True
        time.sleep(0.02)
    return False
