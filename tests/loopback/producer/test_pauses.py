"""A sender of batches that is far ahead of its connection: it pauses where it may wait, and nothing else is changed."""

import resource

import pytest

from dataproxy import Producer
from tests.support.scripted import Scripted, silent

MANY = 24_576
BODY = b"x" * 1024
PAUSES = 12  # the least: 16 MiB of 24 are neither in sockets nor allowed ahead, and a pack takes less than one


@pytest.mark.parametrize("on_full", ["block", "raise"])
def test_a_batch_far_ahead_of_its_connection_is_accepted_whole(on_full) -> None:
    with Scripted(silent, receive_buffer=65536) as server:
        producer = Producer(server.target, group_id="g", on_full=on_full, buffer_bytes="32MiB")
        server.reading.clear()
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
        producer.send_batch("s", [BODY] * MANY)
        slept = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before
        assert producer.stats().accepted == MANY
        assert producer.stats().buffered_bytes >= MANY * len(BODY)
        if on_full == "block":
            assert slept >= PAUSES
        producer.close(0)
        server.reading.set()
