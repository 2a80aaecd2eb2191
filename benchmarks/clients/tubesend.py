"""One run of a producer for a TubeMQ topic, in a process of its own: from the first call to the end of the flush.

``python -m benchmarks.clients.tubesend TARGET TOPIC MESSAGES [--size 100]``
"""

import argparse

from benchmarks.clients.section import Section, report
from dataproxy import Producer

__all__: list[str] = []


def main() -> None:
    """Send, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("topic")
    parser.add_argument("messages", type=int)
    parser.add_argument("--size", type=int, default=100)
    given = parser.parse_args()
    body = bytes(ord("a") + i % 26 for i in range(given.size))
    with Producer(given.target) as producer:
        producer.send(given.topic, body).result(timeout=60)  # the topic is known then, and its brokers are connected
        section = Section()
        for _ in range(given.messages):
            producer.send_nowait(given.topic, body)
        counts = producer.flush(timeout=300)
        result = section.end(given.messages, given.size)
    assert counts.delivered == given.messages + 1, counts
    report(result)


if __name__ == "__main__":
    main()
