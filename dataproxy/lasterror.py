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
    CE_HANDSHAKE,
    CE_LOST,
    CE_PROTOCOL,
    CE_SILENT,
    FP_HTTP,
    FP_TLS,
    TLS_ALERT,
    TLS_CLIENT_NEEDED,
    TLS_CLIENT_REFUSED,
    TLS_CLOSED,
    TLS_EARLY,
    TLS_EXPIRED,
    TLS_FAILED,
    TLS_FIRST,
    TLS_PLAIN,
    TLS_UNANSWERED,
    TLS_UNFINISHED,
    TLS_UNKNOWN_CA,
    TLS_UNTRUSTED,
    TLS_VERSION,
    TLS_WRONG_HOST,
)
from dataproxy.shown import printable

__all__ = ["NOT_FOUND", "LastError", "cause", "cause_of", "last_error", "packed_error", "tells_of_size", "why"]

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
    FP_TLS: "it answered in TLS, and this connection has none: write tls:// (for TubeMQ tubemqs://) in target, or set"
    " tls=True",
}
#: Said by the core about a lost connection over which nothing was ever received (conn/pool).
_UNHEARD: Final = "nothing was heard"
_TLS_SPAN: Final = 4096  # numbers of one TlsFault
#: Of each fault of TLS: code, and what it is in words.
_TLS: Final = {
    TLS_EXPIRED: ("TLS_EXPIRED", "its certificate has expired"),
    TLS_EARLY: ("TLS_EXPIRED", "its certificate is not valid yet; check the clock of this machine"),
    TLS_WRONG_HOST: ("TLS_WRONG_HOST", "its certificate is for another host"),
    TLS_UNKNOWN_CA: ("TLS_UNKNOWN_CA", "no known authority has signed its certificate"),
    TLS_UNTRUSTED: ("TLS_UNKNOWN_CA", "its certificate was refused (X.509 verification code {})"),
    TLS_VERSION: ("TLS_VERSION", "there is no version of TLS, or no cipher, that both sides accept"),
    TLS_CLIENT_NEEDED: ("TLS_CLIENT_CERTIFICATE", "it wants a client certificate, and none was given"),
    TLS_CLIENT_REFUSED: ("TLS_CLIENT_CERTIFICATE", "it refused the client certificate (alert {})"),
    TLS_PLAIN: ("TLS_PLAIN", "it does not speak TLS: write tcp:// (for TubeMQ tubemq://) in target, or check the port"),
    TLS_CLOSED: (
        "TLS_PLAIN",
        "it closed the connection in the handshake: if it does not speak TLS, write tcp:// in target",
    ),
    TLS_UNANSWERED: (
        "TLS_PLAIN",
        "it did not answer the handshake within connect_timeout: if it does not speak TLS, write tcp:// in target",
    ),
    TLS_UNFINISHED: ("TLS", "it began to answer the handshake, and did not end it within connect_timeout"),
    TLS_ALERT: ("TLS", "it ended the handshake with alert {}"),
    TLS_FAILED: ("TLS", "TLS failed (OpenSSL's reason {})"),
}

#: Of a handshake that goes on: what is missing.
_SHAKING: Final = {
    TLS_UNANSWERED: "it has not answered the TLS handshake yet: if it does not speak TLS, write tcp:// in target",
    TLS_UNFINISHED: "it has begun to answer the TLS handshake, and has not ended it yet",
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


def cause(kind: int, detail: int) -> str:
    """Return the code of a failure of a connection; empty for an event that is none."""
    if kind == CE_PROTOCOL and detail == FP_TLS:
        return "TLS_EXPECTED"
    if kind in (CE_CONNECT_FAILED, CE_LOST, CE_HANDSHAKE) and detail > TLS_FIRST:
        return _TLS[detail - detail % _TLS_SPAN][0]
    return _CAUSES.get(kind, "")


def why(kind: int, detail: int, said: str) -> str:
    """Return in words why a connection failed; ``detail`` and ``said`` are those of the event ``kind``."""
    if kind in (CE_CONNECT_FAILED, CE_LOST):
        if detail > TLS_FIRST:
            text = _TLS[detail - detail % _TLS_SPAN][1].format(detail % _TLS_SPAN)
        elif detail:
            text = f"{errno.errorcode.get(detail, str(detail))}, {os.strerror(detail)}"
        else:
            text = "connect_timeout passed" if kind == CE_CONNECT_FAILED else "closed by the proxy"
        if kind == CE_LOST and said == _UNHEARD:
            if detail < TLS_FIRST:
                text += " before it sent anything: if it speaks TLS, write tls:// (for TubeMQ tubemqs://) in target"
        elif kind == CE_LOST and said:
            text += (
                f" while {printable(said)} was being sent: if this repeats, the proxy's limit of a frame"
                " (max-msg-length) is lower; lower max_frame_bytes and batch_bytes"
            )
        return text
    if kind == CE_HANDSHAKE:
        return _SHAKING[detail]
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
    return LastError(address, cause(kind, detail) or "TRANSPORT", why(kind, detail, said), age, connected)


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


def tells_of_size(text: str) -> bool:
    """Tell whether the packed error is that a proxy closed the connection at a large frame."""
    if text.count("\x1f") < 3:
        return False
    kind, _, _, said = _unpacked(text)
    return kind == CE_LOST and said not in ("", _UNHEARD)


def cause_of(text: str) -> str:
    """Return the code of the error that the core has packed into the text of a result; empty without one."""
    return cause(*_unpacked(text)[:2]) if text.count("\x1f") >= 3 else ""
