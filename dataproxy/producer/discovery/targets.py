"""Targets, their addresses, and what changes when a new list of proxies arrives."""

from __future__ import annotations

import re
import socket
from typing import TYPE_CHECKING, Final, NamedTuple

from dataproxy.config.rules import is_tubemq
from dataproxy.config.suggestion import nearest_name
from dataproxy.errors import ConfigError, DiscoveryError
from dataproxy.producer.discovery.limited import side_by_side
from dataproxy.producer.discovery.manager import ManagerClient
from dataproxy.shown import without_secrets
from dataproxy.types import (
    DnsTarget,
    Endpoint,
    FileTarget,
    ManagerTarget,
    ProxyList,
    ResolvedEndpoint,
    StaticTarget,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "DEFAULT_PORT",
    "DnsTarget",
    "Endpoint",
    "EndpointChange",
    "FileTarget",
    "ManagerClient",
    "ManagerTarget",
    "ProxyList",
    "ResolvedEndpoint",
    "StaticTarget",
    "Target",
    "diff",
    "is_numeric",
    "parse_endpoint",
    "parse_target",
    "refuse_masters",
    "resolve",
]

#: Port of a DataProxy when a target names none.
DEFAULT_PORT: Final = 46801

_MAX_PORT: Final = 65535
_LOOK_UP_SECONDS: Final = 15.0
_PROXIES: Final = ("tcp", "tls")
_SCHEMES: Final = ("tcp", "tls", "http", "https", "file", "dns")
_FORMS: Final = (
    "write 'tcp://host1:46801,host2:46801' for proxies, 'http://manager:8083' for a Manager,"
    " 'file:///path' for a list in a file, or 'dns://name:46801' for all addresses of a name; with TLS 'tls://' or"
    " 'https://'"
)
_SEVERAL: Final = "write several Managers as 'http://host1:8083,host2:8083', with their path, if any, at the end"
_ONE_KIND: Final = "give one kind of target: proxies, Managers of one scheme, one file, or one name"
_HOST: Final = r"[^\s\x00-\x1f\x7f\[\]/@?#:,%&=\\<>\"']{1,255}"  # no name of DNS is longer
#: How much of a text, and how many names, an error shows: whoever points at the wrong file gets no megabyte of it.
_SHOWN: Final = 200
_SHOWN_NAMES: Final = 5
#: The end of the official SDKs' default URLs; it is cut off, because the client adds it itself.
_API_PATH: Final = r"/inlong/manager/openapi/dataproxy/getIpList(/.*)?$"
#: The end that asks for a cluster by its name, alone or behind the path of the Manager's interface.
_CLUSTER_PATH: Final = r"(?:/inlong/manager/openapi/dataproxy)?/getIpListByClusterName(?:/([^/]*))?$"

Target = StaticTarget | ManagerTarget | FileTarget | DnsTarget


class EndpointChange(NamedTuple):
    """Hold the difference between two lists of proxies: those to add, those to drop, and those that stay."""

    add: tuple[Endpoint, ...]
    drop: tuple[Endpoint, ...]
    keep: tuple[Endpoint, ...]


def refuse_masters(target: str) -> None:
    """Raise ConfigError if a target names masters of TubeMQ: for what needs proxies, before it looks at options."""
    if is_tubemq(target):
        raise ConfigError(
            f"target {_cut(without_secrets(target.strip()))!r} names masters of TubeMQ, and proxies or a Manager are"
            " needed here",
            hint="`dataproxy topics` shows what masters say of topics",
        )


