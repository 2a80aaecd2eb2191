"""The faults of a running hub: arming, counting and removing them."""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, InvalidStateError
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from dataproxy._core.server.faults.core import NUMBERS, POINTS, FaultCore
from dataproxy.errors import ConfigError, HubError
from dataproxy.hub.faults.fault import Fault
from dataproxy.hub.faults.kinds import KINDS
from dataproxy.hub.listeners import Shutters
from dataproxy.problems import seconds

if TYPE_CHECKING:
    from datetime import timedelta

    from dataproxy._core.server.core import HubCore

__all__ = ["ArmedFault", "Faults"]

_STAGE: Final = {"before_store": 0, "after_store": 1, "after_reply": 2}
_SIDE: Final = {"read": 1, "write": 2, "both": 3}
_LOOK: Final = 0.001


class ArmedFault:
    """Refer to a fault of a hub; as a context manager it removes the fault at the end of the block.  Any thread."""

    def __init__(self, owner: Faults, number: int, fault: Fault) -> None:
        self._owner = owner
        self._native = 0
        self._counts = (0, 0)
        self._random = random.Random(fault.seed)
        self.id = number
        self.fault = fault
        #: Done once the fault is removed.
        self.gone: Future[None] = Future()

    @property
    def seen(self) -> int:
        """Return how many events matched so far."""
        return self._owner._counts(self)[0]

    @property
    def fired(self) -> int:
        """Return how often it fired so far; a fault without a triggering event fires once, when it is armed."""
        return self._owner._counts(self)[1]

    @property
    def armed(self) -> bool:
        """Tell whether the hub still has the fault."""
        return self._owner._has(self)

    def wait(self, times: int = 1, timeout: float | timedelta = 30.0) -> None:
        """Wait until it has fired ``times`` times.  Raises TimeoutError after ``timeout`` (seconds or a timedelta)."""
        deadline = time.monotonic() + seconds(timeout)
        while self.fired < times:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self!r} did not fire {times} times within {timeout} s")
            time.sleep(_LOOK)

    def remove(self) -> None:
        """Remove it; frozen connections continue, and collected bytes are sent.  Idempotent."""
        self._owner.remove(self)

    def _end(self) -> None:
        with contextlib.suppress(InvalidStateError):  # it was ended already
            self.gone.set_result(None)

    def to_json(self) -> dict[str, Any]:
        """Return id, counts and the fault's own fields."""
        seen, fired = self._owner._counts(self)
        return {"id": self.id, "seen": seen, "fired": fired, **self.fault.to_json()}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def __repr__(self) -> str:
        seen, fired = self._owner._counts(self)
        return f"<ArmedFault {self.id} {self.fault.kind} seen={seen} fired={fired}>"


