"""Hooks for Celery: messages that tasks have sent are delivered when a worker's process ends.  Needs ``celery``.

::

    from dataproxy.integrations.celery import install

    install()
"""

from __future__ import annotations

from celery import signals

from dataproxy.integrations import close_producers

__all__ = ["install"]


def install() -> None:
    """Close producers at the end of pool processes and of workers, whichever pool they have.

    Producers that were opened after the import of ``celery`` are closed at the end of pool processes even without this.
    A second call changes nothing.  Thread: any.
    """
    signals.worker_process_shutdown.connect(_ends, weak=False, dispatch_uid="dataproxy.integrations")
    signals.worker_shutdown.connect(_ends, weak=False, dispatch_uid="dataproxy.integrations")


def _ends(**_: object) -> None:
    close_producers()
