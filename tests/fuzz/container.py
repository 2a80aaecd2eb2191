"""Fuzz target: stored containers, compared with the plain-Python decoder."""

from dataproxy._core.wire.inlong import message
from dataproxy.errors import RemoteProtocolError
from tests.fuzz.engine import main
from tests.native.probe_wire import Server
from tests.support.reference import containers
from tests.support.reference.vectors import NOW_MS, VECTORS

__all__ = ["SEEDS", "check"]

SEEDS = [bytes.fromhex(entry["hex"]) for kind in ("inlongmsg", "inlongmsg_invalid") for entry in VECTORS[kind]]
SERVERS = [Server(compress_entries=False), Server(compress_entries=True)]
STORED = [server.serve(bytes.fromhex(vector["hex"]), NOW_MS) for vector in VECTORS["requests"] for server in SERVERS]
SEEDS += [outcome["entry"] for outcome in STORED if outcome["entry"]]
LIMIT = 1 << 26


def check(data: bytes) -> None:
    """Decode in both ways; the magics are put right now and then, so that changes reach what lies between."""
    _compare(data)
    if len(data) > 4:
        _compare(data[:-2] + data[:2])
        if data[1] == 4 and len(data) > 12:
            _compare(data[:2] + (len(data) - 8).to_bytes(4) + data[6:-2] + data[:2])


def _compare(data: bytes) -> None:
    try:
        expected = containers.decode(data)
    except containers.Damaged:
        expected = None
    try:
        found = list(message.records(data, limit=LIMIT))
        groups = message.decode(data, limit=LIMIT).groups
    except RemoteProtocolError:
        assert expected is None
        return
    assert found == expected
    assert sorted(body for group in groups for body in group.records) == sorted(body for body, _ in found)


if __name__ == "__main__":
    main(check, SEEDS)
