"""Fuzz target: answers of TubeMQ's brokers as a producer reads them, compared with protobuf; and messages framed."""

from dataproxy.numbers import BROKER_CODES, FAMILY_TUBEMQ
from dataproxy.wire.tubemq import messages
from tests.fuzz.engine import main
from tests.native.probe_wire import ProbeError, Wire
from tests.support.reference import tubemq as plain
from tests.support.reference.tubevectors import FRAMES

__all__ = ["SEEDS", "check"]

WIRE = Wire("tubemq")
LARGEST = 1 << 16
SEND = 13
SEEDS = [bytes.fromhex(frame["frame_hex"]) for frame in FRAMES]
SEEDS += [
    plain.cut(9, plain.answered(SEND, messages.SendMessageResponseB2P(**fields).SerializeToString()))
    for fields in (
        {"success": True, "errCode": 200, "errMsg": "5"},
        {"success": False, "errCode": 403, "errMsg": "not here"},
        {"success": False, "errCode": 500, "errMsg": ""},
    )
]
SEEDS += [plain.cut(9, plain.failed(1, "java.lang.Error", "t" * 9000))]


def check(data: bytes) -> None:
    """Take the bytes as a stream of answers, and as a message that is sent."""
    rest = data
    while True:
        status, size = WIRE.delimit(rest, LARGEST)
        if status != 0:
            break
        _check_answer(rest[:size])
        rest = rest[size:]
    if data:
        _check_request(data)


def _check_answer(frame: bytes) -> None:
    serial, payload, _ = plain.take_frame(frame) or (0, b"", 0)
    try:
        expected = plain.split_answer(payload)
        if expected["status"] == 0 and expected["method"] == SEND:
            sent = plain.read_message("SendMessageResponseB2P", expected["data"])
            expected["code"] = 0 if sent.success else BROKER_CODES + (sent.errCode if _is_known(sent.errCode) else 599)
    except plain.WireError:
        expected = None
    try:
        event = WIRE.parse_reply(frame)
    except ProbeError:
        assert expected is None or plain.payload_has_group(payload) or len(payload) >= LARGEST or "data" in expected
        return
    if expected is None:
        return  # protobuf refuses more: texts that are not UTF-8, numbers that are too long
    assert event["seq"] in (serial, None)
    if expected["status"]:
        assert event["code"] == BROKER_CODES + 501
        assert event["unsure"]
    elif expected["method"] == SEND:
        assert event["code"] == expected["code"]


def _is_known(code: int) -> bool:
    return 0 < code < 600 and code != 200


def _check_request(data: bytes) -> None:
    """Frame a message, whose attribute text is a part of the bytes, read it, and make the item of it again."""
    cut = data[0] % (len(data) + 1)
    body, text = data[cut:] or b"x", data[:cut]
    item = len(body).to_bytes(4) + body + (len(text).to_bytes(4) + text if text else b"")
    given = {"family": FAMILY_TUBEMQ, "items": 1 if text else 0, "seq": 5, "sender": b"1.2.3.4-x", "proof_n": cut % 50}
    request = WIRE.frame(item, b"groupId=&streamId=t", **given)
    payload = plain.join(request)[0][1]
    prefix = len(text).to_bytes(4) + text if text else b""
    assert prefix + body == payload[-len(prefix + body) :]
    assert WIRE.frame(item, b"groupId=&streamId=t", undone=True, **given) == item


if __name__ == "__main__":
    main(check, SEEDS)
