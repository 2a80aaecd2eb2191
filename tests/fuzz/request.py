"""Fuzz target: requests as the server role judges them, in both profiles, compared with the plain-Python server."""

from dataproxy._core.wire.inlong import message
from tests.fuzz.engine import main
from tests.native.probe_wire import Server, Wire
from tests.support.reference import server
from tests.support.reference.vectors import NOW_MS, VECTORS

__all__ = ["SEEDS", "check"]

WIRE = Wire()
STRICT = Server()
PLAIN = Server(compress_entries=False, service_code=0, groups={b"test_group", b"g"})
COMPAT = Server(compat=True)
SEEDS = [bytes.fromhex(entry["hex"]) for kind in ("requests", "malformed", "heartbeats") for entry in VECTORS[kind]]


def check(data: bytes) -> None:
    """Judge one frame in three profiles; replies must be readable, entries must hold what was accepted."""
    if len(data) < 5:
        return
    _check_frame((len(data) - 4).to_bytes(4) + data[4:])  # delimit() has done this much
    repaired = _repair(data)
    if repaired:
        _check_frame(repaired)


def _repair(data: bytes) -> bytes:
    # The same content with lengths that add up, so that changes reach attributes, items and blocks.
    kind, cut = data[4] & 31, data.find(b"groupId")
    if kind == 7 and cut > 27:
        text = data[cut:-2]
        body = data[25 : cut - 2]
        frame = data[:21] + len(body).to_bytes(4) + body + len(text).to_bytes(2) + text + b"\xee\x01"
    elif 2 <= kind <= 6 and cut > 13:
        frame = data[:5] + (cut - 13).to_bytes(4) + data[9 : cut - 4] + (len(data) - cut).to_bytes(4) + data[cut:]
    else:
        return b""
    return (len(frame) - 4).to_bytes(4) + frame[4:]


def _check_frame(frame: bytes) -> None:
    strict = STRICT.serve(frame, NOW_MS)
    plain = PLAIN.serve(frame, NOW_MS)
    compat = COMPAT.serve(frame, NOW_MS)
    for outcome in (strict, plain, compat):
        _check_reply(outcome)
    kind = frame[4] & 31
    if not 2 <= kind <= 7:
        assert strict["action"] == ("reply" if kind in (1, 8) and strict["reply"] else "close")
        return
    _check_strict(frame, strict)
    if plain["action"] == "store":
        assert list(message.records(plain["entry"])) == list(message.records(strict["entry"]))
    if strict["action"] == "store" and kind != 7:
        assert compat["action"] == "store" or strict["records"] == 1


def _check_reply(outcome: dict) -> None:
    if not outcome["reply"]:
        return
    assert outcome["action"] != "close"
    assert WIRE.delimit(outcome["reply"], 1 << 20) == (0, len(outcome["reply"]))
    event = WIRE.parse_reply(outcome["reply"])
    assert event["msg_type"] == outcome["msg_type"]
    assert outcome["code"] == 0 or event["code"] == outcome["code"]
    if outcome["action"] == "store":
        refused = WIRE.parse_reply(STRICT.refuse(outcome["reply"], 114, b"full"))
        assert refused["seq"] == event["seq"]


def _check_strict(frame: bytes, outcome: dict) -> None:
    oracle = server.serve(frame, NOW_MS)
    assert (outcome["action"], outcome["code"]) == (oracle.action, oracle.code)
    if not oracle.open_text:
        assert outcome["reply"] == oracle.reply
    if outcome["action"] == "store":
        bodies = [body for body, _ in message.records(outcome["entry"])]
        assert bodies == oracle.records
        assert outcome["records"] == len(bodies) > 0
    else:
        assert outcome["entry"] == b""


if __name__ == "__main__":
    main(check, SEEDS)
