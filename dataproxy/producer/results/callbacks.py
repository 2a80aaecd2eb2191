"""Where the application's callbacks run, and how exceptions of callbacks are handled."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from dataproxy._core.producer.handle import CoreHandle
from dataproxy.errors import ConfigError
from dataproxy.logs import logger
from dataproxy.process.threads import FORKS, end_child, forks
from dataproxy.producer.results.ahead import Ahead, Calls, Part

__all__ = ["CallbackPlace", "Calls", "check_place"]

_LOG: Final = logger("callback")
_REPEAT_SECONDS: Final = 10.0
# Executors that run work in other processes or interpreters: module -> class.  Only loaded modules are looked at.
_AWAY: Final = {
    "concurrent.futures.process": "ProcessPoolExecutor",
    "concurrent.futures.interpreter": "InterpreterPoolExecutor",
}
_AT_ONCE: Final = 100  # callbacks that run on an event loop before its other tasks may run
_AHEAD: Final = 4096  # results that a loop or an executor has got and whose callbacks have not run


def check_place(place: Any) -> None:
    """Raise ConfigError unless ``place`` is None, an open event loop or an executor of threads."""
    if place is None:
        return
    if isinstance(place, type):
        raise ConfigError(
            f"callback_on is the class {place.__name__!r}, not an instance",
            code="BAD_CALLBACK_TARGET",
            hint="give an object, such as a ThreadPoolExecutor() or asyncio.get_running_loop()",
        )
    for module, name in _AWAY.items():
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and isinstance(place, kind):
            raise ConfigError(
                f"callback_on={place!r} runs its work in another process, where callbacks cannot run",
                code="BAD_CALLBACK_TARGET",
                hint="give a ThreadPoolExecutor; a callback can pass data to other processes itself",
            )
    if callable(getattr(place, "submit", None)):
        return
    if not all(callable(getattr(place, name, None)) for name in ("call_soon_threadsafe", "is_closed")):
        raise ConfigError(
            f"callback_on={place!r} is neither an asyncio event loop nor a concurrent.futures.Executor",
            code="BAD_CALLBACK_TARGET",
            hint="leave it out to have callbacks on the producer's dispatcher thread",
        )
    if place.is_closed():
        raise ConfigError(
            "callback_on is an event loop that is closed already",
            code="BAD_CALLBACK_TARGET",
            hint="give the running one: asyncio.get_running_loop()",
        )


def _parts(calls: Calls) -> Iterator[Calls]:
    """Divide calls, in their order, into parts of at most ``_AT_ONCE`` arguments."""
    part: list[tuple[Callable[[Any], object], Sequence[Any]]] = []
    room = _AT_ONCE
    for function, arguments in calls:
        for at in range(0, len(arguments), _AT_ONCE):
            some = arguments[at : at + _AT_ONCE]
            if len(some) > room:
                yield part
                part, room = [], _AT_ONCE
            part.append((function, some))
            room -= len(some)
    if part:
        yield part


class CallbackPlace:
    """Run callbacks on the calling thread, on an event loop or on an executor; count and log those that raise."""

    def __init__(self, core: CoreHandle, place: Any) -> None:
        self._callers = core._callers  # not the core itself: it refers to this object
        self._hop: Callable[..., object] | None = None
        self._loop = None
        self._place = place
        self._ahead = Ahead(_AHEAD)
        self._made_in = forks()
        if place is not None and callable(getattr(place, "submit", None)):
            self._hop = place.submit
        elif place is not None:
            self._loop = place
            self._hop = place.call_soon_threadsafe
        self._lock = threading.Lock()
        self._logged: dict[tuple[int, type[BaseException] | None], float] = {}
        self._quiet = 0
        self.errors = 0

    @property
    def here(self) -> bool:
        """Tell whether callbacks run on the thread that calls ``run``, before ``run`` returns."""
        return self._hop is None

    def run(self, calls: Calls) -> None:
        """Make ``calls`` in their order, here or by the loop or executor.  Dispatcher's thread; never raises."""
        if self._hop is None:
            self._make(calls)
            return
        for some in _parts(calls):
            part = Part(some)
            for lost in self._ahead.add(part, self._is_gone):
                self._unmade(lost.calls, RuntimeError("Event loop is closed"))
            try:
                future = self._hop(self._make, some, part)
                if self._loop is None:
                    self._follow(future, part)
            except BaseException as error:  # noqa: BLE001 - the application's executor or loop; its error is its own
                self._let_go(part, error)

    def hurry(self) -> None:
        """Hand over the rest without waiting for the loop or executor: the producer is closing."""
        self._ahead.hurry()

    def is_here(self) -> bool:
        """Tell whether callbacks run on the calling thread, so that waiting for them here would never end."""
        if self._loop is not None:
            return asyncio._get_running_loop() is self._loop
        # The workers of the standard library's executor: all of them may wait in a sending call.
        return threading.current_thread() in getattr(self._place, "_threads", ())

    def _is_gone(self) -> bool:
        return self._loop is not None and bool(self._loop.is_closed())

    def _follow(self, future: Any, part: Part) -> None:
        """Notice when a future ends without its calls: it was cancelled, or no worker could take it."""
        begun = getattr(future, "add_done_callback", None)
        if begun is not None:
            begun(partial(self._ended, part))

    def _ended(self, part: Part, future: Any) -> None:
        error = RuntimeError("the executor has cancelled them") if future.cancelled() else future.exception()
        if error is not None:
            self._let_go(part, error)

    def _let_go(self, part: Part, error: BaseException) -> None:
        """Count the calls of a part as not made, unless they were made or counted before."""
        if self._ahead.drop(part):
            self._unmade(part.calls, error)

    def _unmade(self, part: Calls, error: BaseException) -> None:
        """Count and log callbacks that will never be called.  Any thread."""
        count = sum(len(arguments) for _, arguments in part)
        with self._lock:
            self.errors += count
        kind = type(error)
        self._write("%d callbacks were not called: %s", count, str(error) or kind.__name__, key=(0, kind))

    def _is_childs(self) -> bool:
        """Tell whether this is a child, and the results are its parent's; on the dispatcher's thread, end it."""
        if self._made_in == forks():
            return False
        end_child(True)
        return True

    def _make(self, calls: Calls, part: Part | None = None) -> None:
        if self._is_childs():
            return  # a child has got a copy of what waited for the loop or the executor
        ident = threading.get_ident()
        made_in, counted = self._made_in, FORKS
        inner = ident in self._callers
        self._callers.add(ident)
        rest: Calls = ()
        try:
            for at, (function, arguments) in enumerate(calls):
                left = iter(arguments)
                for argument in left:
                    try:
                        function(argument)
                    except (KeyboardInterrupt, SystemExit):
                        if self._is_childs():
                            raise
                        if self._loop is None:
                            self.failed(function)
                            continue
                        rest = [(function, list(left)), *calls[at + 1 :]]
                        try:
                            self._loop.call_soon(self._make, rest, part)
                        except Exception as error:  # noqa: BLE001 - a loop that was closed by the callback
                            self._unmade(rest, error)
                            rest = ()
                        raise
                    except BaseException:  # the application's own code; its error is its own
                        if self._is_childs():
                            raise
                        self.failed(function)
                    if counted[0] != made_in and self._is_childs():  # without a call for each message
                        return
        finally:
            if not inner:
                self._callers.discard(ident)
            if part is not None and not self._is_childs():
                part.calls = rest
                self._ahead.keep(part, sum(len(arguments) for _, arguments in rest))

    def failed(self, function: Callable[[Any], object]) -> None:
        """Count and log the exception that ``function`` raised and that is being handled.  Any thread."""
        kind = sys.exc_info()[0]
        with self._lock:
            self.errors += 1
        self._write("the callback %r raised", function, key=(id(function), kind), trace=True)

    def _write(self, text: str, *arguments: object, key: tuple[int, Any], trace: bool = False) -> None:
        """Log an error, at most once in ten seconds for each ``key``; others are counted in the next record."""
        now = time.monotonic()
        with self._lock:
            if now - self._logged.get(key, -_REPEAT_SECONDS) < _REPEAT_SECONDS:
                self._quiet += 1
                return
            if len(self._logged) > 1000:
                self._logged.clear()
            self._logged[key] = now
            quiet, self._quiet = self._quiet, 0
        if quiet:
            text += f" ({quiet} more callback errors were not logged)"
        _LOG.log(logging.ERROR, text, *arguments, exc_info=trace)
