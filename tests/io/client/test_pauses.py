"""A sender of batches that is far ahead of its acks: it pauses where it may wait, and nothing else is changed."""

import resource

import pytest

from dataproxy import Producer
from tests.io.scripted import Scripted

MANY = 16_384
BODY = b"x" * 1024
PAUSES = 12  # the least: 12 MiB of 16 lie beyond what may be unacknowledged, and a pack takes less than one


@pytest.mark.parametrize("on_full", ["block", "raise"])
def test_a_batch_far_ahead_of_its_acks_is_accepted_whole(on_full) -> None:
    with Scripted(lambda peer, frame: None) as server:
        producer = Producer(server.target, group_id="g", on_full=on_full, buffer_bytes="32MiB")
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
        producer.send_batch("s", [BODY] * MANY)
        slept = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before
        assert producer.stats().accepted == MANY
        assert producer.stats().buffered_bytes >= MANY * len(BODY)
        if on_full == "block":
            assert slept >= PAUSES
        producer.close(0)
