"""Client program for many streams: messages of so many streams in random order, as one stream's beside it.

``python -m benchmarks.clients.spread --mode send_nowait --streams 10000 --port N``

A fixed number of messages is sent, so that each stream fills its packs, or messages for so many ``--seconds``; the
buffer limit is the same for any number of streams.  ``--defaults`` leaves all options at their defaults but those of
``--set``.  The records that a frame carried in the mean (``packed``) are those of frames that were acknowledged while
messages were still sent: what ``flush()`` makes leave at the end says nothing about the options.
"""

import argparse
import random
import time
from collections.abc import Callable, Sequence

from benchmarks import bodies
from benchmarks.clients.ours import add_settings, settings_of
from benchmarks.clients.section import Section, report
from dataproxy import Producer
from dataproxy._core.producer.ingest.columnar.recordbatch import send_record_batch

__all__ = ["MODES", "main"]

BUFFER_BYTES = 256 * 1024 * 1024
BATCH_BYTES = 16 * 1024  # of a frame: 157 messages of 100 bytes
ROWS = 10_000  # of one Arrow batch
ORDER = 200_000  # messages until the random order of streams repeats
Run = Callable[[], int]


def send_nowait(producer: Producer, names: Sequence[str], order: Sequence[int], block: Sequence[bytes]) -> Run:
    """Return a run that calls ``send_nowait`` of the streams' handles, in the random order."""
    handles = [producer.stream(name).send_nowait for name in names]
    sends = [handles[number] for number in order]
    repeated = list(block) * (len(order) // len(block))

    def run() -> int:
        for send, body in zip(sends, repeated, strict=True):
            send(body)
        return len(sends)

    return run


def by_name(producer: Producer, names: Sequence[str], order: Sequence[int], block: Sequence[bytes]) -> Run:
    """Return a run that calls the producer's ``send_nowait`` with the names of streams, in the random order."""
    send = producer.send_nowait
    ids = [names[number] for number in order]
    repeated = list(block) * (len(order) // len(block))

    def run() -> int:
        for stream_id, body in zip(ids, repeated, strict=True):
            send(stream_id, body)
        return len(ids)

    return run


def send_arrow(producer: Producer, names: Sequence[str], order: Sequence[int], block: Sequence[bytes]) -> Run:
    """Return a run that hands over record batches with a column of stream names, as the Spark sink does."""
    import pyarrow as pa

    batches = [
        pa.record_batch(
            {
                "body": pa.array(block[:ROWS], pa.binary()),
                "stream": pa.array([names[number] for number in order[at : at + ROWS]], pa.string()),
            }
        )
        for at in range(0, len(order), ROWS)
    ]

    def run() -> int:
        for batch in batches:
            send_record_batch(producer, batch, value=0, stream_id=1, group="b_bench")
        return len(order)

    return run


MODES = {"send_nowait": send_nowait, "by_name": by_name, "send_arrow": send_arrow}


def packed(delivered: int, frames: int) -> dict[str, float]:
    """Return the messages a frame; nothing if no frame was answered before the last flush, so the server counts."""
    return {"packed": delivered / frames} if frames else {}


def main(argv: Sequence[str] | None = None) -> None:
    """Run one measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=sorted(MODES), required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--streams", type=int, required=True)
    parser.add_argument("--messages", type=int, default=3_000_000)
    parser.add_argument("--seconds", type=float, default=0.0, help="send for so long, not --messages")
    parser.add_argument("--body", type=int, default=100)
    parser.add_argument("--defaults", action="store_true", help="no options but those of --set")
    add_settings(parser)
    asked = parser.parse_args(argv)
    block = bodies.plain(asked.body)
    chance = random.Random(5)
    order = [chance.randrange(asked.streams) for _ in range(ORDER)]
    settings = {} if asked.defaults else {"buffer_bytes": BUFFER_BYTES, "batch_bytes": BATCH_BYTES, "linger": "10s"}
    settings |= settings_of(asked)
    with Producer(f"tcp://127.0.0.1:{asked.port}", group_id="b_bench", **settings) as producer:  # type: ignore[arg-type]
        run = MODES[asked.mode](producer, [f"s_{number}" for number in range(asked.streams)], order, block)
        before = run()
        producer.flush(60)
        section = Section()
        settled = producer.stats().settled_frames
        until = time.perf_counter() + asked.seconds
        sent = 0
        while time.perf_counter() < until if asked.seconds else sent < asked.messages:
            sent += run()
        unforced = producer.stats()
        accounting = producer.flush(60)
        fields = section.end(sent, asked.body)
    assert accounting.ok, accounting
    assert accounting.accepted == before + sent, accounting
    whole = (before + sent) // ORDER * (ORDER // len(block))
    report(
        fields
        | {
            "total_records": before + sent,
            "total_crc_sum": whole * bodies.crc_sum(block),
            "duplicates_possible": accounting.duplicates_possible,
        }
        | packed(unforced.delivered - before, unforced.settled_frames - settled)
    )


if __name__ == "__main__":
    main()
