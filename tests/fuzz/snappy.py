"""Fuzz target: snappy blocks from outside, bounded by a limit, compared with the plain-Python unpacker."""

from tests.fuzz.engine import main
from tests.native.probe_wire import ProbeError, pack, size_of_packed, unpack
from tests.support.reference.snappy import SnappyError
from tests.support.reference.snappy import unpack as reference_unpack
from tests.support.reference.vectors import VECTORS

__all__ = ["SEEDS", "check"]

SEEDS = [bytes.fromhex(entry["compressed"]) for entry in VECTORS["snappy"]]
LIMIT = 65536


def check(data: bytes) -> None:
    """Unpack in both ways, and pack what came in."""
    try:
        expected = reference_unpack(data, LIMIT)
    except SnappyError:
        expected = b""
    try:
        found = unpack(data, LIMIT)
    except ProbeError:
        found = b""
    assert found == expected
    if expected:
        assert size_of_packed(data, LIMIT) == len(expected)
    if data:
        assert unpack(pack(data), len(data)) == data


if __name__ == "__main__":
    main(check, SEEDS)
