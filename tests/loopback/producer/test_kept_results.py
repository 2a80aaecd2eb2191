"""Results that a callback keeps."""

from collections import Counter

import dataproxy
from tests.support.scripted import Scripted


def test_what_a_callback_keeps_is_its_own():
    kept = []
    with Scripted() as server:
        options = {"group_id": "g", "linger": 0.001, "batch_messages": 7}
        with dataproxy.Producer(server.target, on_delivery=lambda r: kept.append(r), **options) as producer:
            for number in range(700):
                producer.send_nowait(f"s{number % 3}", b"x")
                if number % 100 == 0:
                    producer.flush(30)
        counts = Counter(result.stream_id for result in kept)
    assert counts == {"s0": 234, "s1": 233, "s2": 233}
    assert len({result.delivered.id for result in kept}) == 700
