"""Producers in servers that end their processes in ways of their own: Starlette and FastAPI, gunicorn, Celery.

Nothing of those servers is imported here; docs/services.md shows each one.
"""

from __future__ import annotations

from dataproxy.client.lifecycle import close_open

__all__ = ["close_producers"]


def close_producers() -> None:
    """Close every open producer of this process, as at its end: for servers that end it in another way.

    The longest ``close_timeout`` bounds all of them together.  What was not delivered is one record of level ERROR for
    each producer and one line on stderr.  Nothing is raised for that.  Thread: any.
    """
    close_open()
