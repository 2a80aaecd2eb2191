"""Whether a hub can store requests, for ``/healthz`` and the log."""

from __future__ import annotations

import time
from typing import Any, Final

from dataproxy.logs import logger

__all__ = ["ForgottenLog", "HealthLog", "health_of"]

_log: Final = logger("hub")
_AGAIN_SECONDS: Final = 60.0  # between two warnings of forgotten ids or rows


def health_of(store: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of ``/healthz`` for a store with these statistics.

    ``ok`` is false if the last commit failed: all requests are then refused until a commit succeeds.
    """
    trouble = store.get("trouble", "")
    if not trouble:
        return {"ok": True}
    return {"ok": False, "store": {"trouble": trouble, "failures": store["failures"]}}


class HealthLog:
    """Log each change of a hub's health once.  Only one thread calls it."""

    def __init__(self) -> None:
        self._trouble = ""

    def note(self, health: dict[str, Any]) -> None:
        """Log the change since the last call, if there is one."""
        trouble = "" if health["ok"] else str(health["store"]["trouble"])
        if trouble == self._trouble:
            return
        self._trouble = trouble
        if trouble:
            _log.error("the store accepts nothing: %s; producers are told to retry", trouble)
        else:
            _log.warning("the store accepts data again")


class ForgottenLog:
    """Warn when ids or rows were forgotten before their time, once a minute at most.  Only one thread calls it."""

    def __init__(self) -> None:
        self._ids = self._rows = 0
        self._not_before = 0.0

    def note(self, store: dict[str, Any]) -> None:
        """Log how many were forgotten since the last warning, by the statistics of a store."""
        ids, rows = store.get("forgotten_ids", 0), store.get("forgotten_rows", 0)
        if (ids, rows) == (self._ids, self._rows) or time.monotonic() < self._not_before:
            return
        _log.warning(
            "%d ids and %d rows were forgotten before dedupe_window and dedupe_rows_window ended, because their memory"
            " was full: later copies of them are stored again; raise dedupe_memory",
            ids - self._ids,
            rows - self._rows,
        )
        self._ids, self._rows = ids, rows
        self._not_before = time.monotonic() + _AGAIN_SECONDS
