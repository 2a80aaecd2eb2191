"""Hooks for gunicorn: what its workers have accepted is delivered when they end.

In ``gunicorn.conf.py``::

    from dataproxy.integrations.gunicorn import worker_abort, worker_exit
"""

from __future__ import annotations

from typing import Any

from dataproxy.integrations import close_producers

__all__ = ["worker_abort", "worker_exit"]


def worker_exit(_server: Any, _worker: Any) -> None:
    """Close the producers of a worker that ends; gunicorn cuts off what takes longer than ``graceful_timeout``."""
    close_producers()


def worker_abort(_worker: Any) -> None:
    """Close the producers of a worker that gunicorn ends for its silence (``timeout``); little time is left then."""
    close_producers()
