"""The golden vectors of RocketMQ, loaded once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["BY_NAME", "CAPTURED", "FRAMES", "VECTORS", "body_of", "captured_body", "captured_header"]

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "data" / "golden" / "rocketmq.json").read_text(encoding="utf-8")
)
FRAMES: list[dict[str, Any]] = VECTORS["frames"]
BY_NAME: dict[str, dict[str, Any]] = {frame["name"]: frame for frame in FRAMES}
CAPTURED: list[dict[str, Any]] = VECTORS["captured"]


def body_of(vector: dict[str, Any]) -> bytes:
    """Return the body of a synthetic frame."""
    return bytes.fromhex(vector["body_hex"]) if "body_hex" in vector else vector.get("body_text", "").encode()


def captured_header(vector: dict[str, Any]) -> bytes:
    """Return the header of a recorded frame."""
    data = bytes.fromhex(vector["hex"])
    return data[8 : 8 + int.from_bytes(data[5:8])]


def captured_body(vector: dict[str, Any]) -> bytes:
    """Return the body of a recorded frame."""
    data = bytes.fromhex(vector["hex"])
    return data[8 + int.from_bytes(data[5:8]) :]
