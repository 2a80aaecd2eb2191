"""One run of a consumer of RocketMQ, in a process of its own: a new group, from the beginning of a topic.

``python -m benchmarks.clients.rocketget TARGET TOPIC GROUP push|pull MESSAGES [--warm N]``

``push`` counts messages in a listener, ``pull`` polls them and commits.  The clocks begin behind ``--warm`` messages.
"""

from __future__ import annotations

import argparse
import itertools
import threading
from typing import TYPE_CHECKING

from benchmarks.clients.section import Section, report
from dataproxy.rocketmq import PullConsumer, PushConsumer

if TYPE_CHECKING:
    from dataproxy._core.remoting.messages import ReceivedMessage

__all__: list[str] = []
_SECONDS = 120.0


class _Counted:
    """Count messages: ``warm`` of them, and then ``n`` with the clocks running."""

    def __init__(self, warm: int, n: int) -> None:
        self._warm, self._n = warm, n
        self._numbers = itertools.count(1)  # of one message each, for all threads of the listener
        self._section: Section | None = None
        self._result: dict[str, float] = {}
        self.done = threading.Event()

    def __call__(self, messages: list[ReceivedMessage]) -> None:
        for one in messages:
            number = next(self._numbers)
            if number == self._warm:
                self._section = Section()
            elif number == self._warm + self._n:
                assert self._section is not None
                self._result = self._section.end(self._n, len(one.body))
                self.done.set()

    def report(self) -> None:
        """Print one JSON object."""
        if not self.done.is_set():
            raise SystemExit(f"only {next(self._numbers) - 1} messages came in {_SECONDS:g} s")
        report(self._result)


def main() -> None:
    """Read, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("target", "topic", "group"):
        parser.add_argument(name)
    parser.add_argument("way", choices=("push", "pull"))
    parser.add_argument("messages", type=int)
    parser.add_argument("--warm", type=int, default=1)
    given = parser.parse_args()
    counted = _Counted(given.warm, given.messages)
    if given.way == "push":
        with PushConsumer(given.target, given.group, given.topic, counted, begin="first"):
            counted.done.wait(_SECONDS)
    else:
        with PullConsumer(given.target, given.group, given.topic, begin="first", auto_commit=True) as consumer:
            while not counted.done.is_set():
                messages = consumer.poll(_SECONDS)
                if not messages:
                    break
                counted(messages)
    counted.report()


if __name__ == "__main__":
    main()
