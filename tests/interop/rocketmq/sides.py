"""One command of Java's client at RocketMQ's own servers and at the hub, and what of its lines has to be the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

from dataproxy.hub import Hub
from tests.support.tubekit import RocketServers

__all__ = ["Sides", "bodies"]

#: Ids, addresses and times differ; so does what a broker adds to a message for itself, or leaves in it.
_OWN: Final = {"id", "offsetId", "transaction", "clientAddr", "clientId", "version", "lastTimestamp", "cluster"}
_BROKERS: Final = {
    "CLUSTER", "CONSUME_START_TIME", "MAX_OFFSET", "MIN_OFFSET", "UNIQ_KEY", "ORIGIN_MESSAGE_ID", "MSG_REGION",
    "TRACE_ON", "WAIT", "DELAY", "REAL_TOPIC", "REAL_QID", "TRAN_MSG", "PGROUP",
}  # fmt: skip
_CODE: Final = re.compile(r"^(CODE: \d+).*", re.DOTALL)
_ADDRESS: Final = re.compile(r"\d+\.\d+\.\d+\.\d+:\d+")


class Sides:
    """RocketMQ's servers and a hub, to which the same is done."""

    def __init__(self, servers: RocketServers, hub: Hub) -> None:
        self._servers, self._names = servers, ("", f"127.0.0.1:{hub.rocketmq_port}")
        self._pool = ThreadPoolExecutor(4)
        self._given: Counter[str] = Counter()

    def new(self, name: str) -> str:
        """Return a name for a topic or group of one test: tried again, it does not meet what its first try left."""
        self._given[name] += 1
        return name if self._given[name] == 1 else f"{name}_{self._given[name]}"

    def both(self, command: str, *words: object, codes: tuple[int, ...] = (0,), order: bool = True) -> list[Any]:
        """Run a command at both, one after the other, and return its lines, which are the same.

        Without ``order`` they are the same in any order.
        """
        found = [_lines(self._servers.drive(command, *words, names=names, codes=codes), order) for names in self._names]
        hub, own = found[1], found[0]
        assert hub == own, f"{command} {words} at the hub: {hub}, and at RocketMQ's own servers: {own}"
        return found[0]

    @contextmanager
    def beside(self, command: str, *words: object) -> Iterator[list[Future[list[Any]]]]:
        """Run a command at both while something else is done; at the end it has ended at both."""
        found = [self._pool.submit(self._servers.drive, command, *words, names=names, codes=(0, 3))
                 for names in self._names]  # fmt: skip
        try:
            yield found
        finally:
            for one in found:
                one.result(120)

    @property
    def each(self) -> tuple[str, str]:
        """Return the addresses of the name servers: RocketMQ's, and the hub."""
        return self._names

    def at(self, names: str, command: str, *words: object, codes: tuple[int, ...] = (0,)) -> list[Any]:
        """Run a command at one of them, and return its lines."""
        return self._servers.drive(command, *words, names=names, codes=codes)

    def close(self) -> None:
        self._pool.shutdown()


def bodies(lines: list[Any]) -> list[str]:
    """Return the bodies that a client received."""
    return [line["body"] for line in lines if line.get("event") == "received"]


def _lines(lines: list[Any], order: bool) -> list[Any]:
    found = [_same(line) for line in lines]
    return found if order else sorted(found, key=repr)


def _same(value: Any, name: str = "") -> Any:
    """Return a value without what may differ."""
    if isinstance(value, dict):
        left = _OWN | (_BROKERS if name == "properties" else set())
        return {_text(key): _same(one, key) for key, one in value.items() if key not in left}
    if isinstance(value, list):
        return sorted((_same(one) for one in value), key=repr) if name else [_same(one) for one in value]
    return _text(value) if isinstance(value, str) else value


def _text(text: str) -> str:
    plain = _ADDRESS.sub("<address>", _CODE.sub(r"\1", text))
    return plain.replace("broker-a", "<broker>").replace("dataproxy", "<broker>")
