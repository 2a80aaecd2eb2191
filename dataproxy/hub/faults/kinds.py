"""The kinds of faults: the action of each, the events that can trigger it, and its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["KINDS", "ON", "FaultKind"]

#: Events at which faults of the DataProxy port can be triggered.
ON: Final = ("data", "heartbeat", "connect", "bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultKind:
    """Describe one kind.

    ``action`` names the action of the compiled table; "" is a fault of a listener or of the Manager server.  ``on``
    lists the events that can trigger it, the default first; empty if the fault is active as long as it is armed.
    ``parameters`` maps each parameter of the kind to its default; ``fixed`` are parameters of the action that the kind
    sets itself.
    """

    name: str
    text: str
    action: str = ""
    on: tuple[str, ...] = ()
    parameters: Mapping[str, object] = field(default_factory=dict)
    fixed: Mapping[str, object] = field(default_factory=dict)
    manager: bool = False


_REPLY: Final = ("data", "heartbeat")
_ANY: Final = ("data", "heartbeat", "connect", "bytes")
_CHANNEL: Final = "Put msg event to channel failure: "

_ALL: Final = (
    FaultKind(
        name="refuse",
        text="answer with an error code, store nothing",
        action="refuse",
        on=("data",),
        parameters={"code": None, "message": ""},
    ),
    FaultKind(name="stopped", text="answer 2, service closed", action="refuse", on=("data",), fixed={"code": 2}),
    FaultKind(name="not_ready", text="answer 1, MQ not ready", action="refuse", on=("data",), fixed={"code": 1}),
    FaultKind(
        name="queue_full",
        text="answer 114, queue full",
        action="refuse",
        on=("data",),
        fixed={"code": 114, "message": _CHANNEL + "the queue is full"},
    ),
    FaultKind(
        name="disk_full",
        text="answer as if the disk of the store were full (114)",
        action="refuse",
        on=("data",),
        fixed={"code": 114, "message": _CHANNEL + "the disk of the store is full"},
    ),
    FaultKind(
        name="store_error",
        text="answer as if the store could not write (114)",
        action="refuse",
        on=("data",),
        fixed={"code": 114, "message": _CHANNEL + "the store refused it"},
    ),
    FaultKind(
        name="drained",
        text="answer 2 and leave the Manager's list",
        action="refuse",
        on=("data",),
        fixed={"code": 2},
    ),
    FaultKind(name="drop_reply", text="store, do not answer", action="no_reply", on=_REPLY),
    FaultKind(name="delay", text="answer later", action="delay", on=_REPLY, parameters={"seconds": None}),
    FaultKind(name="duplicate", text="answer twice", action="copies", on=_REPLY, parameters={"copies": 2}),
    FaultKind(
        name="foreign_id",
        text="answer with the number of another request, not of the one that was received",
        action="foreign_id",
        on=("data",),
        parameters={"number": "far"},
    ),
    FaultKind(
        name="reverse",
        text="collect replies of a connection and send the last one first",
        action="reverse",
        on=_REPLY,
        parameters={"batch": 2},
    ),
    FaultKind(name="slice", text="write the reply byte by byte", action="slice", on=_REPLY),
    FaultKind(
        name="garbage",
        text="send bytes before the reply",
        action="garbage",
        on=_REPLY,
        parameters={"data": b"\xff" * 16},
    ),
    FaultKind(
        name="corrupt",
        text="change one byte of the reply",
        action="corrupt",
        on=_REPLY,
        parameters={"at": 0, "mask": 0xFF},
    ),
    FaultKind(
        name="close",
        text="close the connection",
        action="close",
        on=_ANY,
        parameters={"stage": "before_store", "reset": False},
    ),
    FaultKind(
        name="reset",
        text="reset the connection (RST)",
        action="close",
        on=_ANY,
        parameters={"stage": "before_store"},
        fixed={"reset": True},
    ),
    FaultKind(
        name="freeze",
        text="stop reading from a connection, writing to it, or both, until the fault is removed",
        action="freeze",
        on=_ANY,
        parameters={"side": "both"},
    ),
    FaultKind(
        name="slow",
        text="read slowly",
        action="slow",
        on=("bytes",),
        parameters={"bytes_per_second": None},
    ),
    FaultKind(name="load", text="report this load", action="load", on=("heartbeat",), parameters={"load": None}),
    FaultKind(name="refuse_connections", text="make the kernel refuse connections until the fault is removed"),
    FaultKind(
        name="kill",
        text="close every connection and refuse new ones until the fault is removed; then the same port listens again",
    ),
    FaultKind(name="manager_down", text="close the Manager's connections without an answer", manager=True),
    FaultKind(
        name="manager_slow",
        text="answer discovery later, or not at all (seconds 0)",
        manager=True,
        parameters={"seconds": 0.0},
    ),
    FaultKind(
        name="manager_answer",
        text="answer discovery with these bytes and this status",
        manager=True,
        parameters={"data": b"\x00garbage", "status": 200},
    ),
)

#: Every kind by its name.
KINDS: Final = {kind.name: kind for kind in _ALL}
