"""Name service: every address of the hosts of a target, IPv4 and IPv6."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dataproxy.doctor.findings import Finding, Level, NameReport
from dataproxy.producer.discovery.limited import side_by_side

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dataproxy.types import Endpoint

__all__ = ["Address", "addresses_of", "look_up", "name_findings"]

_SLOW_SECONDS: Final = 1.0
_THREAD: Final = "dataproxy-doctor-names"


class Address(NamedTuple):
    """Hold one address of a proxy; ``where`` is what a socket connects to.

    ``used`` is False for an IPv6 address of a host that has IPv4, too: the producer tries it where IPv4 fails.
    """

    endpoint: Endpoint
    family: int
    where: tuple[Any, ...]
    label: str
    used: bool


class _Looked(NamedTuple):
    report: NameReport
    found: dict[int, dict[str, tuple[Any, ...]]]  # family -> address -> what a socket connects to


def look_up(endpoints: Iterable[Endpoint], timeout: float) -> dict[Endpoint, _Looked]:
    """Look up all hosts at the same time, for at most ``timeout`` seconds; who has no answer then has an error."""
    wanted = list(dict.fromkeys(endpoints))
    outcomes = side_by_side(_THREAD, timeout, _look_up, wanted)
    looked = {}
    for one in wanted:
        outcome = outcomes.get(one)
        if isinstance(outcome, _Looked):
            looked[one] = outcome
            continue
        error = f"no answer of the name service within {timeout:g} s" if outcome is None else _why(outcome)
        looked[one] = _Looked(NameReport(one.host, seconds=timeout if outcome is None else 0.0, error=error), {})
    return looked


def _look_up(endpoint: Endpoint) -> _Looked:
    started = time.monotonic()
    answer = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    found: dict[int, dict[str, tuple[Any, ...]]] = {}
    for family, _, _, _, where in answer:
        found.setdefault(int(family), {}).setdefault(str(where[0]), where)
    seconds = time.monotonic() - started
    ipv4, ipv6 = (list(found.get(int(kind), ())) for kind in (socket.AF_INET, socket.AF_INET6))
    return _Looked(NameReport(endpoint.host, ipv4, ipv6, seconds), found)


def addresses_of(endpoint: Endpoint, looked: _Looked) -> list[Address]:
    """Return the addresses of one proxy, those that the producer uses first."""
    order = [int(kind) for kind in (socket.AF_INET, socket.AF_INET6) if int(kind) in looked.found]
    return [
        Address(
            endpoint,
            family,
            where,
            str(endpoint) if text == endpoint.host else f"{endpoint} ({text})",
            family == order[0],
        )
        for family in order
        for text, where in looked.found[family].items()
    ]


def name_findings(reports: Iterable[NameReport]) -> list[Finding]:
    """Return what the name service's answers mean."""
    found = []
    for one in reports:
        if one.error:
            found.append(
                Finding(
                    "name", one.host, Level.ERROR, f"no address: {one.error}",
                    "the name service (DNS) of this machine does not know the host, or does not answer",
                    f"check the spelling; then compare: getent ahosts {one.host}",
                    "UNRESOLVED_HOST",
                )
            )  # fmt: skip
            continue
        text = "; ".join(
            f"{kind} {', '.join(addresses)}" for kind, addresses in (("A", one.ipv4), ("AAAA", one.ipv6)) if addresses
        )
        if one.seconds > _SLOW_SECONDS:
            found.append(
                Finding(
                    "name", one.host, Level.WARNING, f"{text} (after {one.seconds:.1f} s)",
                    "the name service is slow: each producer waits so long for it at its start",
                    "look at the name servers in /etc/resolv.conf: often the first of them does not answer",
                )
            )  # fmt: skip
            continue
        found.append(Finding("name", one.host, Level.OK, text))
    return found


def _why(error: BaseException) -> str:
    if isinstance(error, UnicodeError):
        return f"it is not a valid host name ({error})"
    return getattr(error, "strerror", None) or str(error) or repr(error)
