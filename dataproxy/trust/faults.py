"""Why a handshake of Python's ``ssl`` failed: the code, and what to do."""

from __future__ import annotations

import ssl
from typing import Final

from dataproxy.codes import LOCAL_CODES
from dataproxy.shown import printable

__all__ = ["fault_of"]

_EXPIRED, _EARLY, _WRONG_HOSTS = 10, 9, (62, 64)  # numbers of X.509
_BY_REASON: Final = {
    "UNSUPPORTED_PROTOCOL": "TLS_VERSION",
    "TLSV1_ALERT_PROTOCOL_VERSION": "TLS_VERSION",
    "NO_SHARED_CIPHER": "TLS_VERSION",
    "NO_PROTOCOLS_AVAILABLE": "TLS_VERSION",
    "WRONG_VERSION_NUMBER": "TLS_PLAIN",
    "HTTP_REQUEST": "TLS_PLAIN",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "TLS_CLIENT_CERTIFICATE",
    "SSLV3_ALERT_BAD_CERTIFICATE": "TLS_CLIENT_CERTIFICATE",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "TLS_CLIENT_CERTIFICATE",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "TLS_CLIENT_CERTIFICATE",
    "TLSV1_ALERT_UNKNOWN_CA": "TLS_CLIENT_CERTIFICATE",
    "TLSV1_ALERT_ACCESS_DENIED": "TLS_CLIENT_CERTIFICATE",
}


def fault_of(error: BaseException, authority_option: str, plain: str) -> tuple[str, str, str]:
    """Return code, reason and hint for an error of a library around one of ``ssl``.

    ``authority_option`` has the authorities of this connection; ``plain`` is the scheme without TLS.
    """
    inner = _inner(error)
    if inner is None:
        return "TLS", printable(str(error)), ""
    code = _BY_REASON.get(inner.reason or "", "TLS")
    hint = LOCAL_CODES[code].hint if code != "TLS" else ""
    if isinstance(inner, ssl.SSLEOFError):  # with TLS 1.3 a server may be gone before its alert was read
        hint = "it closed the connection: it may want a client certificate that it knows, or speak another protocol"
    reason = inner.reason or str(inner)
    if isinstance(inner, ssl.SSLCertVerificationError):
        number = inner.verify_code
        reason = inner.verify_message
        code = "TLS_UNKNOWN_CA"
        if number in (_EXPIRED, _EARLY):
            code = "TLS_EXPIRED"
        elif number in _WRONG_HOSTS:
            code = "TLS_WRONG_HOST"
        hint = LOCAL_CODES[code].hint
    if code == "TLS_UNKNOWN_CA":
        hint = f"give the authority's certificate as {authority_option}, or by the variable SSL_CERT_FILE"
    elif code == "TLS_WRONG_HOST":
        hint = "name the host as its certificate does"
    elif code == "TLS_PLAIN":
        hint = f"write {plain} in place of https://, or check the port"
    return code, printable(reason), hint


def _inner(error: BaseException | None) -> ssl.SSLError | None:
    """Return the error of ``ssl`` behind an error, if there is one."""
    for _ in range(5):
        if error is None or isinstance(error, ssl.SSLError):
            return error
        first = error.args[0] if error.args else None
        error = first if isinstance(first, BaseException) else error.__cause__ or error.__context__
    return None
