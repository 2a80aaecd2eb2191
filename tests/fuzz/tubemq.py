"""Fuzz target: TubeMQ's frames, calls and messages, compared with the plain reference."""

from dataproxy._core.wire.inlong import message
from tests.fuzz.engine import main
from tests.native import probe_tubemq as wire
from tests.native.probe_wire import Server
from tests.support.reference import tubemq as plain
from tests.support.reference.tubevectors import FRAMES

__all__ = ["SEEDS", "check"]

KINDS = (
    "GetMessageRequestC2B", "GetMessageResponseB2C", "SendMessageRequestP2B", "SendMessageResponseB2P",
    "CommitOffsetRequestC2B", "CommitOffsetResponseB2C",
)  # fmt: skip
PARTITIONS = 8
SERVER = Server(wire="tubemq", partitions=PARTITIONS)
SEEDS = [bytes.fromhex(frame["frame_hex"]) for frame in FRAMES]
SEEDS += [bytes.fromhex(frame["message_hex"]) for frame in FRAMES if frame["message"] in KINDS]
SEEDS += [payload for seed in list(SEEDS) if seed[:4] == b"\xff\x7f\xf4\xfe" for _, payload in plain.join(seed)]


def check(data: bytes) -> None:
    """Take the bytes as a stream, as a payload, and as each message that compiled code reads."""
    _check_stream(data)
    _check_payload(data)
    _check_served(data)
    for kind in KINDS:
        _check_message(kind, data)
    wire.split(1, data)
    wire.code_of_filter(data)


def _check_stream(data: bytes) -> None:
    whole, pieces = wire.Stream(), wire.Stream()
    try:
        found = whole.push(data)
    except wire.ProbeError:
        return
    for _, payload in found:
        _check_payload(payload)
    again = [one for at in range(0, len(data), 7) for one in pieces.push(data[at : at + 7])]
    assert again == found
    assert plain.join(data) == found


def _check_served(data: bytes) -> None:
    """Let a server judge the bytes as a payload: a call, a message with its answer, or an answer that says why not."""
    if not data:
        return
    outcome = SERVER.serve(plain.cut(7, data), 1_764_000_000_000)
    if outcome["action"] == "call":
        assert outcome["reply"] == b""
        kind, serial, method, request = outcome["call"]
        assert (kind, serial) == ({17: 2, 18: 3}.get(method, 1), 7)
        assert wire.read_calls(data)["request"] == request
        return
    ((serial, payload),) = plain.join(outcome["reply"])
    answer = plain.split_answer(payload)
    assert serial == 7
    if outcome["action"] == "reply":
        assert outcome["code"] >= 400
        return
    assert (outcome["action"], answer["status"]) == ("store", 0)
    assert 0 <= SERVER.place_of() < PARTITIONS
    ((_, told),) = plain.join(SERVER.told(outcome["reply"], 1, 5))
    sent = plain.read_message("SendMessageResponseB2P", plain.split_answer(told)["data"])
    assert (sent.errCode, sent.appendOffset) == (200, 140)
    assert sum(1 for _ in message.records(outcome["entry"])) == 1


def _check_payload(data: bytes) -> None:
    for read, split in ((wire.read_calls, plain.split_call), (wire.read_answers, plain.split_answer)):
        try:
            expected = split(data)
        except plain.WireError:
            expected = None
        try:
            found = read(data)
        except wire.ProbeError:
            assert expected is None or plain.payload_has_group(data)
            continue
        assert expected is None or found == expected


def _check_message(kind: str, data: bytes) -> None:
    try:
        plain.read_message(kind, data)
        good = True
    except plain.WireError:
        good = False
    try:
        found = wire.read(kind, data)
    except wire.ProbeError:
        assert not good or plain.has_group(kind, data)
        return
    if found.get("success", True):
        assert wire.read(kind, wire.write(kind, found)) == found


if __name__ == "__main__":
    main(check, SEEDS)
