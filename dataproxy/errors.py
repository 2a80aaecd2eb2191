"""The tree of errors.  Programs decide by ``code``, ``retriable`` and ``fatal``; the text is for people."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from dataproxy.codes import LOCAL_CODES, RetryClass, code_name, describe, retry_class
from dataproxy.numbers import BROKER_CODES
from dataproxy.shown import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "BufferFullError",
    "ClosedError",
    "ConfigError",
    "ConfirmError",
    "DataProxyError",
    "DeliveryDropped",
    "DeliveryError",
    "DeliveryExpired",
    "DeliveryFailed",
    "DeliveryPending",
    "DiscoveryError",
    "FlushTimeout",
    "ForkedError",
    "GroupRefusedError",
    "HubError",
    "InvalidMessageError",
    "LocalProtocolError",
    "OffsetsLostError",
    "RemoteProtocolError",
    "SeekError",
    "StoreError",
    "TransportError",
    "UndeliveredError",
]


def _rebuild(kind: type[DataProxyError], state: dict[str, Any], extra: dict[str, Any]) -> DataProxyError:
    error = kind.__new__(kind)
    DataProxyError.__init__(error, **state)
    error.__dict__.update(extra)
    return error


class DataProxyError(Exception):
    """Report an error of this package: what happened, with which value, and what to do next.

    ``code`` is a word for what the client reports by itself and the server's number for an answer of a
    proxy; ``name`` is a word in both cases.  ``retriable``: the same call may succeed later.  ``fatal``:
    the object cannot be used any more.  ``hint``: what to do.  ``details``: the facts, read-only.  Errors can be
    pickled and copied without loss.  ``str`` gives one line: text from a peer is shown with escapes.
    """

    _default_code: ClassVar[str] = "ERROR"
    _default_retriable: ClassVar[bool] = False
    _default_fatal: ClassVar[bool] = False

    message: str
    code: str | int
    retriable: bool
    fatal: bool
    hint: str
    _details: dict[str, Any]

    def __init__(
        self,
        message: str,
        *,
        code: str | int | None = None,
        retriable: bool | None = None,
        fatal: bool | None = None,
        hint: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = self._default_code if code is None else code
        known = LOCAL_CODES.get(self.code) if isinstance(self.code, str) else None
        usual = self._default_retriable if known is None else known.retriable
        self.retriable = usual if retriable is None else retriable
        self.fatal = self._default_fatal if fatal is None else fatal
        self.hint = hint
        self._details = dict(details) if details else {}

    @property
    def name(self) -> str:
        """Return the code as a word, for a server's number its name in the protocol."""
        return code_name(self.code)

    @property
    def details(self) -> Mapping[str, Any]:
        """Return the facts of the error as a read-only mapping."""
        return MappingProxyType(self._details)

    def __str__(self) -> str:
        text = self.message
        if self.hint:
            text = f"{text}; {self.hint}"
        code = f"{self.code} {self.name}" if isinstance(self.code, int) else self.code
        return printable(f"{text} [{code}]")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r}, code={self.code!r}, retriable={self.retriable})"

    def __reduce__(self) -> tuple[Any, ...]:
        state = {
            "message": self.message,
            "code": self.code,
            "retriable": self.retriable,
            "fatal": self.fatal,
            "hint": self.hint,
            "details": self._details,
        }
        known = {*state, "_details"}
        extra = {key: value for key, value in self.__dict__.items() if key not in known}
        return _rebuild, (type(self), state, extra)


class ConfigError(DataProxyError, ValueError):
    """Report an option, an argument or a target address that is not allowed."""

    _default_code = "CONFIG"


class InvalidMessageError(DataProxyError, ValueError):
    """Report a body, name, attribute, time or column that cannot be sent; nothing of the call was accepted."""

    _default_code = "INVALID_MESSAGE"


class LocalProtocolError(DataProxyError):
    """Report a call that does not fit the state of its object."""

    _default_code = "LOCAL_PROTOCOL"


class RemoteProtocolError(DataProxyError):
    """Report bytes from a peer that break the protocol."""

    _default_code = "REMOTE_PROTOCOL"
    _default_retriable = True


class TransportError(DataProxyError):
    """Report a failure of the network."""

    _default_code = "TRANSPORT"
    _default_retriable = True


class DiscoveryError(DataProxyError):
    """Report that the client could not find out the addresses of the proxies."""

    _default_code = "DISCOVERY"
    _default_retriable = True


class ClosedError(DataProxyError):
    """Report the use of a closed object."""

    _default_code = "CLOSED"
    _default_fatal = True


class ForkedError(DataProxyError):
    """Report the use of an object that was made before a ``fork``."""

    _default_code = "FORKED"
    _default_fatal = True


