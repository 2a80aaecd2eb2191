"""One control call, from the bytes of its request to the bytes of its answer, or to the exception in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from dataproxy.hub.tubemq.cluster.answers import ServerError
from dataproxy.logs import logger
from dataproxy.wire.tubemq.calls import METHODS
from dataproxy.wire.tubemq.reading import read_message

__all__ = ["ERROR", "FATAL", "SUCCESS", "Calls", "Outcome", "Work"]

SUCCESS, ERROR, FATAL = 0, 1, 2  #: status of an answer; fatal: the request could not be read
_log: Final = logger("hub.tubemq")
_OURS: Final = "org.apache.inlong.tubemq."
_PREFIXES: Final = {1: "com.tencent.tubemq.", 2: "com.apache.tubemq.", 3: _OURS}  # by the version of the request

Work = Callable[[Any, str, float, int], Any]


class Outcome(NamedTuple):
    """What a call is answered with."""

    status: int
    data: bytes = b""  #: the message, with SUCCESS
    exception: str = ""  #: otherwise: the name of a Java class
    trace: str = ""


class Calls:
    """The control calls of all clients.  One thread.

    ``work`` answers the requests of some methods: each with (request, peer, now, wall_ms), as `Master.answer` does.
    """

    def __init__(self, work: dict[int, Work]) -> None:
        self._work = {method: (METHODS[method].request, one) for method, one in work.items()}

    def answer(
        self, version: int, service: int, method: int, request: bytes, peer: str, now: float, wall_ms: int
    ) -> Outcome:
        """Return the answer to a call; a failure of our own is logged, and told as a Java server tells one."""
        prefix = _PREFIXES.get(version)
        if prefix is None:
            text = f"version {version} of the protocol; there are {', '.join(map(str, _PREFIXES))}"
            return Outcome(ERROR, exception=f"{_OURS}corerpc.exception.UnknownProtocolException", trace=text)
        name, work = self._work.get(method, ("", None))
        if work is None:
            text = f"Unsupported method {method}in service type {service}!"
            return Outcome(ERROR, exception="java.lang.Exception", trace=text)
        message = read_message(name, request)
        if message is None:
            text = f"IPC server unable to read call parameters: {len(request)} bytes are no {name}"
            return Outcome(FATAL, exception="com.google.protobuf.InvalidProtocolBufferException", trace=text)
        try:
            return Outcome(SUCCESS, work(message, peer, now, wall_ms).SerializeToString())
        except ServerError as error:
            return Outcome(ERROR, exception=f"{prefix}corerpc.exception.{error.name}", trace=error.text)
        except Exception:  # noqa: BLE001 - the client needs an answer, and the thread serves others
            _log.exception("a %s of %s was not answered", name, peer)
            return Outcome(ERROR, exception="java.lang.reflect.InvocationTargetException")
