"""One call from the bytes of its frame to the bytes of its answer, past the faults that wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from dataproxy.wire.tubemq.calls import METHODS
from tests.support.reference import tubemq as wire
from tests.support.tubeserver.answers import ServerError, failure
from tests.support.tubeserver.faults import Fault, Faults, name_of

__all__ = ["Call", "HangUp", "Service"]

_ERROR, _FATAL = 1, 2  # status of an exception
_HELD_S: Final = 0.005  # between two looks at the event of a call that is held
_OURS: Final = "org.apache.inlong.tubemq."
_PREFIXES: Final = {1: "com.tencent.tubemq.", 2: "com.apache.tubemq.", 3: _OURS}  # by the version of the request
#: Methods of each type of service; some of them have no message, and nobody offers them.
_SERVICES: Final = {
    1: frozenset((*range(1, 10), 20, 21, 22)),
    2: frozenset((11, 12, 13, *range(15, 20))),
    3: frozenset((11, 12, 13, 14)),
}


class HangUp(Exception):
    """End the connection in place of an answer."""


class Call(NamedTuple):
    """One line of the log."""

    method: str
    client: str
    topic: str | None
    partition: int | None
    code: int  #: of the answer; 1 or 2: an exception's status; 0: no answer, or bytes that a test gave


class Service:
    """A master's or a broker's side of all calls.  One thread.

    ``brokers``: the master takes those of other processes.
    """

    def __init__(
        self, types: tuple[int, ...], work: Callable[[str, Any, float], Any], clock: Callable[[], float],
        log: list[Call], faults: Faults, *, brokers: bool = False,
    ) -> None:  # fmt: skip
        self._brokers = brokers
        self._types, self._work, self._clock, self._log, self._faults = types, work, clock, log, faults
        self.held = 0

    async def answer(self, serial: int, payload: bytes) -> bytes | None:
        """Return the frame of the answer to a payload, None for no answer.  Raises HangUp."""
        try:
            call = wire.split_call(payload)
        except wire.WireError as error:
            text = f"IPC server unable to read call parameters:{error}"
            return wire.cut(serial, wire.failed(_FATAL, "java.io.IOException", text))
        version, method = call["protocolVer"], call["method"]
        try:
            kind = self._kind(call["serviceType"], method, version)
            request = wire.read_message(kind, call["request"])
        except ServerError as error:
            return self._exception(serial, version, error)
        except wire.WireError as error:
            text = f"IPC server handler error:{error}"
            return wire.cut(serial, wire.failed(_FATAL, "com.google.protobuf.InvalidProtocolBufferException", text))
        fault = self._faults.take(name_of(kind, request), request)
        try:
            message = await self._answer(kind, request, fault)
        except ServerError as error:
            self._note(kind, request, _ERROR)
            return self._exception(serial, version, error)
        if fault is not None and fault.kind in ("drop", "close", "reply"):
            self._note(kind, request, 0)
            if fault.kind == "close":
                raise HangUp
            data = fault.given[0] if fault.kind == "reply" else None
            return data(serial) if callable(data) else data
        if fault is not None and fault.kind == "mangle":
            message = fault.given[0](message) or message
        self._note(kind, request, message.errCode)
        # A mangled answer may lack what is required.
        return wire.cut(serial, wire.answered(method, message.SerializePartialToString()))

    def _kind(self, service: int, method: int, version: int) -> str:
        """Return the name of a call's message; raise ServerError if this server does not take it."""
        if version not in _PREFIXES:
            raise ServerError(f"{_OURS}corerpc.exception.UnknownProtocolException", f"version {version}")
        if method not in _SERVICES.get(service, ()):
            raise ServerError("java.lang.Exception", f"Unsupported method {method}in service type {service}!")
        if service not in self._types:
            raise ServerError("java.lang.Exception", f"No service {service} found on the server")
        found = METHODS.get(method)
        if found is None or (method in (7, 8, 9) and not self._brokers):
            raise ServerError("java.lang.UnsupportedOperationException", f"method {method} is left out here")
        return found.request

    async def _answer(self, kind: str, request: Any, fault: Fault | None) -> Any:
        """Return the message of the answer; raise ServerError for an exception.  A held call waits here."""
        message = None
        if fault is None or fault.worked or fault.kind == "mangle":
            message = self._result(kind, request)
        if fault is None:
            return message
        if fault.kind == "hold":
            await self._hold(fault)
            return message if fault.worked else self._result(kind, request)
        if fault.kind == "code":
            code, text, *more = fault.given
            return failure(kind, code, text, **(more[0] if more else {}))
        if fault.kind == "exception":
            raise ServerError(*fault.given)
        return message

    async def _hold(self, fault: Fault) -> None:
        self.held += 1
        try:
            while not fault.given[0].is_set():  # noqa: ASYNC110 - a test's thread sets it
                await asyncio.sleep(_HELD_S)
        finally:
            self.held -= 1

    def _result(self, kind: str, request: Any) -> Any:
        try:
            return self._work(kind, request, self._clock())
        except ValueError:  # a text inside of the request; the real ones fail like this, without a word
            raise ServerError("java.lang.reflect.InvocationTargetException", "") from None

    def _note(self, kind: str, request: Any, code: int) -> None:
        topic, partition = getattr(request, "topicName", None), getattr(request, "partitionId", None)
        client = request.brokerId if "brokerId" in request.DESCRIPTOR.fields_by_name else request.clientId
        self._log.append(Call(name_of(kind, request), client, topic, partition, code))

    @staticmethod
    def _exception(serial: int, version: int, error: ServerError) -> bytes:
        name = error.name
        if name.startswith(_OURS):
            name = _PREFIXES.get(version, _OURS) + name.removeprefix(_OURS)
        return wire.cut(serial, wire.failed(_ERROR, name, error.text))
