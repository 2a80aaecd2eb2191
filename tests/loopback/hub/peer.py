"""Raw connections to a hub, and frames written by hand."""

import re
import socket
import time
from collections.abc import Callable


def read_all(connection: socket.socket) -> bytes:
    """Return everything up to the end of the stream (a reset ends it too)."""
    received = b""
    while True:
        try:
            part = connection.recv(65536)
        except ConnectionResetError:
            return received
        if not part:
            return received
        received += part


def read_frame(connection: socket.socket) -> bytes:
    """Return one whole frame."""
    head = read_exactly(connection, 4)
    return head + read_exactly(connection, int.from_bytes(head, "big"))


def read_exactly(connection: socket.socket, n: int) -> bytes:
    """Return ``n`` bytes."""
    received = b""
    while len(received) < n:
        part = connection.recv(n - len(received))
        if not part:
            raise EOFError(f"the stream ended after {len(received)} of {n} bytes")
        received += part
    return received


def binary_frame(uniq: int, bodies: list[bytes], group: str = "g", stream: str = "s") -> bytes:
    """Return a frame of type 7 with these messages."""
    body = b"".join(len(one).to_bytes(4, "big") + one for one in bodies)
    attrs = f"groupId={group}&streamId={stream}".encode()
    rest = (
        b"\x07"
        + bytes(4)  # numeric ids
        + (4).to_bytes(2, "big")  # ids are in the attributes
        + (1_700_000_000).to_bytes(4, "big")
        + len(bodies).to_bytes(2, "big")
        + uniq.to_bytes(4, "big")
        + len(body).to_bytes(4, "big")
        + body
        + len(attrs).to_bytes(2, "big")
        + attrs
        + b"\xee\x01"
    )
    return len(rest).to_bytes(4, "big") + rest


def mask_times(reply: bytes) -> bytes:
    """Return the reply with its receive times blanked."""
    return re.sub(rb"\b(rt|rtms|rtime2)=\d+", rb"\1=0", reply)


def wait_until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Return as soon as the condition holds; it is looked at again and again."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.002)
