"""The addresses that a hub listens on: one, or one of each family for a name with IPv4 and IPv6 addresses."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Sequence
from typing import Final

from dataproxy.errors import HubError
from dataproxy.logs import logger

__all__ = ["ANY6", "addresses_of", "bind_all"]

#: A socket on this address takes connections of both families.
ANY6: Final = "::"

_log: Final = logger("hub")
_PORT_TRIES: Final = 64  # attempts to find a port that is free in both families
_NOT_OURS: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


def addresses_of(host: str) -> tuple[str, ...]:
    """Return the numeric addresses of ``host``: the first of each family, IPv4 first.

    If one of two is not an address of this machine, it is left out and logged: in many containers ``localhost`` is also
    ::1, but there is no IPv6.  Raises HubError (code ADDRESS).
    """
    try:
        answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise HubError(
            f"host {host!r} cannot be resolved: {error}", code="ADDRESS", hint="give an address of this machine"
        ) from error
    first: dict[int, str] = {}
    for family, _, _, _, where in answers:
        first.setdefault(int(family), str(where[0]))
    found = tuple(first[family] for family in sorted(first, key=lambda family: family != socket.AF_INET))
    if ANY6 in found:
        return (ANY6,)
    if len(found) == 1:
        return found
    own = tuple(address for address in found if _is_ours(address))
    if own and own != found:
        missing = next(address for address in found if address not in own)
        _log.warning("this machine has no address %s, so the hub on %r listens only on %s", missing, host, own[0])
    return own or found


def bind_all(addresses: Sequence[str], port: int) -> list[socket.socket]:
    """Return a socket for each address, bound to the same port and not listening; port 0: a free port.

    Raises OSError and then leaves no socket open.
    """
    tries = _PORT_TRIES if port == 0 and len(addresses) > 1 else 1
    while True:
        tries -= 1
        try:
            return _bind_once(addresses, port)
        except OSError as error:
            if tries == 0 or error.errno != errno.EADDRINUSE:
                raise


def _bind_once(addresses: Sequence[str], port: int) -> list[socket.socket]:
    with contextlib.ExitStack() as undo:
        out = []
        for address in addresses:
            one = undo.enter_context(socket.socket(_family(address), socket.SOCK_STREAM))
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if one.family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, address != ANY6)
            one.bind((address, port))
            port = int(one.getsockname()[1])
            out.append(one)
        undo.pop_all()
    return out


def _is_ours(address: str) -> bool:
    try:
        with socket.socket(_family(address), socket.SOCK_STREAM) as one:
            one.bind((address, 0))
    except OSError as error:
        return error.errno not in _NOT_OURS  # other errors are reported when the hub listens
    return True


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET
