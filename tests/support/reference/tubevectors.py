"""The golden vectors of TubeMQ, loaded once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["BY_NAME", "FRAMES", "VECTORS", "request_payload"]

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "data" / "golden" / "tubemq.json").read_text(encoding="utf-8")
)
FRAMES: list[dict[str, Any]] = VECTORS["frames"]
BY_NAME: dict[str, dict[str, Any]] = {frame["name"]: frame for frame in FRAMES}


def request_payload(vector: dict[str, Any]) -> dict[str, Any]:
    """Return what stands around a request, by the names of the schema."""
    return {
        "flag": vector["rpc_conn_header"]["flag"],
        **vector["request_header"],
        **vector["request_body"],
        "request": bytes.fromhex(vector["message_hex"]),
    }
