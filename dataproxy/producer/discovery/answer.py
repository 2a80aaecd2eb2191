"""The Manager's answer to ``getIpList``, decoded strictly where a mistake matters."""

from __future__ import annotations

import re

import msgspec

from dataproxy.types import Endpoint, ProxyList

__all__ = ["decode_answer"]

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


class _Data(msgspec.Struct):
    nodeList: list[_Node] | None = None  # noqa: N815
    clusterId: int | None = None  # noqa: N815
    isSwitch: int | None = None  # noqa: N815
    load: int | None = None
    maxPacketLength: int | None = None  # noqa: N815


class _Answer(msgspec.Struct):
    success: bool
    errMsg: str | None = None  # noqa: N815
    data: _Data | None = None


def decode_answer(body: bytes) -> ProxyList | str:
    """Return the list of proxies, or the Manager's message if it reports a failure.

    Proxies of other protocols than TCP are left out.  Numbers may be written as text.  Raises ValueError that
    says what is wrong and where.
    """
    if not _is_flat(body):
        raise ValueError(f"is nested deeper than {_MAX_DEPTH} levels")
    try:
        answer = msgspec.json.decode(body, type=_Answer, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(f"has the wrong form: {error}") from None
    except msgspec.DecodeError as error:
        raise ValueError(f"is not JSON ({error})") from None
    if not answer.success:
        return answer.errMsg or "no reason given"
    data = answer.data or _Data()
    endpoints: dict[Endpoint, None] = {}
    for index, node in enumerate(data.nodeList or []):
        if (node.protocolType or "TCP").upper() != "TCP":
            continue
        host = node.ip.strip()
        if not host:
            raise ValueError(f"has the wrong form: no address - at `$.data.nodeList[{index}].ip`")
        if not _HOST.fullmatch(host):
            raise ValueError(
                f"has the wrong form: {host[:_SHOWN]!r} is not an address - at `$.data.nodeList[{index}].ip`"
            )
        if not 1 <= node.port <= _MAX_PORT:
            raise ValueError(f"has the wrong form: port {node.port} - at `$.data.nodeList[{index}].port`")
        endpoints[Endpoint(host, node.port)] = None
    load = _DEFAULT_LOAD if data.load is None else data.load
    return ProxyList(
        cluster_id=data.clusterId,
        endpoints=tuple(endpoints),
        load=min(max(load, 0), _MAX_LOAD),
        is_switch=data.isSwitch or 0,
        max_packet_length=max(data.maxPacketLength or 0, 0),
    )


def _is_flat(body: bytes) -> bool:
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
