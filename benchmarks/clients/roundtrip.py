"""Client program for latency: one message, its result, the next one (``linger=0`` unless it is set).

``python -m benchmarks.clients.roundtrip --port N``
"""

import argparse
import time
from collections.abc import Sequence

from benchmarks import bodies
from benchmarks.clients.ours import add_settings, settings_of
from benchmarks.clients.section import Section, report
from dataproxy import Producer

__all__ = ["main"]

STREAM = "s_bench"


def main(argv: Sequence[str] | None = None) -> None:
    """Run one measurement and print it; the percentiles are microseconds from call to result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--warmup", type=float, default=0.2)
    parser.add_argument("--body", type=int, default=100)
    add_settings(parser)
    asked = parser.parse_args(argv)
    body = bodies.plain(asked.body, 1)[0]
    clock = time.perf_counter
    samples: list[float] = []
    options = {"linger": 0} | settings_of(asked)
    with Producer(f"tcp://127.0.0.1:{asked.port}", group_id="b_bench", **options) as producer:
        until = clock() + asked.warmup
        while clock() < until:
            producer.send(STREAM, body).result(10)
        section = Section()
        until = clock() + asked.seconds
        began = clock()
        while began < until:
            producer.send(STREAM, body).result(10)
            ended = clock()
            samples.append(ended - began)
            began = ended
        fields = section.end(len(samples), asked.body)
    samples.sort()
    report(
        fields
        | {
            f"p{name}_us": samples[int(len(samples) * at)] * 1e6
            for name, at in (("50", 0.5), ("99", 0.99), ("999", 0.999))
        }
    )


if __name__ == "__main__":
    main()
