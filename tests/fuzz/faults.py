"""Fuzz target: the JSON of faults.  The answer is a fault that says the same of itself, or a ConfigError."""

import json

from dataproxy.errors import ConfigError, HubError
from dataproxy.hub import KINDS, Fault, Faults
from dataproxy.hub.faults.kinds import ON
from tests.fuzz.engine import main

__all__ = ["SEEDS", "check"]

SEEDS = [
    *(b'{"kind": "%s"}' % name.encode() for name in KINDS),
    b'{"kind": "refuse", "code": 114, "message": "no", "nth": 3}',
    b'{"kind": "delay", "seconds": 0.5, "share": 0.1, "seed": 7}',
    b'{"kind": "close", "on": "bytes", "at_byte": 100, "stage": "before_store", "reset": true}',
    b'{"kind": "garbage", "data": "00ff7f", "every": 2, "after": 1, "times": 9, "per_connection": true}',
    b'{"kind": "freeze", "side": "write", "listener": 0, "connection": 3, "group": "g", "stream": "s"}',
    b'{"kind": "corrupt", "at": -1, "mask": 255, "first": 4}',
    b'{"kind": "slow", "bytes_per_second": 1000}',
    b'{"kind": "load", "load": 65534}',
    b'{"kind": "manager_answer", "status": 500, "data": "7b"}',
    *(b'{"kind": "close", "on": "%s"}' % on.encode() for on in ON),
    *(b'{"kind": "reverse", "batch": %s}' % n for n in (b"1e999", b"NaN", b"-1", b"1.5", b"true", b'"2"', b"[2]")),
]


class _Core:
    """A hub of one listener without sockets."""

    ports = (1,)

    def follow(self) -> None:
        """Change nothing."""

    def refuse(self, *_: object) -> None:
        """Change nothing."""

    resume = refuse


def check(data: bytes) -> None:
    """Arm what the bytes say, on a hub without sockets."""
    from dataproxy._core.server.faults.core import FaultCore
    from dataproxy.hub.listeners import Shutters

    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return
    try:
        fault = Fault.from_json(value)
    except ConfigError as error:
        if not str(error):
            raise AssertionError("an error without a text") from error
        return
    if Fault.from_json(json.loads(json.dumps(fault.to_json()))) != fault:
        raise AssertionError(f"{fault!r} does not say the same of itself")
    faults = Faults(_Core(), FaultCore(), Shutters(_Core(), "127.0.0.1"))
    try:
        armed = faults.add(fault)
    except (ConfigError, HubError):
        return
    if armed.fired not in (0, 1) or not armed.armed:
        raise AssertionError(f"{armed!r} was armed wrongly")


if __name__ == "__main__":
    main(check, SEEDS)
