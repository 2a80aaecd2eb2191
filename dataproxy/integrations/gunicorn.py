"""Hooks for gunicorn: messages that workers have accepted are delivered when they end.

In ``gunicorn.conf.py``::

    from dataproxy.integrations.gunicorn import worker_abort, worker_exit
"""

from __future__ import annotations

from typing import Any

from dataproxy.integrations import close_producers

__all__ = ["worker_abort", "worker_exit"]


def worker_exit(_server: Any, _worker: Any) -> None:
    """Close the producers of a worker that ends; gunicorn kills it after ``graceful_timeout``."""
    close_producers()


def worker_abort(_worker: Any) -> None:
    """Close the producers of a worker that gunicorn ends after its ``timeout``; little time is left then."""
    close_producers()
