"""Fuzz target: what the thread of the hub's port of RocketMQ is asked: heartbeats, batches, filters, administration.

Every request is answered once, none makes the thread fail, and a hub that begins with what is kept serves as before.
"""

from __future__ import annotations

import json
import logging

from dataproxy.wire.rocketmq.codes import Code
from dataproxy.wire.rocketmq.headers import REQUESTS
from tests.fuzz.engine import main
from tests.fuzz.rocketport import repair
from tests.native import probe_rocketmq as wire
from tests.support.playedremoting import PlayedCall, PlayedHub
from tests.support.reference.rocketvectors import CAPTURED, FRAMES, VECTORS, body_of, captured_body

__all__ = ["SEEDS", "check"]

SEEDS = [bytes.fromhex(one["hex"]) for one in CAPTURED if one["direction"] == "client->server"]
SEEDS += [bytes.fromhex(one["hex_rocketmq"]) for one in FRAMES if one["kind"] != "response"]
SEEDS += [body for body in (*map(captured_body, CAPTURED), *map(body_of, FRAMES)) if body]
SEEDS += [bytes.fromhex(one["hex"]) for one in VECTORS["batch_bodies"]]
SEEDS += [
    b"a > 3 AND (b IN ('x', 'y') OR c IS NOT NULL)", b"NOT a BETWEEN 1 AND 2.5e3", b"a || b", b"T\x000\x007\x00g",
    b"g\x00T\x00-1\x00true", b"%RETRY%g\x00TBW102\x004\x004\x006\x00SINGLE_TAG",
]  # fmt: skip
BODIES = (34, 41, 42, 46, 200, 307, 309)  #: codes whose body is read
CODES = sorted(REQUESTS)
SEND = {"a": "p", "b": "T", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0"}
PULL = {"consumerGroup": "g", "topic": "T", "queueId": "0", "queueOffset": "0", "maxMsgNums": "32", "sysFlag": "4"}


class _Failures(logging.Handler):
    """Keeps what the thread could not work off."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(logging.Formatter().format(record))


def check(data: bytes) -> None:
    """Ask a hub with the bytes as a frame, as bodies, as a batch, as filters and as fields."""
    failures, log = _Failures(), logging.getLogger("dataproxy.hub.rocketmq")
    log.addHandler(failures)
    propagates, log.propagate = log.propagate, False
    try:
        hub = _hub()
        calls = [hub.ask(code, body, **fields) for code, fields, body in _requests(data)]
        _check_answers(hub, calls)
        hub.kill()
        assert hub.send("T").answered[0] == 0
        assert hub.beat("g", connection=5).answered[0] == 0
    finally:
        log.removeHandler(failures)
        log.propagate = propagates
    assert not failures.texts, failures.texts[0]


def _hub() -> PlayedHub:
    hub = PlayedHub()
    hub.send("T", b"m", properties={"KEYS": "k", "a": "4"})
    hub.beat("g", producers=("p",))
    return hub


def _requests(data: bytes) -> list[tuple[int, dict[str, str], bytes]]:
    text = data.decode("utf-8", "replace")
    found = [(code, {}, data) for code in BODIES]
    found.append((Code.SEND_BATCH_MESSAGE, SEND, data))
    found += [(Code.SEND_MESSAGE_V2, {**SEND, "i": text}, b"body")]
    found += [(Code.SEND_REPLY_MESSAGE_V2, {**SEND, "i": f"REPLY_TO_CLIENT\x01127.0.0.1@1\x02{text}"}, b"body")]
    found += [(Code.PULL_MESSAGE, {**PULL, "subscription": text, "expressionType": kind}, b"")
              for kind in ("SQL92", "TAG")]  # fmt: skip
    code = CODES[sum(data) % len(CODES)]
    names = REQUESTS[code].__struct_encode_fields__
    found.append((code, dict(zip(names, text.split("\0"), strict=False)), b""))
    try:
        command = wire.read(repair(data))
    except wire.ProbeError:
        return found
    fields = {name.decode("utf-8", "replace"): value.decode("utf-8", "replace")
              for name, value in command["fields"] or ()}  # fmt: skip
    return [*found, (command["code"], fields, command["body"])]


def _check_answers(hub: PlayedHub, calls: list[PlayedCall]) -> None:
    """Let time pass until all that is asked of clients is over: then only pulls wait, each for a queue."""
    hub.pass_time(11)
    for call in calls:
        assert len(call.answers) + len(call.waits) == 1, f"{call.code}: {call.answers} and {call.waits}"
        for _, fields, remark, body in call.answers:
            assert isinstance(body, bytes)
            wire.write({"form": 1, "code": 0, "flag": 1, "opaque": 1, "language": 0, "version": 409,
                        "remark": remark.encode(), "body": b"",
                        "fields": [(k.encode(), v.encode()) for k, v in (fields or {}).items()]})  # fmt: skip
        if call.code in (Code.GET_ROUTEINFO_BY_TOPIC, Code.GET_CONSUME_STATS) and call.answers[0][0] == 0:
            json.loads(call.answers[0][3])


if __name__ == "__main__":
    main(check, SEEDS)