def parse_target(text: str) -> Target:
    """Return the proxies, the Managers, the file or the name that a target text names.

    Forms: ``tcp://host[:port],...`` (port 46801 when left out, IPv6 addresses in brackets), the same with ``tls://``;
    ``http(s)://host[:port],...[/prefix]``, with ``/getIpListByClusterName/NAME`` at the end for the proxies of a
    cluster; ``file:///path`` for a file that lists proxies; ``dns://name[:port]`` for all addresses of a name.  Raises
    ConfigError that names the part that is wrong.
    """
    given: object = text
    if not isinstance(given, str) or not given.strip():
        raise ConfigError(f"target {text!r} is not an address", hint=_FORMS)
    scheme, separator, rest = text.strip().partition("://")
    scheme = scheme.lower()
    text = _cut(without_secrets(text))  # errors below show only this text
    if scheme == "file" and separator:
        return _parse_file(text, rest)
    if "@" in rest or "@" in scheme:
        raise ConfigError(
            "the target contains '@' (user or password in the address)",
            hint="give credentials as manager_secret_id and manager_secret_key",
        )
    if not separator:
        raise ConfigError(f"target {text!r} has no scheme", hint=_FORMS)
    refuse_masters(text)
    if scheme not in _SCHEMES:
        near = nearest_name(scheme, (*_SCHEMES, "tubemq", "tubemqs"))
        meant = f"did you mean {near}://? " if near else ""
        raise ConfigError(f"target {text!r} has the unknown scheme {scheme!r}", hint=meant + _FORMS)
    _check_one_kind(text, scheme, rest)
    for mark in "?#":
        if mark in rest:
            what = "the Manager's base URL" if scheme.startswith("http") else "addresses"
            raise ConfigError(f"target {text!r} holds {mark!r}", hint=f"give {what} only")
    if scheme in _PROXIES:
        return _parse_static(text, scheme, rest)
    if scheme == "dns":
        return _parse_name(text, rest)
    return _parse_manager(text, scheme, rest)


def _check_one_kind(text: str, scheme: str, rest: str) -> None:
    """Raise ConfigError if a target has a second scheme; several URLs of Managers repeat theirs."""
    for other in re.findall(r"([A-Za-z][A-Za-z0-9+.-]{0,30})://", rest):
        if scheme in _PROXIES and other.lower() == scheme:
            raise ConfigError(
                f"target {text!r} repeats '{scheme}://'", hint=f"write it once: '{scheme}://host1:46801,host2:46801'"
            )
        if not (scheme.startswith("http") and other.lower().startswith("http")):
            raise ConfigError(f"target {text!r} mixes {scheme}:// and {other.lower()}://", hint=_ONE_KIND)


def resolve(
    endpoints: Iterable[Endpoint], *, strict: bool = True, known: Iterable[ResolvedEndpoint] = (), every: bool = False
) -> list[ResolvedEndpoint]:
    """Return the addresses of proxies: IPv4 addresses if a name has any, with an IPv6 one as ``other``; else IPv6.

    A name with several addresses gives several entries; no address comes twice.  With ``every`` each address of either
    family is a proxy of its own.  Names are looked up at the same time, for at most 15 s.  With ``strict`` False a name
    that cannot be resolved keeps its addresses in ``known``.  Raises DiscoveryError (code UNRESOLVED_HOST) that names
    the first failing hosts with the resolver's message, and has all in ``details``; with ``strict`` False only if there
    is no address at all.  Releases the GIL.
    """
    wanted = list(dict.fromkeys(endpoints))
    before = list(known)
    answers: dict[Endpoint, dict[int, list[str]] | BaseException] = {
        one: _look_up(one) for one in wanted if is_numeric(one.host)
    }
    names = [one for one in wanted if one not in answers]
    answers.update(side_by_side("dataproxy-name-service", _LOOK_UP_SECONDS, _look_up, names))
    found: dict[tuple[str, int], ResolvedEndpoint] = {}
    failures: dict[str, str] = {}
    for endpoint in wanted:
        answer = answers.get(endpoint, TimeoutError(f"no answer within {_LOOK_UP_SECONDS:g} s"))
        if isinstance(answer, dict) and not any(answer.values()):
            answer = LookupError("the name service knows the name, and no address of it")
        if isinstance(answer, BaseException):
            failures[endpoint.host] = _why(answer)
            entries = [] if strict else [one for one in before if (one.host, one.port) == endpoint]
        else:
            entries = _entries(endpoint, answer, every)
        for entry in entries:
            found.setdefault((entry.address, entry.port), entry)
    if failures and (strict or not found):
        named = ", ".join(f"{host!r} ({why})" for host, why in list(failures.items())[:_SHOWN_NAMES])
        more = len(failures) - _SHOWN_NAMES
        raise DiscoveryError(
            f"no address found for {named}" + (f", and {more} more names" if more > 0 else ""),
            code="UNRESOLVED_HOST",
            hint="check the spelling and the name service (DNS)",
            details={"hosts": failures},
        )
    return list(found.values())


