"""Fuzz target: a stream of replies as a client reads it, compared with the plain-Python reader."""

from tests.fuzz.engine import main
from tests.native.probe_wire import ProbeError, Wire
from tests.support.reference import frames
from tests.support.reference.vectors import VECTORS

__all__ = ["SEEDS", "check"]

WIRE = Wire()
MAX_FRAME = 4096
SEEDS = [
    bytes.fromhex(entry[key])
    for kind in ("acks", "streams", "requests", "malformed", "heartbeats")
    for entry in VECTORS[kind]
    for key in ("hex", "reply_hex", "sink_reply_hex")
    if key in entry and (key != "hex" or kind in ("acks", "streams"))
]


def check(data: bytes) -> None:
    """Read every frame that both find; the readings must agree."""
    if len(data) > 5:
        _compare((len(data) - 4).to_bytes(4) + data[4:])  # whatever the length says
    rest = data
    while True:
        status, size = WIRE.delimit(rest, MAX_FRAME)
        if status != 0:
            whole = 4 + int.from_bytes(rest[:4]) if len(rest) >= 4 else 0
            assert status == (1 if not whole or 4 < whole <= MAX_FRAME else -2 if whole == 4 else -3)
            return
        assert 4 < size <= len(rest)
        _compare(rest[:size])
        rest = rest[size:]


def _compare(frame: bytes) -> None:
    expected = frames.parse_reply(frame)
    try:
        event = WIRE.parse_reply(frame)
    except ProbeError:
        assert expected is None
        return
    found = frames.Reply(event["msg_type"], event["seq"], event["code"], event["node"], event["text"], event["load"])
    assert found == expected
    assert event["message"] in event["text"]


if __name__ == "__main__":
    main(check, SEEDS)
