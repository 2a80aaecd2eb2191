"""What a sender was told, as lines of a file: written by its process, read by the judge."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.campaigns.histories.history import Accounting, Close, History, Result, Told

__all__ = ["ToldLog", "read_told"]


class ToldLog:
    """Append lines; any thread."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", buffering=1 << 16)
        self._lock = threading.Lock()

    def line(self, *words: object) -> None:
        """Write one line."""
        text = "\t".join(map(str, words)) + "\n"
        with self._lock:
            self._file.write(text)

    def close(self) -> None:
        """Write what is left."""
        self._file.close()


def read_told(path: Path, history: History) -> int:
    """Add a sender's log to a history; return how often its frames were sent once more."""
    told: dict[tuple[str, int], Told] = {}
    again = 0
    for text in path.read_text().splitlines():
        kind, *words = text.split("\t")
        if kind == "A":
            producer, sequence, key, stream, digest, at, limit = words
            name = (producer, int(sequence))
            told[name] = Told(producer, name[1], key, int(digest), float(at), (), True, stream, float(limit))
        elif kind == "R":
            producer, sequence, outcome, maybe, at, own = words
            name = (producer, int(sequence))
            result = Result(outcome, float(at), maybe == "1", own)
            told[name] = told[name]._replace(results=(*told[name].results, result))
        elif kind == "B":
            producer, at, *numbers, final, sent = words
            history.accounting.append(Accounting(producer, float(at), *map(int, numbers), final == "1", int(sent)))
        elif kind == "X":
            again += int(words[1])
        elif kind == "C":
            producer, called, returned, timeout = words
            history.closes.append(Close(producer, float(called), float(returned), float(timeout)))
    history.told += told.values()
    return again