def is_numeric(host: str) -> bool:
    """Tell whether a host is a numeric address, which needs no name service."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return True
    return False


def _look_up(endpoint: Endpoint) -> dict[int, list[str]]:
    """Return the addresses of a host by family."""
    found: dict[int, list[str]] = {}
    for kind, _, _, _, where in socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM):
        addresses = found.setdefault(int(kind), [])
        if str(where[0]) not in addresses:
            addresses.append(str(where[0]))
    return found


def _entries(endpoint: Endpoint, addresses: dict[int, list[str]], every: bool) -> list[ResolvedEndpoint]:
    if every:
        return [
            ResolvedEndpoint(endpoint.host, endpoint.port, family, address, f"{endpoint} ({address})")
            for family in (int(socket.AF_INET), int(socket.AF_INET6))
            for address in addresses.get(family, ())
        ]
    family = int(socket.AF_INET) if socket.AF_INET in addresses else int(socket.AF_INET6)
    found = []
    others = addresses.get(int(socket.AF_INET6), []) if family == socket.AF_INET else []
    for i, address in enumerate(addresses.get(family, ())):
        label = str(endpoint) if address == endpoint.host else f"{endpoint} ({address})"
        found.append(
            ResolvedEndpoint(
                endpoint.host, endpoint.port, family, address, label, others[i % len(others)] if others else ""
            )
        )
    return found


def _why(error: BaseException) -> str:
    if isinstance(error, UnicodeError):
        return f"it is not a valid host name ({error})"
    return getattr(error, "strerror", None) or str(error) or repr(error)


def diff(old: Iterable[Endpoint], new: Iterable[Endpoint]) -> EndpointChange:
    """Return what changes from one list to the next; only proxies that left the list are dropped.

    Order and repetition do not count.
    """
    before, after = dict.fromkeys(old), dict.fromkeys(new)
    return EndpointChange(
        add=tuple(endpoint for endpoint in after if endpoint not in before),
        drop=tuple(endpoint for endpoint in before if endpoint not in after),
        keep=tuple(endpoint for endpoint in before if endpoint in after),
    )


def _parse_static(text: str, scheme: str, rest: str) -> StaticTarget:
    endpoints: dict[Endpoint, None] = {}
    for part in rest.split(","):
        endpoint = parse_endpoint(text, part.strip())
        if endpoint in endpoints:
            raise ConfigError(f"target {text!r} names {endpoint} twice", hint="name each proxy once")
        endpoints[endpoint] = None
    return StaticTarget(tuple(endpoints), scheme == "tls")


def parse_endpoint(text: str, part: str) -> Endpoint:
    """Return the address that ``part`` names; errors show ``text``, the target that it is a part of.

    Raises ConfigError.
    """
    if not part:
        raise ConfigError(f"target {text!r} has an empty address", hint=_FORMS)
    shown = _cut(part)
    if part.startswith("["):
        host, bracket, tail = part[1:].partition("]")
        if not bracket or (tail and not tail.startswith(":")):
            raise ConfigError(f"target {text!r}: {shown!r} is not an address", hint="write IPv6 as [2001:db8::1]:46801")
        port_text = tail[1:] if tail else None
        _check_ipv6(text, host)
    else:
        host, colon, after = part.partition(":")
        port_text = after if colon else None
        if part.count(":") > 1:
            raise ConfigError(
                f"target {text!r}: {shown!r} has several colons", hint="write IPv6 as [2001:db8::1]:46801"
            )
        if not re.fullmatch(_HOST, host):
            raise ConfigError(f"target {text!r}: {_cut(host)!r} is not a host name or an address", hint=_FORMS)
    return Endpoint(host.lower(), _parse_port(text, port_text))


def _cut(text: str) -> str:
    """Return the text as errors show it: the beginning of a long one."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _check_ipv6(text: str, host: str) -> None:
    import ipaddress

    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        raise ConfigError(
            f"target {text!r}: {_cut(host)!r} is not an IPv6 address", hint="brackets are for IPv6 addresses only"
        ) from None


