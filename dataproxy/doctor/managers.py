"""Managers: asked as the producer asks them, each by itself."""

from __future__ import annotations

import ipaddress
import os
import time
from contextlib import closing
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from dataproxy.codes import describe
from dataproxy.doctor.findings import Finding, Level, ManagerReport
from dataproxy.errors import DiscoveryError
from dataproxy.producer.discovery.manager import ManagerClient
from dataproxy.types import ManagerTarget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataproxy.config import ProducerConfig
    from dataproxy.producer.discovery.credentials import Credentials
    from dataproxy.producer.discovery.manager import Heard
    from dataproxy.types import ProxyList

__all__ = ["ask", "manager_findings"]

_REDIRECTS: Final = range(300, 400)
_PROXY_VARIABLES: Final = ("http_proxy", "https_proxy", "all_proxy")
_SHOWN_NODES: Final = 4
_LONGEST_TEXT: Final = 300  # characters of a failure, which may quote the Manager


def ask(
    url: str, config: ProducerConfig, cluster: str = "", credentials: Credentials | None = None
) -> tuple[ManagerReport, ProxyList | None]:
    """Ask one Manager for the proxies of the group, or of a cluster; takes at most ``manager_timeout``.

    Raises ConfigError.
    """
    report = ManagerReport(url)
    answer = None
    asked, started = time.time(), time.monotonic()
    with closing(ManagerClient(ManagerTarget(url, (), cluster), config, credentials=credentials)) as client:
        try:
            answer = client.fetch(config.group_id)
        except DiscoveryError as error:
            report.code, report.hint = str(error.code), error.hint
            report.text = _short(error.message.removeprefix(f"the Manager at {url} "))
        report.seconds = time.monotonic() - started
        heard = client.heard
    if heard is not None:
        report.status, report.content_type = heard.status, heard.content_type
        report.clock_offset = _offset(heard, asked)
    if answer is not None:
        report.cluster_id, report.load = answer.cluster_id, answer.load
        report.max_packet_length = answer.max_packet_length
        report.nodes = [str(one) for one in answer.endpoints]
        report.text = _told(report)
    return report, answer


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."


def _offset(heard: Heard, asked: float) -> float | None:
    """Return the Manager's clock minus ours; its header counts whole seconds, so half a one is added."""
    try:
        there = parsedate_to_datetime(heard.date).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
    return there + 0.5 - (asked + heard.moment) / 2


def _told(report: ManagerReport) -> str:
    shown = ", ".join(report.nodes[:_SHOWN_NODES])
    more = f" and {len(report.nodes) - _SHOWN_NODES} more" if len(report.nodes) > _SHOWN_NODES else ""
    parts = [f"{len(report.nodes)} {'proxy' if len(report.nodes) == 1 else 'proxies'}: {shown}{more}"]
    if report.cluster_id is not None:
        parts.append(f"cluster {report.cluster_id}")
    if report.max_packet_length:
        parts.append(f"frames up to {report.max_packet_length:,} bytes")
    parts.append(f"{report.seconds * 1000:.0f} ms")
    return "; ".join(parts)


def manager_findings(reports: Sequence[ManagerReport], config: ProducerConfig) -> list[Finding]:
    """Return what the answers mean."""
    found = []
    some = any(not one.code for one in reports)
    for one in reports:
        if one.code:
            found.append(_failed(one, some))
        else:
            found.append(Finding("manager", one.url, Level.OK, one.text))
            found += _odd_nodes(one)
    good = [one for one in reports if not one.code]
    found += _differing(good)
    if good and 0 < good[0].max_packet_length < config.max_frame_bytes:
        found.append(
            Finding(
                "frame", good[0].url, Level.NOTE,
                f"the cluster takes frames up to {good[0].max_packet_length:,} bytes, max_frame_bytes is"
                f" {config.max_frame_bytes:,}",
                "the producer keeps to the smaller one; larger messages are refused before they are sent",
                "split larger messages, or have the cluster's maxPacketLength raised",
            )
        )  # fmt: skip
    return found


def _failed(one: ManagerReport, some: bool) -> Finding:
    meaning, advice = describe(one.code)
    advice = one.hint or advice
    web = (one.status is not None and one.status in _REDIRECTS) or "html" in one.content_type.lower()
    if web and one.code in ("MANAGER_URL", "MANAGER_ANSWER", "MANAGER_LOGIN"):
        meaning = "a page for people answers here (a login, a console, a proxy's page), and not the Manager's interface"
        advice = (
            "give the Manager's own address (port 8083 as shipped) instead of the console's, and let"
            " /inlong/manager/openapi pass without a login"
        )
    elif one.code == "GROUP_REFUSED":
        advice += "; a group that was approved just now may need a minute"
    elif one.status is None and _variables():
        advice += f"; the HTTP proxy in {', '.join(_variables())} is not used: the producer connects directly"
    if some:
        advice += "; another Manager answered, and producers use that one"
    return Finding("manager", one.url, Level.WARNING if some else Level.ERROR, one.text, meaning, advice, one.code)


def _variables() -> list[str]:
    """Return the environment's variables that name HTTP proxies: other programs use them."""
    return [name for name in os.environ if name.lower() in _PROXY_VARIABLES and os.environ[name]]


def _odd_nodes(one: ManagerReport) -> list[Finding]:
    """Return a finding about nodes that registered with an address that only they themselves can use."""
    host = urlsplit(one.url).hostname or ""
    if host == "localhost" or _is_own(host):
        return []
    odd = [node for node in one.nodes if _is_own(node.rpartition(":")[0].strip("[]"))]
    if not odd:
        return []
    return [
        Finding(
            "manager", one.url, Level.WARNING, f"names {', '.join(odd[:_SHOWN_NODES])} as a proxy",
            "this address means the machine that uses it: the node has registered with a local address",
            "set the node's own address in its configuration, then restart it",
        )
    ]  # fmt: skip


def _is_own(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or address.is_unspecified


def _differing(good: Sequence[ManagerReport]) -> list[Finding]:
    """Return a finding if Managers of one cluster do not give the same answer."""
    first = good[0] if good else None
    for one in good[1:]:
        if first is not None and (set(one.nodes), one.cluster_id) != (set(first.nodes), first.cluster_id):
            return [
                Finding(
                    "manager", one.url, Level.WARNING, f"its list differs from that of {first.url}",
                    "Managers of one cluster read the same database and give the same answer: these two do not",
                    "check that both belong to the same InLong; a producer uses the first one that answers",
                )
            ]  # fmt: skip
    return []
