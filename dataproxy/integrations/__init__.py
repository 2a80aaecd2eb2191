"""Producers in servers that end their processes in their own way: Starlette and FastAPI, gunicorn, Celery.

What lives here.  `starlette`, `gunicorn`, `celery`: one module for each.

Nothing of those servers is imported here; docs/services.md shows each one.
"""

from __future__ import annotations

from dataproxy.producer.lifecycle import close_open

__all__ = ["close_producers"]


def close_producers() -> None:
    """Close every open producer of this process, as at a normal end: for servers that end the process in another way.

    The longest ``close_timeout`` bounds all of them together.  Undelivered messages cause one ERROR record for each
    producer and one line on stderr, but no exception.  Thread: any.
    """
    close_open()
