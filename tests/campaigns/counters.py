"""Counters of laboratory runs, kept as JSON below ``build/lab``: where the figures of docs/reliability.md come from."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "keep"]

FOLDER = Path(__file__).parents[2] / "build" / "lab"


def keep(name: str, facts: dict[str, Any]) -> Path:
    """Append one run's facts to ``build/lab/<name>.json`` and return the file."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / f"{name}.json"
    runs = json.loads(file.read_text()) if file.exists() else []
    runs.append({"at": datetime.now(UTC).isoformat(timespec="seconds"), **facts})
    written = file.with_suffix(f".{os.getpid()}")
    written.write_text(json.dumps(runs, indent=1, sort_keys=True) + "\n")
    written.replace(file)
    return file
