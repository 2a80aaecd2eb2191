"""TLS: the handshake with a proxy, what it agreed on, and its failures in words."""

from __future__ import annotations

import re
import ssl
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from dataproxy.doctor.findings import TlsReport

if TYPE_CHECKING:
    from dataproxy.doctor.conversation import Conversation

__all__ = ["NOT_TLS", "Trouble", "shake_hands", "trouble_of"]

_DAY: Final = 86400.0
#: Of a port without TLS: what was found, what it means, what to do.
NOT_TLS: Final = (
    "the port does not speak TLS",
    "the target asks for TLS, and the server answers without it",
    "use tcp:// (without tls=true) for this port, or give the port of the TLS proxy in front of it",
)
#: Reason of OpenSSL -> what was found, what it means, what to do.
_REASONS: Final = (
    ("WRONG_VERSION_NUMBER|HTTP_REQUEST|RECORD_LAYER_FAILURE|PACKET_LENGTH_TOO_LONG", *NOT_TLS),
    (
        "UNSUPPORTED_PROTOCOL|PROTOCOL_VERSION|NO_PROTOCOLS_AVAILABLE",
        "no common version of TLS",
        "the server takes only versions that this machine refuses; TLS 1.2 is the least",
        "let the server speak TLS 1.2 or 1.3",
    ),
    (
        "CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE|UNKNOWN_CA|BAD_CERTIFICATE|ACCESS_DENIED",
        "the server refuses this client's certificate, or its lack of one",
        "the server wants a client certificate that its authority has signed",
        "give tls_certificate and tls_key, and check that the server trusts the authority that signed the certificate",
    ),
)
#: Result of the verification (X509_V_ERR_...) -> the same.
_UNVERIFIED: Final = {
    10: (
        "the certificate has expired",
        "nobody can tell any more whose it is",
        "have the server's certificate renewed",
    ),
    9: (
        "the certificate is not valid yet",
        "its time begins later than this machine's clock",
        "check the clock of this machine, then the certificate",
    ),
    62: (
        "the certificate is for another name",
        "the target's host is not among the names in the certificate",
        "use a name that the certificate has, give it as tls_server_name, or have one made for this one",
    ),
    64: (
        "the certificate is for another address",
        "the target's address is not among those in the certificate",
        "use a name that the certificate has, or have it made for this address",
    ),
}
_UNKNOWN_AUTHORITY: Final = (
    "nobody that is trusted here has signed the certificate",
    "its authority is a private one, or the server does not send the certificates between",
    "give the authority's certificate as tls_ca",
)


class Trouble(NamedTuple):
    """Say why a handshake failed: what was found, what it means, what to do."""

    text: str
    means: str
    advice: str


def shake_hands(talk: Conversation, context: ssl.SSLContext, host: str, end: float) -> TlsReport:
    """Speak TLS on a connection and return what was agreed on.  Raises ssl.SSLError, OSError, TimeoutError."""
    secured = talk.secure(context, host, end)
    cipher = secured.cipher()
    report = TlsReport(secured.version() or "", cipher[0] if cipher else "")
    certificate = secured.getpeercert() or {}
    subject = certificate.get("subject", ())
    report.subject = ", ".join(f"{key}={value}" for part in subject for key, value in part)  # type: ignore[str-unpack]
    until = certificate.get("notAfter")
    if isinstance(until, str):
        report.days_left = (ssl.cert_time_to_seconds(until) - time.time()) / _DAY
    return report


def trouble_of(error: ssl.SSLError) -> Trouble:
    """Return a failed handshake in words."""
    said = getattr(error, "reason", None) or str(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        text, means, advice = _UNVERIFIED.get(error.verify_code, _UNKNOWN_AUTHORITY)
        return Trouble(f"{text} ({error.verify_message})", means, advice)
    for reasons, text, means, advice in _REASONS:
        if re.search(reasons, said):
            return Trouble(f"{text} ({said})", means, advice)
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return Trouble(
            "it closed the connection during the TLS handshake",
            "the port does not speak TLS, or the server refuses this machine before it has said who it is",
            "check whether the port is one for TLS: openssl s_client -connect HOST:PORT",
        )
    return Trouble(f"the TLS handshake failed ({said})", "the two sides do not agree", "see the server's log")
