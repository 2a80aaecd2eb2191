"""Client program for memory at full speed: peak resident size over the size before the producer was made.

``python -m benchmarks.clients.memory --port N``
"""

import argparse
from collections.abc import Sequence

from benchmarks import bodies
from benchmarks.clients.ours import MODES, add_settings, settings_of
from benchmarks.clients.section import Section, memory_kb, repeat, report
from dataproxy import Producer

__all__ = ["main"]

BUFFER_BYTES = 64 * 1024 * 1024


def main(argv: Sequence[str] | None = None) -> None:
    """Run one measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", default="send_batch", choices=sorted(MODES))
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--body", type=int, default=100)
    add_settings(parser)
    asked = parser.parse_args(argv)
    options = {"buffer_bytes": BUFFER_BYTES} | settings_of(asked)
    block = bodies.plain(asked.body)
    before_kb = memory_kb("VmRSS")
    with Producer(f"tcp://127.0.0.1:{asked.port}", group_id="b_bench", **options) as producer:
        section = Section()
        measured = repeat(MODES[asked.mode](producer, block), asked.seconds)
        producer.flush(60)
        fields = section.end(measured * len(block), asked.body)
    above_mib = (memory_kb("VmHWM") - before_kb) / 1024
    report(
        fields
        | {
            "before_mib": before_kb / 1024,
            "above_mib": above_mib,
            "excess_mib": above_mib - BUFFER_BYTES / 2**20,
        }
    )


if __name__ == "__main__":
    main()
