"""Records that were done with before, by their message ids: so that one that comes twice is given once."""

from __future__ import annotations

import threading
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from dataproxy.errors import ConfigError
from dataproxy.problems import shown

if TYPE_CHECKING:
    from dataproxy._core.consumer.pack import Pack

__all__ = ["PackIds", "SeenRecords"]

_DIGEST_BYTES: Final = 16
_MOST: Final = 1 << 32
_LATE: Final = 16  # packs that expired without a confirm, and are kept in memory for one


class SeenRecords:
    """Remember which records were done with, by group, stream and message id, for ``inlong_records(dedupe=...)``.

    A record counts as done with when the confirm of its pack was asked for, whatever became of the confirm.  Records of
    packs that were given back, or expired without it, are given again.  Records without a message id are always given.
    A confirm that is asked for too late counts for the 16 newest packs that have expired.

    It remembers at least the ``most`` newest ones and at most twice as many, about 100 bytes for each: in this process,
    until the object is gone.  One object can serve several consumers.  Any thread.
    """

    def __init__(self, most: int = 100_000) -> None:
        if type(most) is not int or not 1 <= most <= _MOST:
            raise ConfigError(f"most={shown(most)} is no number of records", hint=f"give 1 to {_MOST}")
        self.most = most
        #: Records that were left out.
        self.duplicates = 0
        self._new: set[bytes] = set()
        self._old: set[bytes] = set()
        self._open: list[PackIds] = []
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Return how many records are remembered."""
        with self._lock:
            self._settle()
            return len(self._new) + len(self._old)

    def clear(self) -> None:
        """Forget everything: after a seek back, records that were done with come again."""
        with self._lock:
            self._new, self._old, self._open = set(), set(), []

    def __repr__(self) -> str:
        return f"<SeenRecords, at least {self.most}, {self.duplicates} duplicates>"

    def _begin(self, pack: Pack) -> PackIds:
        """Return the ids of a pack whose records are given out now.  Any thread."""
        ids = PackIds(self, pack)
        with self._lock:
            self._settle()
            self._open.append(ids)
        return ids

    def _is_new(self, ids: PackIds, record: tuple[str, str, str]) -> bool:
        """Return whether a record is to be given out, and count one that is not.  Any thread."""
        digest = _digest(record)
        with self._lock:
            if digest in self._new or digest in self._old or digest in ids.given:
                self.duplicates += 1
                return False
            ids.given.add(digest)
            if ids.settled:  # its pack was confirmed before this record was given out
                self._remember(digest)
            return True

    def _settle(self) -> None:
        """Remember what packs had that are done with; forget what was given back.  Locks: the caller has it."""
        waiting, late = [], []
        for ids in self._open:
            if ids.pack.done:
                ids.settled = True
                for digest in ids.given:
                    self._remember(digest)
            elif ids.pack.outcome == "held":
                waiting.append(ids)
            elif ids.pack.outcome == "expired":  # its confirm may still be asked for, too late
                late.append(ids)
        self._open = [*late[-_LATE:], *waiting]

    def _remember(self, digest: bytes) -> None:
        if digest in self._old:
            return
        self._new.add(digest)
        if len(self._new) >= self.most:
            self._new, self._old = set(), self._new


class PackIds:
    """What was given out of one pack, until it is known whether that is done with."""

    def __init__(self, seen: SeenRecords, pack: Pack) -> None:
        self.pack = pack
        self.given: set[bytes] = set()
        self.settled = False  # they are remembered
        self._seen = seen

    def is_new(self, group_id: str, stream_id: str, message_id: str) -> bool:
        """Return whether a record is to be given out."""
        return not message_id or self._seen._is_new(self, (group_id, stream_id, message_id))


def _digest(record: tuple[str, str, str]) -> bytes:
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for text in record:
        data = text.encode("utf-8", "surrogateescape")
        digest.update(len(data).to_bytes(4))
        digest.update(data)
    return digest.digest()
