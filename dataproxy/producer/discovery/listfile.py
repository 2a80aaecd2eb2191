"""A file that lists the proxies: InLong's ``data`` object, a Manager's whole answer, or plain addresses."""

from __future__ import annotations

import re
from typing import Final

from dataproxy.errors import ConfigError, DiscoveryError
from dataproxy.producer.discovery.answer import MAX_PROXIES, decode_answer, decode_data, is_flat
from dataproxy.producer.discovery.smallfile import read_small
from dataproxy.producer.discovery.targets import parse_endpoint
from dataproxy.types import Endpoint, ProxyList

__all__ = ["read_list"]

_MAX_BYTES: Final = 8 << 20
_SHOWN: Final = 60
_BRACKETED: Final = re.compile(rb"\[[0-9A-Fa-f.]*:")  # an IPv6 address that begins a list of lines, and no JSON
_PORT: Final = re.compile(r":[0-9]+$")


def read_list(path: str, protocol: str = "TCP") -> ProxyList:
    """Return the proxies that a file lists.

    Its content is an InLong ``data`` object (``{"clusterId": 1, "nodeList": [...]}``), a Manager's answer around one, a
    JSON list of ``"host:port"``, or text with one ``host[:port]`` a line, where ``#`` begins a comment.  Entries for
    another protocol are left out, and so are those that cannot be used, which ``ProxyList.ignored`` names: for HTTP
    also those without a port.  Raises DiscoveryError (LIST_FILE).
    """
    try:
        found = _decode(read_small(path, _MAX_BYTES), protocol)
    except (OSError, ValueError) as error:
        why = f"cannot be read: {error.strerror or error}" if isinstance(error, OSError) else str(error)
        raise _error(path, why) from None
    if isinstance(found, str):
        raise _error(path, f"holds an answer that reports a failure: {found[:_SHOWN]!r}")
    if not found.endpoints:
        raise _error(path, f"names no {protocol} proxy")
    return found


def _error(path: str, why: str) -> DiscoveryError:
    return DiscoveryError(
        f"the list of proxies in {path!r} {why}",
        code="LIST_FILE",
        hint="write a list in one of the forms of docs/cluster.md, and put it in place by a rename",
        details={"path": path},
    )


def _decode(body: bytes, protocol: str) -> ProxyList | str:
    text = body.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"{"):
        # An answer has `success` outside of every list; what a decoder ignores would not tell the two apart.
        decode = decode_answer if b'"success"' in text else decode_data
        return decode(text, protocol)
    if text.startswith(b"[") and not _BRACKETED.match(text):
        return _plain(_json_lines(text), protocol)
    try:
        lines = text.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8: {error.reason} at byte {error.start}") from None
    return _plain([line.partition("#")[0].strip() for line in lines], protocol)


def _json_lines(text: bytes) -> list[str]:
    import msgspec

    if not is_flat(text):
        raise ValueError("is nested too deeply")
    try:
        return msgspec.json.decode(text, type=list[str])
    except msgspec.DecodeError as error:
        raise ValueError(f"is not a JSON list of texts ({error})") from None


def _plain(lines: list[str], protocol: str) -> ProxyList:
    found: dict[Endpoint, None] = {}
    ignored: list[str] = []
    for i, line in enumerate(lines):
        if not line:
            continue
        try:
            endpoint = parse_endpoint(line[:_SHOWN], line)
        except ConfigError as error:
            ignored.append(f"entry {i + 1}: {error.message.removeprefix('target ')}")
            continue
        if protocol == "HTTP" and not _PORT.search(line):
            ignored.append(f"entry {i + 1}: {line[:_SHOWN]!r} has no port")  # the usual one is that of TCP
        else:
            found[endpoint] = None
    if len(found) > MAX_PROXIES:
        raise ValueError(f"names {len(found)} proxies, more than {MAX_PROXIES}")
    if ignored and not found:
        raise ValueError(f"has no usable entry: {ignored[0]}")
    return ProxyList(None, tuple(found), ignored=tuple(ignored))
