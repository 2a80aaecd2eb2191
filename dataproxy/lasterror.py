"""The last error of a connection, in words."""

from __future__ import annotations

import errno
import os
from typing import Final, NamedTuple

from dataproxy.numbers import (
    CE_CONNECT_FAILED,
    CE_DEAF,
    CE_DRAINED,
    CE_FRAMING,
    CE_LOST,
    CE_PROTOCOL,
    CE_SILENT,
    FP_HTTP,
    FP_TLS,
)
from dataproxy.shown import printable

__all__ = ["NOT_FOUND", "LastError", "cause_of", "last_error", "packed_error", "why"]

#: Not an event of a connection: no address of a proxy is known; the text says why.
NOT_FOUND: Final = 100

_CAUSES: Final = {
    CE_CONNECT_FAILED: "CONNECT_FAILED",
    CE_LOST: "CONNECTION_LOST",
    CE_SILENT: "ACK_TIMEOUT",
    CE_PROTOCOL: "REMOTE_PROTOCOL",
    CE_DRAINED: "DRAINED",
    CE_DEAF: "ACK_TIMEOUT",
    CE_FRAMING: "REMOTE_PROTOCOL",
    NOT_FOUND: "DISCOVERY",
}
_FOREIGN: Final = {
    FP_HTTP: "it answered in HTTP: this is the port of a web server (if it is a Manager, its target begins with http://)",
    FP_TLS: "it answered in TLS: connections to a DataProxy use no TLS",
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
    if kind in (CE_CONNECT_FAILED, CE_LOST):
        if detail:
            text = f"{errno.errorcode.get(detail, str(detail))}, {os.strerror(detail)}"
        else:
            text = "connect_timeout passed" if kind == CE_CONNECT_FAILED else "closed by the proxy"
        if kind == CE_LOST and said:
            text += (
                f" while {printable(said)} was being sent: if this repeats, the proxy's limit of a frame"
                " (max-msg-length) is lower; lower max_frame_bytes and batch_bytes"
            )
        return text
    if kind == CE_PROTOCOL:
        return _FOREIGN.get(detail, "it sent bytes that are not a reply")
    texts = {
        CE_SILENT: "no answer within ack_timeout",
        CE_DRAINED: f"it accepts no data (code {detail})",
        CE_DEAF: "it answered no heartbeat",
        CE_FRAMING: f"it could not find frames in the data it received (code {detail})",
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
