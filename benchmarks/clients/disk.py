"""Floor of a durable store: sequential synced writes of one size into one file.

``python -m benchmarks.clients.disk --folder DIR``
"""

import argparse
import os
import tempfile
from collections.abc import Sequence

from benchmarks.clients.section import Section, repeat, report

__all__ = ["main"]

RECORD = 1024


def main(argv: Sequence[str] | None = None) -> None:
    """Run one measurement and print it; a record is a body of 1 KB."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--write", type=int, default=4 * 1024 * 1024)
    asked = parser.parse_args(argv)
    piece = os.urandom(asked.write)
    with tempfile.TemporaryFile(dir=asked.folder) as file:
        handle = file.fileno()

        def step() -> None:
            if os.write(handle, piece) != len(piece):
                raise OSError(f"short write of {len(piece)} bytes")
            os.fdatasync(handle)

        section = Section()
        written = repeat(step, asked.seconds) * asked.write
        report(section.end(written // RECORD, RECORD))


if __name__ == "__main__":
    main()
