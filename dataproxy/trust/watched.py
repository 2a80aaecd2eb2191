"""Settings that follow changed files: new connections use them, and a change that is broken is told once."""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from weakref import WeakMethod

from dataproxy._core.net.tlscontext import TlsContexts
from dataproxy.errors import ConfigError
from dataproxy.logs import Repeats, left_out, logger
from dataproxy.trust.context import ssl_context

if TYPE_CHECKING:
    from dataproxy.trust.files import TlsFiles

__all__ = ["Trust"]

_LOG: Final = logger("tls")
#: Seconds between two looks at the files.  A change is used when two looks have seen the same files, so that a
#: certificate is not read before its key is there: after two such times at most.
_LOOK_SECONDS: Final = 1.0


class Trust:
    """Hold the settings of one kind of connection, for the core (`contexts`) and for Python (`context`).

    ``core``: whether the core makes such connections.  Raises ConfigError for files that cannot be used; later on, such
    files are told by one warning, and the settings before stay.
    """

    def __init__(self, files: TlsFiles, *, core: bool) -> None:
        self.files = files
        self._lock = threading.Lock()
        self._loaded = files.signature()
        self._seen = self._loaded
        self._context = ssl_context(files)
        self.contexts: TlsContexts | None = _contexts(files) if core else None
        self._stop = threading.Event()

    def __repr__(self) -> str:
        return f"Trust({self.files.certificate or self.files.authorities or 'system'!r})"

    @property
    def context(self) -> ssl.SSLContext:
        """Return the newest settings that could be loaded.  Any thread."""
        return self._context

    def again(self) -> Trust:
        """Return an object of its own for a forked child, with the settings of this moment.  Raises ConfigError."""
        return Trust(self.files, core=self.contexts is not None)

    def look(self) -> bool:
        """Load files that have changed and were the same at two calls; tell whether they were loaded.  Any thread."""
        with self._lock:
            now = self.files.signature()
            settled, self._seen = now == self._seen, now
            if now == self._loaded or not settled:
                return False
            before, self._loaded = self._loaded, now  # also after files that are no good, which are told once
            try:
                context = ssl_context(self.files)
                if self.contexts is not None:
                    _load(self.contexts, self.files)
            except ConfigError as error:
                _LOG.warning("changed TLS files cannot be used, new connections use the ones before: %s", error)
                return False
            except BaseException:
                self._loaded = before  # the next look tries again
                raise
            self._context = context
        _LOG.info("TLS files were read again: %s", ", ".join(filter(None, _names(self.files))))
        return True

    def follow(self, start: Callable[[str, Callable[[], None]], object]) -> None:
        """Look at the files again and again on a thread that ``start(name, body)`` starts; nothing without files."""
        if any(_names(self.files)):
            start("dataproxy-tls", _Follower(self.look, self._stop).run)

    def stop(self) -> None:
        """End the thread soon."""
        self._stop.set()


class _Follower:
    """Look at files as long as their Trust exists."""

    def __init__(self, look: Callable[[], bool], stop: threading.Event) -> None:
        self._look = WeakMethod(look)
        self._stop = stop
        self._repeats = Repeats()

    def run(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            look = self._look()
            if look is None:
                return
            try:
                look()
            except Exception as error:  # noqa: BLE001 - whatever it is, the next look may fare better
                again = self._repeats.count(type(error).__name__)
                if again is not None:
                    text = "TLS files could not be looked at, and are again in a second" + left_out(again)
                    _LOG.log(logging.ERROR, text, exc_info=True)
            del look  # during the wait nothing here keeps the Trust


def _names(files: TlsFiles) -> tuple[str, str, str]:
    return files.certificate, files.key, files.authorities


def _contexts(files: TlsFiles) -> TlsContexts:
    try:
        contexts = TlsContexts(server=files.server)
    except OSError as error:
        raise ConfigError(str(error), code="TLS_MISSING", hint="use a Python whose ssl module loads libssl") from None
    _load(contexts, files)
    return contexts


def _load(contexts: TlsContexts, files: TlsFiles) -> None:
    """Give the core the files that ``ssl_context`` has just accepted.  Raises ConfigError."""
    try:
        contexts.load(
            certificate=files.certificate,
            key=files.key_file,
            password=files.password.reveal().encode() if files.certificate and files.encrypted() else b"",
            authorities=files.authorities,
            folder=files.folder,
            verify=files.chain,
            check_host=files.host,
            newest=files.newest,
        )
    except OSError as error:
        raise files.problem(f"TLS files cannot be used: {error}", "check that the files are whole") from None
