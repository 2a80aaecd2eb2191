"""The honest pair: ``python -m tests.campaigns.siege.honest produce TARGET RATE`` and ``... read URL``, a process each.

The producer offers RATE messages a second, or with 0 as many as it gets answers for; the reader reads what is there.
A line on standard input is answered with the counters as a line of JSON.  ``end`` lets the producer flush and close,
``end N`` lets the reader go on until it has N messages; then both end.
"""

from __future__ import annotations

import base64
import http.client
import json
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlsplit

from dataproxy import Producer
from tests.campaigns.histories.bodies import make_body, read_body

__all__ = ["BATCH", "GROUP", "STREAM", "main", "produce", "read"]

GROUP, STREAM = "honest", "s"
BATCH = 50
_UNDER_WAY = 4  # batches, where there is no rate
_BODY = 200
_PAGE = 5000  # as `dataproxy tail` asks
_REST = 0.01
_PATIENCE = 60.0

Counters = dict[str, Any]


def produce(target: str, ends: Callable[[Counters], float | None], rate: float = 0.0) -> Counters:
    """Send batches until ``ends`` has an answer; return the last counters.

    With a rate up to a second of it is under way at a time, and what was not sent in its time is not made good.
    """
    counts: Counters = {"done": 0}
    under_way: deque[Any] = deque()
    most = max(_UNDER_WAY, round(rate / BATCH))
    sequence, due = 0, time.monotonic()
    with Producer(target, group_id=GROUP, linger=0.0, delivery_timeout=_PATIENCE, buffer_bytes="8MiB") as producer:
        while ends(counts) is None:
            bodies = [make_body("honest", sequence + i, size=_BODY) for i in range(BATCH)]
            sequence += BATCH
            under_way.append(producer.send_batch(STREAM, bodies))
            while under_way and (len(under_way) >= most or under_way[0].done()):
                under_way.popleft().result()
                counts["done"] += BATCH
            if rate:
                due = max(due + BATCH / rate, time.monotonic() - BATCH / rate)
                time.sleep(max(0.0, due - time.monotonic()))
        producer.flush(_PATIENCE)
        stats, report = producer.stats(), producer.report()
        counts.update(
            done=report.delivered, accepted=report.accepted, failed=report.failed, expired=report.expired,
            resent=stats.retries,
        )  # fmt: skip
    return counts


def read(url: str, ends: Callable[[Counters], float | None]) -> Counters:
    """Read pages over HTTP until ``ends`` names a number of messages that is reached; return the last counters.

    ``missing`` are messages that were passed over, ``again`` those that came before, ``damaged`` those with a byte that
    changed; ``turned_away`` are requests that were answered with 503, ``cut`` those that were not answered.
    """
    host = urlsplit(url).netloc
    counts: Counters = {"done": 0, "missing": 0, "again": 0, "damaged": 0, "turned_away": 0, "cut": 0}
    place = "0"
    connection = http.client.HTTPConnection(host, timeout=_PATIENCE)
    late = 0.0
    while (wanted := ends(counts)) is None or counts["done"] < wanted:
        if wanted is not None and time.monotonic() > (late := late or time.monotonic() + _PATIENCE):
            break
        try:
            connection.request("GET", f"/hub/records?group={GROUP}&stream={STREAM}&limit={_PAGE}&start={quote(place)}")
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException):
            counts["cut"] += 1
            connection.close()
            time.sleep(_REST)
            continue
        if answer.status != http.client.OK:
            counts["turned_away"] += 1
            time.sleep(_REST)
            continue
        page = json.loads(data)
        place = page["next"]
        _take(counts, [base64.b64decode(record["body"]) for record in page["records"]])
        if not page["records"]:
            time.sleep(_REST)
    connection.close()
    return counts


def _take(counts: Counters, bodies: list[bytes]) -> None:
    """Count a page: numbers begin at 0 and follow each other."""
    for body in bodies:
        said = read_body(body)
        if said is None or not said.intact:
            counts["damaged"] += 1
        elif said.sequence < counts["done"]:
            counts["again"] += 1
        else:
            counts["missing"] += said.sequence - counts["done"]
            counts["done"] = said.sequence + 1


def main() -> None:
    """Work, and answer what is asked on standard input."""
    end: queue.SimpleQueue[float] = queue.SimpleQueue()
    latest: Counters = {}
    asked = threading.Event()

    def listen() -> None:
        for line in sys.stdin:
            if line.startswith("end"):
                end.put(float(line.split()[1]) if " " in line.strip() else 0.0)
                return
            asked.set()
        end.put(0.0)

    wanted: list[float] = []

    def ends(counts: Counters) -> float | None:
        latest.update(counts)
        if asked.is_set():
            asked.clear()
            print(json.dumps(counts), flush=True)
        if not wanted and not end.empty():
            wanted.append(end.get())
        return wanted[0] if wanted else None

    threading.Thread(target=listen, daemon=True).start()
    role, where, *more = sys.argv[1:]
    last = produce(where, ends, float(more[0])) if role == "produce" else read(where, ends)
    print(json.dumps(last), flush=True)


if __name__ == "__main__":
    main()
