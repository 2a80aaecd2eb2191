"""Fuzz target: RocketMQ's frames, headers, messages and bodies, compared with the plain reference."""

from typing import Any

from dataproxy.errors import RemoteProtocolError
from dataproxy.wire.rocketmq import bodies, queues
from tests.fuzz.engine import main
from tests.native import probe_rocketmq as wire
from tests.support.reference import rocketmq as plain
from tests.support.reference.rocketvectors import CAPTURED, FRAMES, VECTORS

__all__ = ["SEEDS", "check"]

SEEDS = [bytes.fromhex(one["hex"]) for one in CAPTURED]
SEEDS += [bytes.fromhex(one[form]) for one in FRAMES for form in ("hex_json", "hex_rocketmq")]
SEEDS += [bytes.fromhex(one["hex"]) for one in VECTORS["stored_messages"] + VECTORS["batch_bodies"]]
BODIES = (
    bodies.Heartbeat.read,
    bodies.Route.read,
    bodies.RunningInfo.read,
    queues.read_offsets,
    queues.read_member_offsets,
)


def check(data: bytes) -> None:
    """Take the bytes as a stream, as messages, as items, as properties and as bodies."""
    found = _same(wire.Stream().push, plain.join, data)
    for frame in found or ():
        _check_command(frame)
    _same(wire.read_stored_messages, plain.messages, data)
    _same(wire.read_batch, plain.items, data)
    assert wire.properties(data) == plain.properties(data)
    _check_bodies(data)


def _same(read: Any, plainly: Any, data: Any) -> Any:
    try:
        expected = plainly(data)
    except plain.WireError:
        expected = None
    try:
        found = read(data)
    except wire.ProbeError:
        found = None
    assert found == expected
    return found


def _check_command(frame: bytes) -> None:
    command = _same(wire.read, plain.read_frame, frame)
    if command is None:
        return
    _check_bodies(command["body"])
    kinds = {10: ("send", plain.read_send), 310: ("send", plain.read_send), 11: ("pull", plain.read_pull)}
    if command["code"] in kinds:
        kind, plainly = kinds[command["code"]]
        _same(lambda one: wire.take(kind, one), lambda _: plainly(command), frame)
    if command["form"] and command["opaque"] is not None and command["language"] >= 0:
        assert wire.read(wire.write(command)) == command


def _check_bodies(data: bytes) -> None:
    for read in BODIES:
        try:
            read(data)
        except RemoteProtocolError:
            continue


if __name__ == "__main__":
    main(check, SEEDS)