def _parse_port(text: str, port_text: str | None) -> int:
    if port_text is None:
        return DEFAULT_PORT
    shown = _cut(port_text)
    if not (port_text.isascii() and port_text.isdigit()):
        raise ConfigError(f"target {text!r}: port {shown!r} is not a number", hint=f"allowed is 1 .. {_MAX_PORT}")
    port = int(port_text[:10])
    if not 1 <= port <= _MAX_PORT:
        raise ConfigError(f"target {text!r}: port {shown} is out of range", hint=f"allowed is 1 .. {_MAX_PORT}")
    return port


def _parse_file(text: str, rest: str) -> FileTarget:
    from urllib.parse import unquote

    path = unquote(rest)
    if not path.startswith("/") or path.endswith("/") or "\0" in path:
        raise ConfigError(
            f"target {text!r} names no file by an absolute path", hint="write e.g. 'file:///etc/dataproxy/proxies.json'"
        )
    return FileTarget(path)


def _parse_name(text: str, rest: str) -> DnsTarget:
    if "," in rest:
        raise ConfigError(
            f"target {text!r} contains several names", hint="give one name, whose addresses are the proxies"
        )
    endpoint = parse_endpoint(text, rest.strip())
    if is_numeric(endpoint.host):
        raise ConfigError(
            f"target {text!r}: {endpoint.host} is an address, not a name", hint=f"write 'tcp://{endpoint}'"
        )
    return DnsTarget(endpoint)


def _parse_manager(text: str, scheme: str, rest: str) -> ManagerTarget:
    """Return the Managers of ``http://host1:8083,host2:8083/prefix``, or of several whole URLs."""
    urls: list[str] = []
    clusters: dict[str, None] = {}
    # Each scheme begins a URL; the hosts of one URL share its path.
    for part in re.split(rf",\s*(?={scheme}://)", f"{scheme}://{rest}", flags=re.IGNORECASE):
        hosts = part[len(scheme) + 3 :]
        if "://" in hosts:
            raise ConfigError(f"target {text!r} contains several schemes", hint=_SEVERAL)
        authority, slash, path = hosts.partition("/")
        if not authority:
            raise ConfigError(f"target {text!r} has no host", hint=_FORMS)
        prefix, cluster = _split_path(text, slash + path)
        clusters[cluster] = None
        urls += [f"{scheme}://{_manager_host(text, host.strip())}{prefix}" for host in authority.split(",")]
    twice = next((url for i, url in enumerate(urls) if url in urls[:i]), None)
    if twice is not None:
        raise ConfigError(f"target {text!r} names {twice} twice", hint="name each Manager once")
    if len(clusters) > 1:
        raise ConfigError(f"target {text!r} names different clusters", hint="ask all Managers for the same cluster")
    return ManagerTarget(urls[0], tuple(urls[1:]), next(iter(clusters)))


def _split_path(text: str, path: str) -> tuple[str, str]:
    """Return the prefix of a Manager's path and the name of the cluster that it asks for, or ""."""
    from urllib.parse import unquote

    path = path.rstrip("/")
    named = re.search(_CLUSTER_PATH, path)
    prefix = path[: named.start()] if named else re.sub(_API_PATH, "", path)
    cluster = unquote(named[1] or "").strip() if named else ""
    if "/getIpListByClusterName/" in prefix + "/":
        raise ConfigError(f"target {text!r} has '/' in the name of a cluster", hint="write it as %2F")
    if named and not cluster:
        raise ConfigError(f"target {text!r} names no cluster", hint="write its name behind getIpListByClusterName/")
    if "," in path:
        raise ConfigError(f"target {text!r} contains ',' in a path", hint=_SEVERAL)
    if any(character.isspace() for character in path):
        raise ConfigError(f"target {text!r} contains spaces", hint=_FORMS)
    return prefix.rstrip("/"), cluster


def _manager_host(text: str, authority: str) -> str:
    endpoint = parse_endpoint(text, authority)
    explicit = authority.endswith(f":{endpoint.port}")
    return str(endpoint) if explicit else str(endpoint).removesuffix(f":{endpoint.port}")
