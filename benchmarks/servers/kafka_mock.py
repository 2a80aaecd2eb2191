"""librdkafka's mock cluster in a process of its own: prints its port, ends on SIGTERM."""

import json
import resource
import signal

from confluent_kafka import Producer

__all__ = ["main"]


def main() -> None:
    """Start one broker and wait."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    owner = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    brokers = owner.list_topics(timeout=10).brokers
    print(json.dumps({"port": next(iter(brokers.values())).port}), flush=True)
    signal.sigwait({signal.SIGTERM})
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"cpu_user": usage.ru_utime, "cpu_sys": usage.ru_stime}), flush=True)


if __name__ == "__main__":
    main()
