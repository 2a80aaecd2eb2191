"""Names of writes, with which the ids of their rows begin."""

from __future__ import annotations

import base64
import hashlib
import secrets
from typing import Final

__all__ = ["named_run", "new_run", "query_name", "stream_run"]

_BYTES: Final = 6  # 48 bits: eight characters


def new_run() -> str:
    """Return a new random name of a batch write: eight characters."""
    return base64.urlsafe_b64encode(secrets.token_bytes(_BYTES)).decode()


def named_run(run_id: str) -> str:
    """Return the name for the ids of a write with a ``runId``: eight characters from the SHA-256 of it."""
    return base64.urlsafe_b64encode(hashlib.sha256(b"run " + run_id.encode()).digest()[:_BYTES]).decode()


def query_name(query_id: str) -> str:
    """Return the name of a streaming query: eight characters from the SHA-256 of its id.

    The id is that of the query's checkpoint, so that a restarted query has the same name.
    """
    return base64.urlsafe_b64encode(hashlib.sha256(query_id.encode()).digest()[:_BYTES]).decode()


def stream_run(query_id: str, batch_id: str) -> str:
    """Return the name of a micro-batch, the same when it is run again."""
    return f"{query_name(query_id)}.{batch_id}"
