"""What the states of proxies and messages mean, and what to do about them."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final

from dataproxy.codes import code_name
from dataproxy.doctor.findings import Finding, Level
from dataproxy.explain import explain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataproxy.config import ProducerConfig
    from dataproxy.doctor.findings import MessageReport, ProxyReport

__all__ = ["STATES", "fill_in", "proxy_findings", "setting_findings"]

_SHIPPED: Final = "a DataProxy listens on 46801 as shipped (HTTP: 46802)"
#: State of a proxy -> what it means, what to do, the code that producers report for it.
STATES: Final[dict[str, tuple[str, str, str]]] = {
    "refused": (
        "the host answers, and no program listens on this port",
        f"see whether the DataProxy runs there, and on which port; {_SHIPPED}",
        "CONNECT_FAILED",
    ),
    "connect_timeout": (
        "no packet comes back: a firewall drops them, the host is down, or the address belongs to another network",
        "have the port opened for this machine; compare from another machine: nc -vz HOST PORT",
        "CONNECT_FAILED",
    ),
    "unreachable": (
        "this machine, or a router behind it, knows no way to the address",
        "check the address and the way: ip route get ADDRESS",
        "CONNECT_FAILED",
    ),
    "denied": (
        "this machine itself forbids the connection (its firewall, or a policy for this user or container)",
        "allow outgoing connections to the proxies' port",
        "CONNECT_FAILED",
    ),
    "no_resources": (
        "this machine has no file descriptor, local port or memory left for a connection",
        "see the lines about limits; another program may use them up",
        "CONNECT_FAILED",
    ),
    "connect_failed": ("the connection could not be made", "look up the words of the system", "CONNECT_FAILED"),
    "tls_failed": ("no TLS connection could be made", "see the server's log", "CONNECT_FAILED"),
    "closed": (
        (
            "its limit of connections is reached, its address lists do not admit this machine, a load balancer has no"
            " server behind it, or the port wants TLS"
        ),
        "see the proxy's log; ask its operator for the connection limit and the address lists",
        "CONNECTION_LOST",
    ),
    "reset": (
        "the program there ended, or something on the way (a firewall, a load balancer) cut the connection",
        "see the proxy's log, then what stands between",
        "CONNECTION_LOST",
    ),
    "silent": (
        "the process hangs or is overloaded, or another program has this port and waits for something else",
        f"look at the process on that host; {_SHIPPED}",
        "ACK_TIMEOUT",
    ),
    "http": (
        "this is the port of a web server: of a Manager, or a DataProxy's port for HTTP",
        f"give the proxy's TCP port; {_SHIPPED}. A Manager's target begins with http://",
        "REMOTE_PROTOCOL",
    ),
    "not_ready": (
        "its service is stopped, or it has no connection to its message queue: it refuses all messages now",
        "see the proxy's log; until it is ready, producers use the other proxies",
        "CONNECTION_LOST",
    ),
    "tls": (
        "this port wants TLS, and the target says plain TCP",
        f"write tls:// before its address (or set tls=true), or give the plain port of the proxy; {_SHIPPED}",
        "REMOTE_PROTOCOL",
    ),
    "banner": ("another program has this port", f"give the port of the DataProxy; {_SHIPPED}", "REMOTE_PROTOCOL"),
    "garbage": (
        "another program has this port, or something on the way changes bytes",
        f"give the port of the DataProxy; {_SHIPPED}",
        "REMOTE_PROTOCOL",
    ),
    "malformed": (
        "it speaks another version of the protocol, or something on the way changes bytes",
        "ask the operator for its version; dataproxy frames reads captured frames",
        "REMOTE_PROTOCOL",
    ),
    "unfinished": ("nothing is known about it", "give it more time: --timeout 30s", "CONNECT_FAILED"),
}
_FRESH: Final = (115, 113, 121)
_SLOW_FACTOR: Final = 10
_SLOW_SECONDS: Final = 0.1
_VERY_SLOW_SECONDS: Final = 1.0
_CERTIFICATE_DAYS: Final = 14
_FEWEST_PEERS: Final = 3


def fill_in(report: ProxyReport) -> None:
    """Give a failed proxy the usual meaning and advice of its state, where it has none of its own."""
    if report.state != "ok":
        means, advice, _ = STATES[report.state]
        report.means, report.advice = report.means or means, report.advice or advice


def proxy_findings(reports: Sequence[ProxyReport], *, by_manager: bool, heartbeat: str = "binary") -> list[Finding]:
    """Return what the proxies' results mean.

    ``by_manager``: a Manager has named them.  ``heartbeat``: the option of the producer.
    """
    found = []
    times = [one.heartbeat_seconds for one in reports if one.heartbeat_seconds is not None]
    usual = median(times) if len(times) >= _FEWEST_PEERS else None
    hosts_well = {(one.host, one.port) for one in reports if one.used and one.reached}
    for one in reports:
        fill_in(one)
        found.append(
            _proxy(one, usual, by_manager, heartbeat, spare=not one.used and (one.host, one.port) in hosts_well)
        )
        found += _frame_limit(one)
        if one.tls is not None and one.tls.days_left is not None and one.tls.days_left < _CERTIFICATE_DAYS:
            found.append(
                Finding(
                    "tls", one.name, Level.WARNING, f"its certificate ends in {max(one.tls.days_left, 0):.0f} days",
                    "after that no producer connects to it any more", "have it renewed",
                )
            )  # fmt: skip
    found += _message_findings([one for one in reports if one.message is not None])
    return found


def _proxy(one: ProxyReport, usual: float | None, by_manager: bool, heartbeat: str, *, spare: bool) -> Finding:
    if one.state != "ok":
        advice = one.advice
        if by_manager and one.state in ("refused", "connect_timeout", "unreachable"):
            advice += "; the Manager's list has the address as the proxy registered it, which may be one of a container"
            advice += " or of an inner network"
        if spare:
            return Finding(
                "proxy", one.name, Level.NOTE, one.text, "its IPv4 address works, so this one is not needed",
                "nothing, unless you want IPv6", STATES[one.state][2],
            )  # fmt: skip
        return Finding("proxy", one.name, Level.ERROR, one.text, one.means, advice, STATES[one.state][2])
    text = _told(one)
    if one.heartbeat == "message" and heartbeat == "binary":
        return Finding(
            "proxy", one.name, Level.WARNING, f"{text}; it answers heartbeats of type 1 only",
            "this producer sends those of type 8, and replaces connections on which they stay unanswered",
            "set heartbeat=message",
        )  # fmt: skip
    seconds = one.heartbeat_seconds or 0.0
    if seconds > _VERY_SLOW_SECONDS or (usual and seconds > max(_SLOW_SECONDS, _SLOW_FACTOR * usual)):
        return Finding(
            "proxy", one.name, Level.WARNING, text,
            "it is much slower than it should be" if usual is None else f"the usual time here is {_ms(usual)}",
            "look at the load of that host, and at the way to it",
        )  # fmt: skip
    return Finding("proxy", one.name, Level.OK, text)


def _told(one: ProxyReport) -> str:
    parts = [f"connect {_ms(one.connect_seconds or 0)}"]
    if one.tls is not None:
        parts.append(one.tls.version)
    parts.append(f"heartbeat {_ms(one.heartbeat_seconds or 0)}")
    parts.append("load unknown" if one.load is None else f"load {one.load}")
    if one.frame_taken is not None:
        parts.append(f"takes frames of {one.frame_taken:,} bytes")
    return ", ".join(parts)


def _ms(seconds: float) -> str:
    milliseconds = seconds * 1000
    return f"{milliseconds:.1f} ms" if milliseconds < 10 else f"{milliseconds:,.0f} ms"


def _frame_limit(one: ProxyReport) -> list[Finding]:
    if one.frame_unanswered is not None and one.frame_refused is None:
        return [
            Finding(
                "frame", one.name, Level.NOTE,
                f"no usable answer in time to a heartbeat of {one.frame_unanswered:,} bytes",
                "the way to it is slow, another server answers in its place, or it does not answer frames of this"
                " size: its limit is not known",
                "give it more time: --timeout 30s",
            )
        ]  # fmt: skip
    if one.frame_refused is None:
        return []
    taken = f"one of {one.frame_taken:,} bytes was answered" if one.frame_taken else "no smaller one was answered"
    refuses = "it takes no request of" if one.heartbeat == "http" else "it closes the connection on a frame of"
    below = "below max_frame_bytes" + ("" if one.frame_taken else ", or it takes no second connection")
    least = f"max_frame_bytes={one.frame_taken}" if one.frame_taken else "a smaller max_frame_bytes"
    return [
        Finding(
            "frame", one.name, Level.ERROR,
            f"{refuses} {one.frame_refused:,} bytes; {taken}",
            f"its limit (max-msg-length) is {below}: full packs and large messages would never arrive",
            f"set {least}, or have max-msg-length raised (65536 is the default of its code, 524288 is as shipped)",
        )
    ]  # fmt: skip


def _message_findings(reports: Sequence[ProxyReport]) -> list[Finding]:
    taken = any(one.message is not None and one.message.state == "acknowledged" for one in reports)
    return [_message(one, one.message, taken) for one in reports if one.message is not None]


def _message(proxy: ProxyReport, message: MessageReport, taken: bool) -> Finding:
    name = proxy.name
    if message.state == "acknowledged":
        again = " (120: it knew it)" if message.code else ""
        node = f" by {message.node}" if message.node else ""
        return Finding("message", name, Level.OK, f"acknowledged{again}{node} after {_ms(message.seconds)}")
    if message.state != "refused" or message.code is None:
        broken = "another version of the protocol, or something on the way changes bytes"
        if proxy.heartbeat == "http":
            broken = "a gateway or another server answers in the place of the DataProxy; the message may be stored"
        means = {
            "unanswered": "it may be stored all the same; producers send it again after ack_timeout",
            "closed": "frames of this size or kind are not taken, or the proxy ended; the message may be stored",
            "misaddressed": "something on the way mixes up connections; producers ignore such answers",
        }.get(message.state, broken)
        code = {"closed": "CONNECTION_LOST", "malformed": "REMOTE_PROTOCOL"}.get(message.state, "ACK_TIMEOUT")
        return Finding("message", name, Level.ERROR, message.text, means, "see the proxy's log", code)
    told = explain(message.code)
    said = f": {message.text}" if message.text else ""
    meaning, hint = (f"{told.meaning}. {told.action}", told.hint) if told else ("", "")
    if message.code in _FRESH:
        meaning = "this proxy knows no topic for group and stream"
        meaning += ", others do: it has not heard of them yet" if taken else ""
        hint = "if they were approved just now, wait a minute and try again; " + (told.hint if told else "")
    text = f"refused with code {message.code} {code_name(message.code)}{said}"
    return Finding("message", name, Level.ERROR, text, meaning, hint, message.code)


def setting_findings(
    config: ProducerConfig, *, sent: bool, stream_id: str, measured: bool, cluster_limit: int
) -> list[Finding]:
    """Return notes about options, and about what could not be seen from here."""
    found = []
    if config.ordering == "key":
        found.append(
            Finding(
                "setting", "ordering", Level.NOTE, "ordering=key keeps the order up to the proxy",
                "a proxy with several memory queues or sinks, as its shipped configuration has, may pass messages on"
                " in another order; nothing that a client sees shows it",
                "ask the operator for one memory queue and one sink, or sort by time or number when reading",
            )
        )  # fmt: skip
    if not sent and config.group_id:
        names = f"{config.group_id!r}" if not stream_id else f"{config.group_id!r} and {stream_id!r}"
        found.append(
            Finding(
                "setting", "group", Level.NOTE, f"the proxies were not asked whether they know {names}",
                "only a message shows it: a proxy that does not know them refuses with 115",
                "dataproxy doctor ... --group ID --stream ID --send sends one marked message to each proxy",
            )
        )  # fmt: skip
    if not measured and not cluster_limit:
        over_http = config.protocol == "http"
        refuses = "answers larger requests with status 413" if over_http else "closes the connection without an answer"
        found.append(
            Finding(
                "setting", "max_frame_bytes", Level.NOTE,
                f"the limit of a frame is not known here; this producer sends up to {config.max_frame_bytes:,} bytes",
                f"a server whose max-msg-length is lower {refuses} (65,536 is the default of its code, 524,288 is as"
                " shipped)",
                "dataproxy doctor ... --frame-limit tries it with a heartbeat of that size",
            )
        )  # fmt: skip
    return found
