"""The class of InLong's own Python SDK, with its calls, callbacks and return codes."""

from __future__ import annotations

import operator
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from dataproxy.errors import (
    BufferFullError,
    ClosedError,
    ConfigError,
    DataProxyError,
    InvalidMessageError,
    LocalProtocolError,
    UndeliveredError,
)
from dataproxy.logs import logger
from inlong_dataproxy.codes import SdkCode
from inlong_dataproxy.configuration import read_settings
from inlong_dataproxy.groups import Counts, Groups, Shared, TooManyGroups

if TYPE_CHECKING:
    from dataproxy.outcomes import DeliveryResult
    from inlong_dataproxy.configuration import Settings

__all__ = ["InLongApi", "UserCallBack"]

#: Called for a message that was not delivered: group, stream, body, its length in bytes, the time of ``send`` in
#: milliseconds since 1970, this machine's address.  What it returns is not used.
UserCallBack = Callable[[str, str, str, int, int, str], int]

_LOG: Final = logger("inlong")
_LEAST, _MOST = -(1 << 31), (1 << 31) - 1  # what the official calls take as an int
_NOWHERE: Final = ("192.0.2.1", 9)  # an address of nobody; no packet is sent there
_live: weakref.WeakSet[InLongApi] = weakref.WeakSet()


