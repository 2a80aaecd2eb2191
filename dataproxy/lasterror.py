"""The last error of a connection, in words."""

from __future__ import annotations

import errno
import os
from typing import Final, NamedTuple

from dataproxy.shown import printable

__all__ = ["NOT_FOUND", "LastError", "cause_of", "last_error", "packed_error", "why"]

# Numbers of conn/connection.pxd's LinkEvent.
_CONNECT_FAILED, _LOST, _SILENT, _PROTOCOL, _DRAINED, _DEAF, _FRAMING = 2, 3, 4, 5, 7, 9, 10
#: Not an event of a connection: no address of a proxy is known; the text says why.
NOT_FOUND: Final = 100
_HTTP, _TLS = 1, 2  # details of _PROTOCOL: what the bytes look like

_CAUSES: Final = {
    _CONNECT_FAILED: "CONNECT_FAILED",
    _LOST: "CONNECTION_LOST",
    _SILENT: "ACK_TIMEOUT",
    _PROTOCOL: "REMOTE_PROTOCOL",
    _DRAINED: "DRAINED",
    _DEAF: "ACK_TIMEOUT",
    _FRAMING: "REMOTE_PROTOCOL",
    NOT_FOUND: "DISCOVERY",
}
_FOREIGN: Final = {
    _HTTP: "it answered in HTTP: this is the port of a web server (if it is a Manager, its target begins with http://)",
    _TLS: "it answered in TLS: connections to a DataProxy use no TLS",
}


class LastError(NamedTuple):
    """Describe the last failure of a connection of a producer.

    ``address``: the proxy's ``host:port``, empty where no proxy is known.  ``code``: a word, such as CONNECT_FAILED
    (see docs/errors.md).  ``reason``: one line of text.  ``seconds``: how long ago that was.  ``connected``: whether
    the producer has reached that proxy since.
    """

    address: str
    code: str
    reason: str
    seconds: float
    connected: bool

    def __str__(self) -> str:
        """Return address and reason."""
        return f"{self.address}: {self.reason}" if self.address else self.reason


def why(kind: int, detail: int, said: str) -> str:
    """Return in words why a connection failed; ``detail`` and ``said`` are those of the event ``kind``."""
    if kind in (_CONNECT_FAILED, _LOST):
        if detail:
            text = f"{errno.errorcode.get(detail, str(detail))}, {os.strerror(detail)}"
        else:
            text = "connect_timeout passed" if kind == _CONNECT_FAILED else "closed by the proxy"
        if kind == _LOST and said:
            text += (
                f" while {printable(said)} was being sent: if this repeats, the proxy's limit of a frame"
                " (max-msg-length) is lower; lower max_frame_bytes and batch_bytes"
            )
        return text
    if kind == _PROTOCOL:
        return _FOREIGN.get(detail, "it sent bytes that are not a reply")
    texts = {
        _SILENT: "no answer within ack_timeout",
        _DRAINED: f"it accepts no data (code {detail})",
        _DEAF: "it answered no heartbeat",
        _FRAMING: f"it could not find frames in the data it received (code {detail})",
    }
    return texts.get(kind) or printable(said) or str(detail)


def last_error(found: tuple[int, int, str, str, float, bool] | None) -> LastError | None:
    """Return the LastError for the core's values: kind, detail, address, text, age in seconds, connected since."""
    if found is None:
        return None
    kind, detail, address, said, age, connected = found
    return LastError(address, _CAUSES.get(kind, "TRANSPORT"), why(kind, detail, said), age, connected)


def _unpacked(text: str) -> tuple[int, int, str, str]:
    kind, detail, address, said = text.split("\x1f", 3)
    return int(kind), int(detail), address, said


def packed_error(text: str) -> str:
    """Return in words the error that the core has packed into the text of a result; empty without one."""
    if text.count("\x1f") < 3:
        return ""
    kind, detail, address, said = _unpacked(text)
    words = why(kind, detail, said)
    return f"{address}: {words}" if address else words


def cause_of(text: str) -> str:
    """Return the code of the error that the core has packed into the text of a result; empty without one."""
    return _CAUSES.get(_unpacked(text)[0], "") if text.count("\x1f") >= 3 else ""