class Faults:
    """Make a hub misbehave on request.  Any thread; a change applies to everything received after the call returned."""

    def __init__(self, core: HubCore, table: FaultCore, shutters: Shutters) -> None:
        self._core = core
        self._table = table
        self._shutters = shutters
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._armed: dict[int, ArmedFault] = {}

    def add(self, fault: Fault | str, **options: Any) -> ArmedFault:
        """Arm a fault: a Fault, or a kind with fields as keywords, as ``add("refuse", code=114, nth=3)``.

        Raises ConfigError, and HubError when there are too many.
        """
        if not isinstance(fault, Fault):
            fault = Fault._of(fault, options)
        elif options:
            raise ConfigError("a Fault was given together with fields", hint="put the fields into the Fault")
        self._check_listener(fault)
        if fault.event == "connect":
            self._core.follow()  # the fault does not apply to connections from before
        with self._lock:
            armed = ArmedFault(self, next(self._numbers), fault)
            if KINDS[fault.kind].action:
                armed._native = self._arm(fault)
            self._armed[armed.id] = armed
            self._hold(armed)
        self._core.follow()
        return armed

    def get(self, number: int) -> ArmedFault | None:
        """Return an armed fault by its id, None when there is none."""
        with self._lock:
            return self._armed.get(number)

    def remove(self, fault: ArmedFault | int) -> None:
        """Remove a fault, given as an object or by its id; does nothing if it is not armed.

        Raises HubError if a listener that the fault had shut cannot be opened; the fault is removed nevertheless.
        """
        number = fault if isinstance(fault, int) else fault.id
        with self._lock:
            armed = self._armed.pop(number, None)
            if armed is None:
                return
            if armed._native:
                armed._counts = self._table.remove(armed._native)
        try:
            self._let_go(armed)
        finally:
            armed._end()
            self._core.follow()

    def clear(self) -> None:
        """Remove all faults.  Raises HubError as ``remove`` does, after all are removed."""
        with contextlib.ExitStack() as all_of_them:
            for armed in self:
                all_of_them.callback(self.remove, armed)

    def _end(self) -> None:
        """End every wait for the removal of a fault: the hub closes."""
        for armed in tuple(self):
            armed._end()

    def _has(self, fault: ArmedFault) -> bool:
        """Tell whether a fault is armed."""
        with self._lock:
            return fault.id in self._armed

    def _counts(self, fault: ArmedFault) -> tuple[int, int]:
        """Return (events that matched, times fired) of a fault, armed or removed."""
        with self._lock:
            if fault._native and fault.id in self._armed:
                return self._table.counts(fault._native)
            return fault._counts

    def _manager_fault(self, group: str) -> ArmedFault | None:
        """Count a discovery request; return the fault that fires (the last one of several), None if none does."""
        found = None
        with self._lock:
            for armed in self._armed.values():
                fault = armed.fault
                if KINDS[fault.kind].manager and fault.group in (None, group) and _fires(armed):
                    found = armed
        return found

    def _drained(self) -> frozenset[int]:
        """Return the indices of the listeners that the Manager's list must not contain."""
        with self._lock:
            every = range(len(self._core.ports))
            mine = [armed.fault for armed in self._armed.values() if armed.fault.kind == "drained"]
            return frozenset(i for i in every for fault in mine if fault.listener in (None, i))

    def __iter__(self) -> Iterator[ArmedFault]:
        with self._lock:
            return iter(tuple(self._armed.values()))

    def __len__(self) -> int:
        with self._lock:
            return len(self._armed)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def _check_listener(self, fault: Fault) -> None:
        count = len(self._core.ports)
        if fault.listener is not None and fault.listener >= count:
            raise ConfigError(
                f"listener {fault.listener!r} does not exist", hint=f"this hub has {count}, counted from 0"
            )

    def _arm(self, fault: Fault) -> int:
        try:
            return self._table.add(
                action=KINDS[fault.kind].action,
                points=POINTS[fault.event],
                listener=-1 if fault.listener is None else fault.listener,
                connection=fault.connection or 0,
                group=None if fault.group is None else fault.group.encode(),
                stream=None if fault.stream is None else fault.stream.encode(),
                each=bool(fault.per_connection),
                after=(fault.nth - 1 if fault.nth else fault.after) or 0,
                every=fault.every or 0,
                first=1 if fault.nth else fault.first or 0,
                times=fault.times or 0,
                at_byte=-1 if fault.at_byte is None else fault.at_byte,
                share=1.0 if fault.share is None else fault.share,
                seed=fault.seed or 0,
                **_parameters(fault),
            )
        except OverflowError as error:
            raise HubError(str(error), code="FAULTS", hint="remove faults that are no longer needed") from None

    def _hold(self, armed: ArmedFault) -> None:
        for index in self._listeners(armed.fault):
            self._shutters.shut(index, armed, kill=armed.fault.kind == "kill")
            armed._counts = (1, 1)

    def _let_go(self, armed: ArmedFault) -> None:
        with contextlib.ExitStack() as all_of_them:  # an error with one listener must not keep others shut
            for index in self._listeners(armed.fault):
                all_of_them.callback(self._shutters.open, index, armed)

    def _listeners(self, fault: Fault) -> range | tuple[int, ...]:
        if fault.kind not in ("refuse_connections", "kill"):
            return ()
        return range(len(self._core.ports)) if fault.listener is None else (fault.listener,)


def _parameters(fault: Fault) -> dict[str, Any]:
    """Return the parameters of a fault as the compiled table names them."""
    kind = KINDS[fault.kind]
    given = {name: fault._parameter(name) for name in {**kind.parameters, **kind.fixed}}
    found: dict[str, Any] = {}
    for name, value in given.items():
        match name:
            case "seconds":
                found["delay_us"] = int(value * 1e6)
            case "message":
                found["text"] = value.encode()
            case "data":
                found["garbage"] = value
            case "at":
                found["corrupt_at"] = value
            case "stage":
                found["stage"] = _STAGE[value]
            case "side":
                found["side"] = _SIDE[value]
            case "number":
                found["number"] = NUMBERS[value]
            case "bytes_per_second":
                found["rate"] = value
            case _:
                found[name] = value
    return found


def _fires(armed: ArmedFault) -> bool:
    """Count an event of a fault that is not in the compiled table; tell, by the table's rules, whether it fires."""
    fault = armed.fault
    seen, fired = armed._counts[0] + 1, armed._counts[1]
    armed._counts = (seen, fired)
    number = seen - ((fault.nth - 1 if fault.nth else fault.after) or 0)
    most = 1 if fault.nth else fault.first
    if number <= 0 or (most is not None and number > most) or number % (fault.every or 1):
        return False
    if fault.share is not None and armed._random.random() >= fault.share:
        return False
    if fault.times is not None and fired >= fault.times:
        return False
    armed._counts = (seen, fired + 1)
    return True