class InLongApi:
    """Send messages as InLong's own Python SDK does; each object has a configuration of its own.

    Calls return 0 or a code (``SdkCode``) and do not raise, but for arguments of a wrong type.  ``last_error`` says in
    words what the last code other than 0 meant.  Any thread may call anything; in a forked child the object works on,
    with connections of its own, and what was under way stays with the parent.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._groups: Groups | None = None
        self._closed = False
        self._failed = False
        self._close_code = int(SdkCode.SUCCESS)
        self._most_bytes = 0
        self._client_ip = ""
        self._error: DataProxyError | None = None
        _live.add(self)

    @property
    def last_error(self) -> DataProxyError | None:
        """Return why the last call failed that returned a code, or the last message that had a callback.

        None if nothing has failed.  ``code``, ``retriable`` and ``hint`` say what to do.
        """
        return self._error

    def init_api(self, config_path: str | bytes | os.PathLike[str] | None) -> int:
        """Read the configuration and begin to connect; no Manager and no proxy has to be there.

        Returns 0, 4 after an earlier success, or 5 if the file cannot be used: then the call can be repeated.
        """
        if config_path is None:
            return self._say(SdkCode.ERROR_INIT, ConfigError("there is no path of a configuration file"))
        path = os.fsdecode(config_path)
        with self._lock:
            if self._groups is not None:
                text = "init_api was called before"
                return self._say(SdkCode.MULTI_INIT, LocalProtocolError(text, hint="make another InLongApi()"))
            try:
                settings = read_settings(path)
                groups = Groups(settings)
            except TooManyGroups:
                self._failed = True
                return self._say(SdkCode.ERROR_INIT, ConfigError("inlong_group_ids names more groups than are allowed"))
            except DataProxyError as error:
                self._failed = True
                return self._say(SdkCode.ERROR_INIT, error)
            self._begin(settings, groups)
        return 0

    def _begin(self, settings: Settings, groups: Groups) -> None:
        self._most_bytes = settings.most_bytes
        self._client_ip = settings.client_ip or _own_address()
        self._failed = False
        self._groups = groups

    def add_bid(self, group_ids: Iterable[str]) -> int:
        """Open groups before their first message; Python SDKs before 2025 have this call.

        Returns 0, 22 before ``init_api`` and after ``close_api``, 7 for a name that is not allowed, 18 for too many.
        """
        groups = self._groups
        if groups is None or self._closed:
            return self._not_open()
        try:
            for name in group_ids:
                groups.open(_name(name))
        except (DataProxyError, TooManyGroups) as error:
            return self._refused(error)
        return 0

    def send(
        self,
        groupId: str | bytes | None,  # noqa: N803 - the official names
        streamId: str | bytes | None,  # noqa: N803
        msg: str | bytes | bytearray | memoryview | None,
        msgLen: int,  # noqa: N803
        pyCallback: UserCallBack | None = None,  # noqa: N803
        *,
        call_back_func: UserCallBack | None = None,
        on_delivery: Callable[[DeliveryResult], object] | None = None,
    ) -> int:
        """Accept a message; it is sent in the background.  Never waits.

        ``msg`` is sent whole, whatever ``msgLen`` says.  ``pyCallback``, also under the name ``call_back_func``, is
        called if the message is not delivered, with the arguments of ``UserCallBack``; bytes that are no UTF-8 come
        back as ``msg.encode("utf-8", "surrogateescape")`` gives them.  ``on_delivery`` is called in any case, with a
        ``dataproxy.DeliveryResult``.  Both run on a thread of this package; exceptions are logged.

        Returns 0, 6 for a body that is too long, 7 for one that is empty and for names that are not allowed, 8 with a
        full buffer, 10 after a failed ``init_api``, 18 for too many groups, 22 before ``init_api`` and after
        ``close_api``.  Raises TypeError for arguments of a wrong type.
        """
        callback = pyCallback if pyCallback is not None else call_back_func
        body = _body(msg)
        _check_types(msgLen, callback, on_delivery)
        group_id, stream_id = _name(groupId), _name(streamId)
        groups = self._groups
        if groups is None or self._closed:
            return self._not_open()
        if len(body) > self._most_bytes:
            text = f"the body has {len(body)} bytes, ext_pack_size allows {self._most_bytes}"
            return self._say(SdkCode.MSG_TOO_LONG, InvalidMessageError(text, code="BODY_TOO_LARGE"))
        if not (body and group_id and stream_id):
            what = "body" if not body else "group" if not group_id else "stream"
            return self._say(SdkCode.INVALID_INPUT, InvalidMessageError(f"the message has no {what}"))
        try:
            shared, stream, send_nowait = groups.handle(group_id, stream_id)
            if callback is None and on_delivery is None:
                send_nowait(body)
            else:
                names = group_id, stream_id, self._client_ip
                stream.send(body, on_delivery=_Watch(self, shared, names, body, callback, on_delivery))
        except (DataProxyError, TooManyGroups) as error:
            return self._refused(error)
        return 0

    def close_api(self, timeout_ms: int) -> int:
        """Deliver what was accepted, within ``timeout_ms``, and end; returns as soon as everything has its result.

        What has none by then has failed, and its callbacks are called before this returns.  Returns 0 if everything
        was delivered, or if callbacks had said before this call what was not; otherwise 20.  A call after the end
        returns the same, one while another thread closes returns 0 at once.  Before ``init_api`` there is nothing to
        close: it returns 0, and changes nothing.
        """
        seconds = max(0, _int32(timeout_ms, "timeout_ms")) / 1000
        groups = self._groups
        if groups is None:
            return 0
        with self._lock:
            if self._closed:
                return self._close_code
            self._closed = True
        lost = groups.close(seconds)
        if lost:
            counts = groups.counts()
            text = (
                f"{lost} messages were not delivered ({counts.delivered} of {counts.accepted} were);"
                f" errors by code: {groups.errors()}"
            )
            hint = "callbacks say which messages; CLOSED means that close_api had too little time"
            self._close_code = self._say(SdkCode.FAIL_SEND_PROXY, UndeliveredError(counts, text, hint=hint))
            _LOG.warning("close_api: %s", text)
        return self._close_code

    def counts(self) -> Counts:
        """Return the messages by outcome since ``init_api``, also after ``close_api``."""
        return Counts(0, 0, 0, 0, 0, 0) if self._groups is None else self._groups.counts()

    def _not_open(self) -> int:
        if self._failed:
            return self._say(SdkCode.SEND_AFTER_CLOSE, ClosedError("init_api has failed"))
        text = "close_api was called" if self._closed else "init_api was not called"
        return self._say(SdkCode.SEND_BEFORE_INIT, ClosedError(text))

    def _refused(self, error: DataProxyError | TooManyGroups) -> int:
        if isinstance(error, TooManyGroups):
            text = "no further group: raise max_group_id_num or max_stream_id_num"
            return self._say(SdkCode.FAIL_GET_RECV_GROUP, ConfigError(text))
        if isinstance(error, BufferFullError):
            return self._say(SdkCode.RECV_BUFFER_FULL, error)
        if isinstance(error, ClosedError):
            return self._say(SdkCode.SEND_BEFORE_INIT, error)
        if error.code == "BODY_TOO_LARGE":
            return self._say(SdkCode.MSG_TOO_LONG, error)
        if isinstance(error, InvalidMessageError | ConfigError):
            return self._say(SdkCode.INVALID_INPUT, error)
        return self._say(SdkCode.FAIL_SEND_PROXY, error)

    def _say(self, code: SdkCode, error: DataProxyError) -> int:
        self._error = error
        if code is SdkCode.ERROR_INIT:
            _LOG.error("init_api: %s", error)
        return int(code)

    def _begin_again(self) -> None:
        """Give a forked child locks of its own; another thread of the parent may have held these."""
        self._lock = threading.RLock()
        if self._groups is not None:
            self._groups.begin_again()


class _Watch:
    """Hold what the callbacks of one message need until it has its result."""

    __slots__ = ("_api", "_body", "_callback", "_names", "_on_delivery", "_sent_ms", "_shared")

    def __init__(
        self,
        api: InLongApi,
        shared: Shared,
        names: tuple[str, str, str],
        body: bytes,
        callback: UserCallBack | None,
        on_delivery: Callable[[DeliveryResult], object] | None,
    ) -> None:
        self._api = api
        self._shared = shared
        self._names = names
        self._body = body
        self._callback = callback
        self._on_delivery = on_delivery
        self._sent_ms = time.time_ns() // 1_000_000

    def __repr__(self) -> str:
        return repr(self._callback if self._callback is not None else self._on_delivery)

    def __call__(self, result: DeliveryResult) -> None:
        if result.error is not None:
            self._shared.told += 1
        try:
            if self._on_delivery is not None:
                self._on_delivery(result)
        finally:
            if result.error is not None and self._callback is not None:
                self._api._error = result.error
                group, stream, address = self._names
                text = self._body.decode("utf-8", "surrogateescape")
                self._callback(group, stream, text, len(self._body), self._sent_ms, address)


def _body(msg: Any) -> bytes:
    if isinstance(msg, str):
        return _encoded(msg)
    if isinstance(msg, bytes):
        return msg
    if isinstance(msg, bytearray | memoryview):
        return bytes(msg)
    if msg is None:
        return b""
    raise TypeError(f"a message is text or bytes, not {type(msg).__name__!r}")


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise TypeError("the text has surrogates, which UTF-8 cannot hold; give bytes") from None


def _name(name: Any) -> str:
    if isinstance(name, str):
        return name
    if name is None:
        return ""
    if isinstance(name, bytes):
        return name.decode("utf-8", "surrogateescape")
    raise TypeError(f"a group or stream is named by text, not by {type(name).__name__!r}")


def _int32(value: Any, name: str) -> int:
    number = operator.index(value)
    if not _LEAST <= number <= _MOST:
        raise TypeError(f"{name} does not fit into 32 bits")
    return number


def _check_types(length: Any, *callbacks: Any) -> None:
    _int32(length, "msgLen")
    for callback in callbacks:
        if callback is not None and not callable(callback):
            raise TypeError(f"a callback is a function, not {type(callback).__name__!r}")


def _own_address() -> str:
    """Return the address from which this machine reaches others; 127.0.0.1 where it reaches none."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(_NOWHERE)
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"


def _begin_again() -> None:
    for api in list(_live):
        api._begin_again()


os.register_at_fork(after_in_child=_begin_again)
