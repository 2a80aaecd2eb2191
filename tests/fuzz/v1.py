"""Fuzz target: V1 packs as a server judges them, and replies as a client reads them, compared with protobuf."""

from dataproxy._core.wire.inlong import message
from tests.fuzz.engine import main
from tests.native.probe_wire import ProbeError, Server, Wire
from tests.support.reference.v1 import PackError, pack_frame, read_infos, read_pack
from tests.support.reference.vectors import NOW_MS, VECTORS

__all__ = ["SEEDS", "check"]

WIRE = Wire("inlongv1")
STRICT = Server(wire="inlongv1")
PLAIN = Server(wire="inlongv1", compress_entries=False)
SEEDS = [bytes.fromhex(entry[key]) for entry in VECTORS["v1"] for key in ("hex", "response_hex") if key in entry]


def check(data: bytes) -> None:
    """Take the bytes as a pack, and as a stream of replies."""
    _check_pack(pack_frame(data[6:]))
    if data[:1] == b"\x08":
        _check_reply(data)


def _check_pack(frame: bytes) -> None:
    outcome = STRICT.serve(frame, NOW_MS)
    if outcome["reply"]:
        assert outcome["action"] != "close"
        ((result, _),) = read_infos(outcome["reply"])
        assert (result == 0) == (outcome["code"] == 0)
        assert WIRE.delimit(outcome["reply"]) == (0, len(outcome["reply"]))
    if outcome["action"] != "store":
        return
    stored = [body for body, _ in message.records(outcome["entry"])]
    assert stored == [body for body, _ in message.records(PLAIN.serve(frame, NOW_MS)["entry"])]
    assert len(stored) == outcome["records"]
    try:
        _, messages = read_pack(frame)
    except PackError:
        return  # such as text that is not UTF-8
    assert stored == [one.body for one in messages]


def _check_reply(data: bytes) -> None:
    status, size = WIRE.delimit(data)
    if status != 0:
        assert status in (1, -2)
        return
    try:
        event = WIRE.parse_reply(data[:size])
    except ProbeError:
        return
    ((result, pack_id),) = read_infos(data[:size])
    assert (event["code"] == 0) == (result == 0)
    assert event["seq"] == (pack_id if 0 <= pack_id < 1 << 32 else None)


if __name__ == "__main__":
    main(check, SEEDS)
