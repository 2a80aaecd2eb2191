"""One address of a proxy, step by step: connection, TLS, heartbeat, frame limit, marked message."""

from __future__ import annotations

import errno
import secrets
import socket
import ssl
import time
from typing import TYPE_CHECKING, Final, Protocol

from dataproxy.doctor import frames, requests
from dataproxy.doctor.connecting import Failed, Plan, opened
from dataproxy.doctor.conversation import Closed, Conversation, Foreign, start_of
from dataproxy.doctor.findings import MessageReport, ProxyReport
from dataproxy.doctor.secure import trouble_of

if TYPE_CHECKING:
    from dataproxy.doctor.names import Address

__all__ = ["Plan", "look_at"]

_CLOSED_TLS: Final = (
    "the server does not take this client's certificate, or its lack of one, or has no DataProxy behind it",
    "see the log of the TLS server in front of the proxies",
)
#: Sizes that are tried below ``max_frame_bytes``: servers have 64 KiB in their code and 512 KiB as shipped.
_SIZES: Final = (512 << 10, 256 << 10, 128 << 10, 64 << 10, 32 << 10, 16 << 10, 4 << 10)


class Steps(Protocol):
    """Say and understand what a protocol has for each step.  ``end`` is a moment of ``time.monotonic``.

    All of them may raise Closed, Foreign, TimeoutError and other OSError; ``beat`` raises Failed too.
    """

    def speaks_plain(self, talk: Conversation, plan: Plan, end: float) -> bool:
        """Tell whether a heartbeat is answered on a connection without TLS."""

    def beat(self, talk: Conversation, plan: Plan, report: ProxyReport) -> None:
        """Send a heartbeat, wait for its answer, and put into the report what it says."""

    def message(self, talk: Conversation, plan: Plan, body: bytes, mark: str, sequence: int) -> bytes:
        """Return what carries the marked message."""

    def read_ack(self, talk: Conversation, end: float, sequence: int, report: MessageReport) -> None:
        """Wait for the answer to it, and put into the report what it says."""

    def takes(self, talk: Conversation, size: int, end: float) -> bool:
        """Tell whether a heartbeat of ``size`` bytes is answered."""


def look_at(address: Address, plan: Plan, report: ProxyReport) -> None:
    """Do all steps and fill in the report, also where a step fails.  Blocks for a few times ``plan.timeout``."""
    steps: Steps = requests if plan.config.protocol == "http" else frames
    try:
        with opened(address, plan, report, steps.speaks_plain) as talk:
            _beat(steps, talk, plan, report)
            report.state, report.text = "ok", ""
            if plan.send and address.used:
                report.message = _message(steps, address, talk, plan)
        if plan.frame_bytes:
            _try_sizes(steps, address, plan, report)
    except Failed as failed:
        report.state, report.text = failed.state, failed.text
        report.means, report.advice = failed.means, failed.advice


def _beat(steps: Steps, talk: Conversation, plan: Plan, report: ProxyReport) -> None:
    """Exchange a heartbeat.  Raises Failed."""
    try:
        steps.beat(talk, plan, report)
    except TimeoutError:
        raise Failed("silent", f"no answer to a heartbeat within {plan.timeout:g} s{_partial(talk)}") from None
    except Foreign as error:
        raise _foreign(error) from None
    except Closed as error:
        cut = f" (in the middle of one, after {len(error.partial)} bytes)" if error.partial else ""
        raise Failed("closed", f"it closed the connection without an answer to a heartbeat{cut}") from None
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
        raise Failed("closed", "it closed the connection behind the TLS handshake", *_CLOSED_TLS) from None
    except ssl.SSLError as error:
        raise Failed("tls_failed", *trouble_of(error)) from None
    except OSError as error:
        raise Failed("reset", f"it ended the connection ({error.strerror or error})") from None


def _partial(talk: Conversation) -> str:
    return f" ({len(talk.came)} bytes of one came)" if talk.came else ""


def _foreign(error: Foreign) -> Failed:
    texts = {"http": "it answers in HTTP", "tls": "it answers in TLS", "banner": "another program answers"}
    text = texts.get(error.kind, "it answers with bytes that are no answer of a DataProxy")
    return Failed(error.kind, text if error.kind == "tls" else f"{text}: {start_of(error.data)}")


def _message(steps: Steps, address: Address, talk: Conversation, plan: Plan) -> MessageReport:
    """Send the marked message, on a new connection where the protocol wants one for each request.  Raises Failed."""
    if not talk.over:
        return _send(steps, talk, plan)
    with opened(address, plan, ProxyReport("", "", "", 0), steps.speaks_plain) as again:
        return _send(steps, again, plan)


def _send(steps: Steps, talk: Conversation, plan: Plan) -> MessageReport:
    """Send the marked message and wait for its answer."""
    mark, sequence = secrets.token_hex(8), secrets.randbits(31) + 1
    message = steps.message(talk, plan, plan.body or _default_body(mark), mark, sequence)
    report = MessageReport(mark, "unanswered", text=f"no answer within {plan.timeout:g} s")
    started = time.monotonic()
    try:
        end = started + plan.timeout
        talk.send(message, end)
        steps.read_ack(talk, end, sequence, report)
    except TimeoutError:
        report.text += _partial(talk)
    except Foreign as error:
        said = f"its answer cannot be read: {error.wrong}" if error.wrong else ""
        report.state, report.text = "malformed", said or f"bytes that are no answer: {start_of(error.data)}"
    except (Closed, OSError) as error:
        words = getattr(error, "strerror", None) or "closed by the proxy"
        report.state, report.text = "closed", f"{words} after a frame of {len(message):,} bytes"
    report.seconds = time.monotonic() - started
    return report


def _default_body(mark: str) -> bytes:
    host = socket.gethostname().encode("ascii", "backslashreplace").decode()
    return f"dataproxy doctor: test message {mark} from {host}, please ignore it".encode()


def _try_sizes(steps: Steps, address: Address, plan: Plan, report: ProxyReport) -> None:
    """Find a size of frames that the server takes, by heartbeats: what is too large makes it close the connection."""
    for size in (plan.frame_bytes, *(size for size in _SIZES if size < plan.frame_bytes)):
        taken = _takes(steps, address, plan, size)
        if taken is None:
            report.frame_unanswered = size
            return
        if taken:
            report.frame_taken = size
            return
        report.frame_refused = size


def _takes(steps: Steps, address: Address, plan: Plan, size: int) -> bool | None:
    """Tell whether a heartbeat of ``size`` bytes is answered; None if that cannot be told."""
    scratch = ProxyReport("", "", "", 0)
    try:
        with opened(address, plan, scratch, steps.speaks_plain) as talk:
            return steps.takes(talk, size, time.monotonic() + plan.timeout)
    except (Failed, TimeoutError, Foreign):
        return None
    except (Closed, ConnectionError):
        return False
    except OSError as error:
        return False if error.errno == errno.EPIPE else None
