"""A connection to one address of a proxy: TCP, then TLS where it is asked for, each failure in words."""

from __future__ import annotations

import errno
import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from dataproxy.doctor.conversation import Closed, Conversation, Foreign
from dataproxy.doctor.secure import NOT_TLS, shake_hands, trouble_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataproxy.config import ProducerConfig
    from dataproxy.doctor.findings import ProxyReport, TlsReport
    from dataproxy.doctor.names import Address

__all__ = ["Failed", "Plan", "SpeaksPlain", "opened"]

_NO_TLS: Final = (
    "the port does not speak TLS, or the server refuses this machine before it has said who it is",
    "check whether the port is one for TLS: openssl s_client -connect HOST:PORT",
)
_NO_NAME: Final = (
    "no certificate can be for this name, so that it cannot be asked for",
    "correct the host of the target, or tls_server_name",
)
_SHOWN: Final = 80  # characters of a name
#: Of the time of a step: how long a TLS handshake may take, and then a try without TLS.  By default two seconds in all.
_HANDSHAKE: Final = 0.3
_PLAIN: Final = 0.1
_SLOWER: Final = 8  # a handshake may take this many times as long as the connect did: the network may be slow
_UNROUTED: Final = frozenset((errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN))
_CUT: Final = frozenset((errno.ECONNRESET, errno.ENOTCONN))
_DENIED: Final = frozenset((errno.EACCES, errno.EPERM))
_NOTHING_LEFT: Final = frozenset(
    (errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM, errno.EAGAIN)
)


@dataclass(frozen=True, slots=True)
class Plan:
    """Say what is done with each address; ``timeout`` is the longest time of one step, in seconds.

    ``body``: the marked message, sent if ``send`` is set.  ``frame_bytes``: the frame to try, 0 for none.  ``tls``:
    None for plain TCP.
    """

    config: ProducerConfig
    timeout: float
    stream_id: str = ""
    send: bool = False
    body: bytes = b""
    frame_bytes: int = 0
    tls: ssl.SSLContext | None = None


#: Tells whether a connection without TLS has an answer to a heartbeat, by a moment of ``time.monotonic``.
SpeaksPlain: TypeAlias = "Callable[[Conversation, Plan, float], bool]"


class Failed(Exception):  # noqa: N818 - an outcome
    """A step did not succeed: the report's state, the text, and what only this failure means."""

    def __init__(self, state: str, text: str, means: str = "", advice: str = "") -> None:
        super().__init__(state, text)
        self.state, self.text, self.means, self.advice = state, text, means, advice


def opened(address: Address, plan: Plan, report: ProxyReport, speaks_plain: SpeaksPlain) -> Conversation:
    """Connect, with TLS if the plan has it.  Raises Failed.

    If nothing answers a TLS handshake, ``speaks_plain`` asks on a connection without.
    """
    started = time.monotonic()
    end = started + plan.timeout
    try:
        talk = Conversation(address.family, address.where, end, str(address.endpoint))
    except OSError as error:
        raise _not_connected(error, plan) from None
    try:
        if _is_itself(talk, plan):
            raise Failed("refused", "nothing listens there (the kernel had connected the socket with itself)")
        report.connect_seconds = taken = time.monotonic() - started
        if plan.tls is not None:
            report.tls = _secured(talk, address, plan, plan.tls, taken, speaks_plain)
    except BaseException:
        talk.close()
        raise
    return talk


def _is_itself(talk: Conversation, plan: Plan) -> bool:
    try:
        return talk.is_itself()
    except OSError as error:
        raise _not_connected(error, plan) from None


def _not_connected(error: OSError, plan: Plan) -> Failed:
    if isinstance(error, TimeoutError):
        return Failed("connect_timeout", f"no answer to the connection attempt within {plan.timeout:g} s")
    words = error.strerror or str(error)
    if isinstance(error, ConnectionRefusedError):
        return Failed("refused", words)
    if error.errno in _CUT:
        return Failed("reset", f"it cut the connection as soon as it was made ({words})")
    for numbers, state in ((_UNROUTED, "unreachable"), (_DENIED, "denied"), (_NOTHING_LEFT, "no_resources")):
        if error.errno in numbers:
            return Failed(state, words)
    return Failed("connect_failed", words)


def _secured(
    talk: Conversation, address: Address, plan: Plan, context: ssl.SSLContext, connect_seconds: float,
    speaks_plain: SpeaksPlain,
) -> TlsReport:  # fmt: skip
    limit = min(plan.timeout, max(_HANDSHAKE * plan.timeout, _SLOWER * connect_seconds))
    host = plan.config.tls_server_name or address.endpoint.host
    try:
        return shake_hands(talk, context, host, time.monotonic() + limit)
    except ssl.SSLError as error:
        trouble = trouble_of(error)
    except ValueError:
        raise Failed("tls_failed", f"{host[:_SHOWN]!r} is no name of a server", *_NO_NAME) from None
    except TimeoutError:
        if _is_plain(address, plan, speaks_plain):
            raise Failed("tls_failed", *NOT_TLS) from None
        raise Failed("tls_failed", f"no answer to the TLS handshake within {limit:g} s", *_NO_TLS) from None
    except OSError as error:
        raise Failed(
            "tls_failed", f"it ended the connection during the TLS handshake ({error.strerror})", *_NO_TLS
        ) from None
    raise Failed("tls_failed", *trouble)


def _is_plain(address: Address, plan: Plan, speaks_plain: SpeaksPlain) -> bool:
    """Tell whether something is answered there without TLS: a proxy takes a handshake for the length of a frame."""
    end = time.monotonic() + _PLAIN * plan.timeout
    try:
        with Conversation(address.family, address.where, end, str(address.endpoint)) as talk:
            return speaks_plain(talk, plan, end)
    except (OSError, Closed, Foreign):
        return False
