"""Loss of all packets to a socket: a filter in the kernel drops them before TCP sees them.

So the peer gets no answer, not even an acknowledgement, as from a host without power or network.  Every user may set
the filter on their own sockets (Linux).
"""

from __future__ import annotations

import ctypes
import socket
import struct
from typing import Final

from dataproxy.errors import HubError

__all__ = ["check_can_lose", "lose_packets", "take_packets"]

_ATTACH: Final = 26  # SO_ATTACH_FILTER and SO_DETACH_FILTER, which the module socket does not name
_DETACH: Final = 27
_CODE: Final = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # return 0: keep nothing of a packet
_PROGRAM: Final = struct.pack("HP", 1, ctypes.addressof(_CODE))


def lose_packets(sock: socket.socket) -> None:
    """Drop all packets for a socket from now on; a second call changes nothing.  Raises OSError."""
    sock.setsockopt(socket.SOL_SOCKET, _ATTACH, _PROGRAM)


def take_packets(sock: socket.socket) -> None:
    """Undo ``lose_packets``.  Raises OSError."""
    sock.setsockopt(socket.SOL_SOCKET, _DETACH, 0)


def check_can_lose() -> None:
    """Raise HubError if the kernel has no such filters."""
    with socket.socket() as probe:
        try:
            lose_packets(probe)
        except OSError as error:
            raise HubError(
                f"this kernel cannot drop the packets of a socket: {error}",
                code="FAULTS",
                hint="use freeze, which stops reading instead",
            ) from error
