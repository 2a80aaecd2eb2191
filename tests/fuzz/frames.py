"""Fuzz target: the reader of frames for people, compared with the compiled ones, and what it prints."""

import json
import struct

from dataproxy.cli.frametext import frame_json, frame_lines
from dataproxy.wire.inlong import read_frames
from tests.fuzz.engine import main
from tests.support.reference.vectors import VECTORS
from tests.unit.wire.agreement import agrees_with_the_client, agrees_with_the_server

__all__ = ["SEEDS", "check"]

SEEDS = [
    bytes.fromhex(entry["hex"])
    for kind in ("requests", "malformed", "heartbeats", "acks", "streams")
    for entry in VECTORS[kind]
]
_LIMIT = 65536
_LINE = 4096  # characters: values are shortened, words are short


def check(data: bytes) -> None:
    """Read the bytes as a stream from each side, print it, and judge its first bytes as one whole frame."""
    for sender in ("client", "server", "either"):
        at = 0
        for frame in read_frames(data, sender, _LIMIT):
            assert (frame.offset, frame.data) == (at, data[at : at + len(frame.data)])
            at += len(frame.data)
            for line in frame_lines(frame, full=False):
                assert line.endswith("\n")
                assert line[:-1].isprintable()
                assert len(line) < _LINE
            assert all(0 <= one.at <= len(frame.data) or one.unpacked for one in frame.problems)
            told = json.loads(frame_json(frame, full=True))
            assert told["item_count"] == len(told["items"])
        assert at == len(data)
    if len(data) > 4:
        whole = struct.pack(">I", len(data) - 4) + data[4:]
        agrees_with_the_server(whole)
        agrees_with_the_client(whole)


if __name__ == "__main__":
    main(check, SEEDS)