class GroupRefusedError(DataProxyError):
    """Report that servers do not let a consumer into its group; ``details`` has the code of TubeMQ's master."""

    _default_code = "MEMBER_REFUSED"


class OffsetsLostError(DataProxyError):
    """Report offsets of a partition of TubeMQ that are not there any more; ``details`` has them."""

    _default_code = "OFFSETS_LOST"


class ConfirmError(DataProxyError):
    """Report a pack of messages whose confirm does not count: they may come again, here or to another member."""

    _default_code = "CONFIRM"


class SeekError(DataProxyError):
    """Report a partition that is not read from the place that ``seek`` was asked for."""

    _default_code = "SEEK"


class BufferFullError(DataProxyError):
    """Report that a message was not accepted since the buffer is full."""

    _default_code = "BUFFER_FULL"
    _default_retriable = True


class DeliveryError(DataProxyError):
    """Report that an accepted message was not delivered."""

    _default_code = "DELIVERY"

    @property
    def id(self) -> str:
        """Return the id of the message: the caller's ``message_id``, else the one made for it."""
        return str(self._details.get("id", ""))


class DeliveryDropped(DeliveryError):  # noqa: N818 - named like an outcome
    """Report an accepted message that the producer dropped because the buffer was full, as ``on_full`` says.

    No byte of it was ever sent.
    """

    _default_code = "DROPPED"
    _default_retriable = True


def server_of(code: int) -> str:
    """Return what the server is whose answer a code is: a broker of TubeMQ's, or a proxy."""
    return "broker" if BROKER_CODES < code < 2 * BROKER_CODES else "proxy"


class DeliveryFailed(DeliveryError):  # noqa: N818 - named like an outcome
    """Report an accepted message that a proxy refused for good, or that was given up."""

    _default_code = "ABORTED"

    @classmethod
    def from_code(cls, code: int, text: str = "", details: Mapping[str, Any] | None = None) -> DeliveryFailed:
        """Return the error for a server's answer ``code`` with its own ``text`` (may be empty)."""
        meaning, hint = describe(code)
        said = f": {text!r}" if text else ""
        what = f" ({meaning})" if meaning else ""
        retriable = retry_class(code) not in (RetryClass.NO, RetryClass.FRAMING, RetryClass.SPLIT, RetryClass.OK)
        return cls(
            f"the {server_of(code)} refused the message with code {code}{what}{said}",
            code=code,
            retriable=retriable,
            hint=hint,
            details=details,
        )


class DeliveryExpired(DeliveryError):  # noqa: N818 - named like an outcome
    """Report an accepted message that was not delivered within ``delivery_timeout``; it may have arrived."""

    _default_code = "EXPIRED"
    _default_retriable = True


class DeliveryPending(DataProxyError, TimeoutError):  # noqa: N818 - named like an outcome
    """Report that a result was not known when the wait for it ended; the message is still in flight."""

    _default_code = "PENDING"
    _default_retriable = True


class FlushTimeout(DataProxyError, TimeoutError):  # noqa: N818 - named like an outcome
    """Report that messages had no result when the wait for them ended.

    ``report`` is the producer's report at that moment, or None.
    """

    _default_code = "FLUSH_TIMEOUT"
    _default_retriable = True

    report: Any

    def __init__(self, message: str, *, report: Any = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.report = report


class UndeliveredError(DataProxyError):
    """Report that not everything was delivered when a producer was closed.

    ``report`` is the final report: counts by outcome and by error code.
    """

    _default_code = "UNDELIVERED"

    report: Any

    def __init__(self, report: Any, message: str = "", **facts: Any) -> None:
        super().__init__(message or _undelivered_text(report), **facts)
        self.report = report


class HubError(DataProxyError):
    """Report a failure of the embedded hub."""

    _default_code = "HUB"


class StoreError(HubError):
    """Report a failure of the hub's store."""

    _default_code = "STORE"


_UNDELIVERED = ("failed", "expired", "dropped", "pending")


def _undelivered_text(report: Any) -> str:
    parts = []
    for name in _UNDELIVERED:
        count = getattr(report, name, 0)
        if count:
            parts.append(f"{count} {name}")
    accepted = getattr(report, "accepted", None)
    errors = getattr(report, "errors", None)
    causes = f", by code {dict(errors)!r}" if errors else ""
    last = getattr(report, "last_error", None)
    trouble = f"; the last error was {last}" if last is not None else ""
    missing = sum(getattr(report, name, 0) for name in _UNDELIVERED)
    were = "was" if missing == 1 else "were"
    what = "messages were" if accepted is None else f"{missing} of {accepted} accepted messages {were}"
    return f"{what} not delivered: {', '.join(parts) or 'unknown'}{causes}{trouble}"
