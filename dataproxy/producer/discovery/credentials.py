"""What a question to the Manager carries to prove who asks: one header, from options, a file, or a function.

No text that is made here, no error and no ``repr`` shows a secret or a part of one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dataproxy.config.secret import Secret
from dataproxy.errors import ConfigError, DiscoveryError
from dataproxy.logs import logger
from dataproxy.producer.discovery.smallfile import file_state, read_small

if TYPE_CHECKING:
    from dataproxy.config.model import ProducerConfig
    from dataproxy.producer.discovery.smallfile import FileState

__all__ = ["Credentials", "ManagerAuth"]

_LOG: Final = logger("route")
_MAX_BYTES: Final = 64 << 10
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_VALUE: Final = re.compile(r"[\x20-\x7e\x80-\xff]{1,16384}")
_OTHERS: Final = 0o007  # permissions of those who are neither owner nor in the group
#: They say how a request and its answer are read, and who reads the request: with another value the Manager, or what
#: is on the way, goes wrong.
_OF_THE_REQUEST: Final = frozenset(
    ("accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect", "host",
     "keep-alive", "te", "trailer", "transfer-encoding", "upgrade")
)  # fmt: skip
_WAYS: Final = "manager_secret_id with manager_secret_key, manager_secret_file, manager_header_file, or manager_auth"

#: A function that returns the value of the header ``authorization``, or the name and the value of another header.
ManagerAuth = Callable[[], str | tuple[str, str]]


class _UnfitError(ValueError):
    """Say why a header cannot be sent, in words that hold no secret."""


class Credentials:
    """Give the header for each question: HTTP Basic from options, Basic or any header from a file, or from ``call``.

    A file is read again when it has changed; if its new content is of no use, the old one is used, and one warning
    names the file.  ``call`` runs for each question, on the thread that asks.

    The constructor reads the file: ConfigError if that has no credentials, or if several ways are given.  Any thread.
    """

    def __init__(self, config: ProducerConfig, call: ManagerAuth | None = None) -> None:
        self._call = call
        self._path = config.manager_secret_file or config.manager_header_file
        self._read = _basic_line if config.manager_secret_file else _header_line
        self._state: FileState | None = None
        self._header: tuple[str, str] | None = None
        self._id, self._key = "", Secret()
        given = [config.manager_secret_id, config.manager_secret_file, config.manager_header_file, call]
        if sum(map(bool, given)) > 1:
            raise ConfigError("credentials for the Manager are given in several ways", hint=f"give one of: {_WAYS}")
        if call is not None and not callable(call):
            raise ConfigError(
                f"manager_auth is of type {type(call).__name__}, not a function",
                hint="give a function that returns text",
            )
        if config.manager_secret_id:
            if ":" in config.manager_secret_id:
                raise ConfigError(
                    "manager_secret_id contains ':', which ends the id in an HTTP header", hint="check the id"
                )
            self._id, self._key = config.manager_secret_id, config.manager_secret_key
            if not self._key.asks:  # a function is called within manager_timeout, on the thread that asks
                self._key.reveal()  # a place that has no secret is an error of the start
        if self._path:
            self._open(self._path)

    def __repr__(self) -> str:
        return f"Credentials(from {self.origin})"

    @property
    def origin(self) -> str:
        """Return in words where the header comes from."""
        if self._path:
            return f"the file {self._path!r}"
        if self._call is not None:
            return "manager_auth"
        return "manager_secret_id" if self._id else "nowhere"

    @property
    def given(self) -> bool:
        """Tell whether questions carry credentials."""
        return bool(self._id) or self._header is not None or self._call is not None

    def header(self) -> dict[str, str]:
        """Return the header for the next question, empty without credentials.

        Raises DiscoveryError (MANAGER_SECRET) if ``call`` fails, or returns no header, or if the place where
        ``manager_secret_key`` is has none any more.
        """
        if self._id:
            try:
                return dict([_basic(self._id, self._key.reveal())])
            except ConfigError as error:
                raise DiscoveryError(error.message, code="MANAGER_SECRET", hint=error.hint) from None
        if self._call is not None:
            return dict([_called(self._call)])
        if self._path and file_state(self._path) != self._state:
            self._read_again(self._path)
        return {} if self._header is None else dict([self._header])

    def _open(self, path: str) -> None:
        self._state = file_state(path)
        try:
            self._header = self._read(read_small(path, _MAX_BYTES))
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"the file {path!r} with credentials for the Manager {_why(error)}",
                hint="write one line: id:key for manager_secret_file, name: value for manager_header_file",
            ) from None
        if os.stat(path).st_mode & _OTHERS:  # noqa: PTH116 - as in listfile
            _LOG.warning("the file %r holds a secret and every user may use it: chmod 600 would keep it private", path)

    def _read_again(self, path: str) -> None:
        self._state = file_state(path)  # first: what is written after this is read the next time
        try:
            self._header = self._read(read_small(path, _MAX_BYTES))
        except (OSError, ValueError) as error:
            _LOG.warning(
                "the file %r with credentials for the Manager %s; the previous ones are used", path, _why(error)
            )
        else:
            _LOG.info("the credentials for the Manager in %r have changed", path)


def _called(call: ManagerAuth) -> tuple[str, str]:
    """Return the header that a function of the application gives.

    The error is raised where no local variable holds a secret, since reports of errors may show variables.
    """
    kind = ""
    try:
        return _header_of(call())
    except _UnfitError as error:
        kind = f"what it returned {error}"
    except Exception as error:  # noqa: BLE001 - of the application; its text may hold a secret
        kind = "ValueError" if isinstance(error, ValueError) else type(error).__name__
    raise DiscoveryError(
        f"manager_auth gave no header for the Manager: {kind}",
        code="MANAGER_SECRET",
        hint="it returns the text of the header 'authorization', or a pair of a header's name and value",
    )


def _header_of(found: str | tuple[str, str]) -> tuple[str, str]:
    name, value = ("authorization", found) if isinstance(found, str) else found
    return _checked(name, value)


def _why(error: OSError | ValueError) -> str:
    return f"cannot be read: {error.strerror or error}" if isinstance(error, OSError) else str(error)


def _checked(name: object, value: object) -> tuple[str, str]:
    """Return a header's name and value; _UnfitError, without the value, if they cannot be sent."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _UnfitError("names no header")
    if name.lower() in _OF_THE_REQUEST:
        raise _UnfitError(f"names {name.lower()}, which the request itself has")
    if not isinstance(value, str) or not _VALUE.fullmatch(value) or not value.strip():
        raise _UnfitError("has no value that a header can carry")
    return name.lower(), value.strip()


def _basic(secret_id: str, secret_key: str) -> tuple[str, str]:
    import base64

    pair = f"{secret_id}:{secret_key}".encode()
    return "authorization", "Basic " + base64.b64encode(pair).decode("ascii")


def _line(content: bytes) -> str:
    try:
        lines = [line.strip() for line in content.decode("utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
    if len(lines) != 1:
        raise ValueError(f"has {len(lines)} lines with text, not one")
    return lines[0]


def _basic_line(content: bytes) -> tuple[str, str]:
    secret_id, colon, secret_key = _line(content).partition(":")
    if not colon or not secret_id or not secret_key or ":" in secret_key:
        raise ValueError("is not of the form id:key")
    return _basic(secret_id, secret_key)


def _header_line(content: bytes) -> tuple[str, str]:
    name, colon, value = _line(content).partition(":")
    if not colon:
        raise ValueError("is not of the form name: value")
    return _checked(name.strip(), value.strip())
