"""Several server loops share what producers may make the hub hold."""

from __future__ import annotations

import socket

from tests.loopback.hub.peer import binary_frame, wait_until


def test_half_received_frames_are_bounded_over_all_threads(start_hub):
    """Two dozen half frames of 200 KB: all threads together keep ``queue_bytes`` of them."""
    hub = start_hub(threads=4, queue_bytes=2 << 20, max_frame_bytes=256 << 10)
    half = binary_frame(1, [b"x" * 240_000])[:200_000]
    peers = [socket.create_connection(("127.0.0.1", hub.port), timeout=30) for _ in range(24)]
    for peer in peers:
        peer.sendall(half)
    closed = 24 - (2 << 20) // len(half)
    wait_until(lambda: hub.stats()["connections"] <= 24 - closed)
    assert hub.stats()["frame_bytes"] <= 2 << 20
    for peer in peers:
        peer.close()
