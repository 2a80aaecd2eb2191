"""The Manager's answer to ``getIpList``, decoded strictly where a mistake matters."""

from __future__ import annotations

import re
from typing import Any, Final, TypeVar

import msgspec

from dataproxy.types import Endpoint, ProxyList

__all__ = ["MAX_PROXIES", "decode_answer", "decode_data", "is_flat"]

#: Most proxies in one list; each may be a name to be resolved.
MAX_PROXIES: Final = 10_000

_DEFAULT_LOAD = 20
_MAX_LOAD = 200
_MAX_PORT = 65535
_MAX_DEPTH = 32
_SHOWN = 60
_HOST = re.compile(r"[\w.:%-]{1,255}")
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)  # a text without an end takes the rest of the input
_INNERMOST = re.compile(rb"\[\]|\{\}")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class _Node(msgspec.Struct):
    ip: str
    port: int
    protocolType: str | None = None  # noqa: N815 - the Manager's spelling
    id: Any = None  # an id of a form that nobody knows is no reason to do without the proxy


class _Data(msgspec.Struct):
    nodeList: list[Any] | None = None  # noqa: N815
    clusterId: int | None = None  # noqa: N815
    isSwitch: int | None = None  # noqa: N815
    load: int | None = None
    maxPacketLength: int | None = None  # noqa: N815


class _Answer(msgspec.Struct):
    success: bool
    errMsg: str | None = None  # noqa: N815
    data: _Data | None = None


def decode_answer(body: bytes, protocol: str = "TCP") -> ProxyList | str:
    """Return the list of proxies, or the Manager's message if it reports a failure.

    Proxies of other protocols than the one that was asked for are left out, and so are entries that cannot be used:
    ``ProxyList.ignored`` names them.  Numbers may be written as text.  Raises ValueError that says what is wrong and
    where, also if no entry is usable.
    """
    answer = _decoded(body, _Answer)
    if not answer.success:
        return answer.errMsg or "no reason given"
    return _list_of(answer.data or _Data(), "$.data", protocol)


def decode_data(body: bytes, protocol: str = "TCP") -> ProxyList:
    """Return the list of proxies that a Manager's ``data`` object holds, without the answer around it.

    Raises ValueError as ``decode_answer`` does.
    """
    return _list_of(_decoded(body, _Data), "$", protocol)


_T = TypeVar("_T")


def _decoded(body: bytes, kind: type[_T]) -> _T:
    if not is_flat(body):
        raise ValueError(f"is nested deeper than {_MAX_DEPTH} levels")
    try:
        return msgspec.json.decode(body, type=kind, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(f"has the wrong form: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"is not JSON ({error})") from None


def _list_of(data: _Data, where: str, protocol: str) -> ProxyList:
    nodes = data.nodeList or []
    if len(nodes) > MAX_PROXIES:
        raise ValueError(f"names {len(nodes)} proxies, more than {MAX_PROXIES}")
    found: dict[Endpoint, str] = {}
    ignored: list[str] = []
    for i, raw in enumerate(nodes):
        try:
            node = msgspec.convert(raw, _Node, strict=False)
            if (node.protocolType or protocol).upper() == protocol:
                found.setdefault(_endpoint(node), _id_text(node.id))
        except ValueError as error:  # that of msgspec is one, and ends with the place in the entry
            what, _, place = str(error).partition(" - at `$")
            ignored.append(f"{what} - at `{where}.nodeList[{i}]{place or '`'}")
    if ignored and not found:
        others = f" (and {len(ignored) - 1} other entries)" if ignored[1:] else ""
        raise ValueError(f"has the wrong form: {ignored[0]}{others}")
    return ProxyList(
        cluster_id=data.clusterId,
        endpoints=tuple(found),
        load=min(max(_DEFAULT_LOAD if data.load is None else data.load, 0), _MAX_LOAD),
        is_switch=data.isSwitch or 0,
        max_packet_length=max(data.maxPacketLength or 0, 0),
        ids=tuple(found.values()) if any(found.values()) else (),
        ignored=tuple(ignored),
    )


def _endpoint(node: _Node) -> Endpoint:
    host = node.ip.strip()
    if not host:
        raise ValueError("no address - at `$.ip`")
    if not _HOST.fullmatch(host):
        raise ValueError(f"{host[:_SHOWN]!r} is not an address - at `$.ip`")
    if not 1 <= node.port <= _MAX_PORT:
        raise ValueError(f"port {node.port} - at `$.port`")
    return Endpoint(host, node.port)


def _id_text(given: object) -> str:
    return str(given)[:_SHOWN] if isinstance(given, int | str) and not isinstance(given, bool) else ""


def is_flat(body: bytes) -> bool:
    """Tell whether values are nested less deep than the limit; the decoder is recursive, so the depth must be bounded.

    Removes the innermost brackets once for each level, without recursion.
    """
    brackets = _TEXT.sub(b"", body).translate(None, _NO_BRACKETS)
    for _ in range(_MAX_DEPTH):
        if not brackets:
            return True
        brackets, found = _INNERMOST.subn(b"", brackets)
        if not found:
            return len(brackets) <= _MAX_DEPTH  # unbalanced brackets: the decoder's error says where
    return not brackets
