"""The golden vectors, loaded once."""

import json
from pathlib import Path
from typing import Any

__all__ = ["CONSTANTS", "NOW_MS", "VECTORS", "by_name", "named"]

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "data" / "golden" / "inlong.json").read_text(encoding="utf-8")
)
CONSTANTS = VECTORS["constants"]
NOW_MS: int = CONSTANTS["rcv_ms"]


def named(kind: str) -> list[Any]:
    """Return the entries of one list as parameters of a test, named."""
    import pytest

    return [pytest.param(entry, id=entry["name"]) for entry in VECTORS[kind]]


def by_name(kind: str, name: str) -> Any:
    """Return one entry of a list."""
    return next(entry for entry in VECTORS[kind] if entry["name"] == name)
