"""What a test has done to calls: each fault waits for calls of one method, and is used up by so many of them.

Actions:

- ``("code", 403, "text")``: an answer with a code; a dictionary behind the text gives other fields of the answer
- ``("exception", "java.class.Name", "text")``: an exception in place of an answer
- ``("reply", data)``: bytes in place of an answer; a function gets the serial number and returns them
- ``"drop"``: no answer;  ``"close"``: the end of the connection in place of an answer
- ``("hold", event)``: the call waits for a `threading.Event`, and with it all later ones of its connection
- ``("mangle", function)``: the answer's message is given to a function that changes it, or returns another one

A call that gets another answer, or none, has no effect, unless the fault is ``worked``; a held one has it when it is
let go, or before it waits if the fault is ``worked``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from dataproxy.wire.tubemq.calls import METHODS

__all__ = ["UNREGISTER", "Action", "Fault", "Faults", "name_of"]

UNREGISTER: Final = "UnregisterRequestC2B"  # of a RegisterRequestC2B that ends a registration
_ENDS: Final = 32  # its opType
_NAMES: Final = {one.request for one in METHODS.values()} | {UNREGISTER}
_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "code": (int, str),
    "exception": (str, str),
    "reply": (object,),
    "hold": (threading.Event,),
    "mangle": (object,),
    "drop": (),
    "close": (),
}

Action = str | tuple[Any, ...]


def name_of(message: str, request: Any) -> str:
    """Return what a call is named in logs and faults: its request's message, or ``UNREGISTER``."""
    return UNREGISTER if message == "RegisterRequestC2B" and request.opType == _ENDS else message


@dataclass
class Fault:
    """What is done to the next calls of a method."""

    method: str
    kind: str
    given: tuple[Any, ...]
    left: int | None  #: calls that it will be done to; None: all
    topic: str | None
    partition: int | None
    worked: bool  #: the call has its effect all the same
    when: Callable[[Any], bool] | None

    def fits(self, name: str, request: Any) -> bool:
        """Tell whether a call is one of those meant."""
        return (
            self.method == name
            and self.topic in (None, getattr(request, "topicName", None))
            and self.partition in (None, getattr(request, "partitionId", None))
            and (self.when is None or self.when(request))
        )


class Faults:
    """All faults that wait, in the order in which they were given.  One thread."""

    def __init__(self) -> None:
        self._waiting: list[Fault] = []

    def add(
        self, method: str, action: Action, times: int | None, topic: str | None, partition: int | None, worked: bool,
        when: Callable[[Any], bool] | None,
    ) -> None:  # fmt: skip
        """Add a fault.  Raises ValueError for a method, an action or a number that there is not."""
        if method not in _NAMES:
            raise ValueError(f"no method {method!r}; known: {', '.join(sorted(_NAMES))}")
        if times is not None and times < 1:
            raise ValueError(f"times={times}, expected a number from 1 on, or None for all")
        kind, *given = (action,) if isinstance(action, str) else action
        wanted = _KINDS.get(kind)
        if wanted is None or len(given) not in (len(wanted), len(wanted) + (kind == "code")):
            raise ValueError(f"no action {action!r}; known: {', '.join(_KINDS)}")
        for value, type_ in zip(given, wanted, strict=False):
            if not isinstance(value, type_):
                raise ValueError(f"{kind!r} with {value!r}, expected a {type_.__name__}")
        self._waiting.append(Fault(method, kind, tuple(given), times, topic, partition, worked, when))

    def clear(self) -> None:
        """Drop all faults."""
        self._waiting.clear()

    def take(self, name: str, request: Any) -> Fault | None:
        """Return the oldest fault that a call fits, and count it."""
        for fault in self._waiting:
            if fault.fits(name, request):
                if fault.left is not None:
                    fault.left -= 1
                    if fault.left == 0:
                        self._waiting.remove(fault)
                return fault
        return None
