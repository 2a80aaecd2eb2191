"""Whether a hub can keep what it is sent, for ``/healthz`` and the log."""

from __future__ import annotations

from typing import Any, Final

from dataproxy.logs import logger

__all__ = ["HealthLog", "health_of"]

_log: Final = logger("hub")


def health_of(store: dict[str, Any]) -> dict[str, Any]:
    """Return what ``/healthz`` says about a store with these statistics.

    ``ok`` is false while the last commit failed: everything that is sent is refused then, until a commit succeeds.
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
        """Log what has changed since the last call."""
        trouble = "" if health["ok"] else str(health["store"]["trouble"])
        if trouble == self._trouble:
            return
        self._trouble = trouble
        if trouble:
            _log.error("the store takes nothing: %s; producers are told to come back", trouble)
        else:
            _log.warning("the store takes data again")
