"""What was configured of topics and consumer groups, kept as messages of a topic of the store itself."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

from dataproxy.hub.rocketmq.topics.remoting import Appends, Place, Remoting
from dataproxy.logs import logger
from dataproxy.wire.rocketmq.messages import StoredMessage

__all__ = ["KEPT_TOPIC", "Kept", "KeptResets"]

_log: Final = logger("hub.rocketmq")
KEPT_TOPIC: Final = "RMQ_SYS_HUB_CONFIG"
_GROUP: Final = "RMQ_SYS_HUB"
_PAGE, _PAGE_BYTES = 256, 4 << 20
_STALE: Final = 200  # changes behind a whole one, until the next start writes a whole one again
_PIECE: Final = 500  # topics in one message
_RESETS: Final = "reset"  # a kind
_AT: Final = 1  # the place of the time in a row


class Kept:
    """Configuration by kind and name, each a value of JSON.  One thread.

    A change is one message, the newest counts.  When there are many, a start writes all that counts once more, and the
    next one begins there.
    """

    def __init__(self, remoting: Remoting, appends: Appends) -> None:
        self._remoting, self._appends = remoting, appends
        self._values: dict[str, dict[str, Any]] = {}
        self._unsure: set[tuple[str, str]] = set()  # what the store did not take, and has to be written again
        self._writing: deque[list[Callable[[bool], None]]] = deque()  # of each write: who waits for it
        least, end = remoting.extent(KEPT_TOPIC, 0)
        self._begin = at = max(remoting.committed(_GROUP, KEPT_TOPIC, 0), least)
        while at < end:
            page = remoting.read(KEPT_TOPIC, 0, at, _PAGE, _PAGE_BYTES)
            if not page:
                break
            for _, data in page:
                self._take(StoredMessage.read(data).body)
            at = page[-1][0] + 1
        self._end = at

    def all(self, kind: str) -> dict[str, Any]:
        """Return the values of a kind by name."""
        return dict(self._values.get(kind, {}))

    def put(self, kind: str, name: str, value: Any) -> None:
        """Keep a value; None removes it.  Raises what the store raises; the same value is written once more then."""
        key = kind, name
        if self._values.get(kind, {}).get(name) == value and key not in self._unsure:
            return
        self._set(kind, name, value)
        try:
            self._write([[kind, name, value]], lambda whole: (self._unsure.discard if whole else self._unsure.add)(key))
        except BaseException:
            self._unsure.add(key)
            raise

    def after(self, done: Callable[[bool], None]) -> None:
        """Call a function when all that was put is in the store, with whether it is; at once if it is already."""
        if self._writing:
            self._writing[-1].append(done)
        else:
            done(True)

    def renew(self) -> None:
        """Write everything once more, if the next start would have to read much."""
        if self._end - self._begin <= _STALE:
            return
        rows = [[kind, name, value] for kind, named in self._values.items() for name, value in named.items()]
        begin = self._end
        pieces = [rows[i : i + _PIECE] for i in range(0, len(rows), _PIECE)] or [[]]
        for piece in pieces[:-1]:
            self._write(piece, lambda _: None)
        self._write(pieces[-1], lambda whole: self._begin_at(begin) if whole else None)

    def _begin_at(self, offset: int) -> None:
        self._begin = offset
        self._remoting.commit(_GROUP, KEPT_TOPIC, 0, offset)

    def _write(self, rows: list[list[Any]], done: Callable[[bool], None]) -> None:
        body = json.dumps(rows, separators=(",", ":")).encode()
        waiting = [done]

        def stored(places: list[Place]) -> None:
            whole = all(one.status == 0 for one in places)
            if not whole:
                _log.error("the configuration of topics and groups could not be stored; it counts until the hub ends")
            self._end = max(self._end, places[0].offset + 1)
            self._writing.remove(waiting)
            for one in waiting:
                one(whole)

        self._writing.append(waiting)
        try:
            self._appends.put([(KEPT_TOPIC, 0, StoredMessage(KEPT_TOPIC, 0, body).write())], stored)
        except BaseException:
            self._writing.remove(waiting)
            raise

    def _take(self, body: bytes) -> None:
        try:
            for kind, name, value in json.loads(body):
                self._set(str(kind), str(name), value)
        except (ValueError, TypeError):
            _log.error("a message of the topic %s is no configuration; it is left out", KEPT_TOPIC)

    def _set(self, kind: str, name: str, value: Any) -> None:
        named = self._values.setdefault(kind, {})
        if value is None:
            named.pop(name, None)
        else:
            named[name] = value


class KeptResets:
    """The epochs of resets, by group and topic, with times of day in the place of the hub's clock.  One thread."""

    def __init__(self, kept: Kept, now: float, wall_ms: int) -> None:
        self._kept, self._ahead = kept, wall_ms / 1000 - now

    def load(self, now: float) -> Iterator[tuple[str, str, Any]]:
        """Yield (group, topic, rows by queue) of all; what cannot be read is left out."""
        for name, rows in self._kept.all(_RESETS).items():
            try:
                group, topic = json.loads(name)
                yield str(group), str(topic), {queue: self._moved(row, -self._ahead) for queue, row in rows.items()}
            except (ValueError, TypeError, AttributeError, IndexError):
                _log.error("what was kept of the reset %r cannot be read; it is left out", name[:200])

    def save(self, group: str, topic: str, value: Any, now: float) -> None:
        """Keep the rows of a topic; None removes them."""
        rows = value and {queue: self._moved(row, self._ahead) for queue, row in value.items()}
        self._kept.put(_RESETS, json.dumps([group, topic]), rows)

    @staticmethod
    def _moved(row: list[Any], by: float) -> list[Any]:
        return [*row[:_AT], round(row[_AT] + by, 3), *row[_AT + 1 :]]
