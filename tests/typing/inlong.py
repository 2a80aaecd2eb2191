"""Typed programs of InLong's own Python SDK pass the type checker with the module that takes its place."""

from __future__ import annotations

from pathlib import Path

import inlong_dataproxy
from inlong_dataproxy import UserCallBack

__all__ = ["use"]


def _failed(group: str, stream: str, msg: str, msg_len: int, report_time: int, ip: str) -> int:
    return len(group + stream + msg + ip) + msg_len + report_time


def use(path: Path) -> int:
    """Call everything as such a program does, and what is new."""
    callback: UserCallBack = _failed
    api = inlong_dataproxy.InLongApi()
    status: int = api.init_api(str(path)) or api.init_api(path)
    status += api.send("g", "s", "text", 4) + api.send("g", "s", "text", 4, None)
    status += api.send("g", "s", "text", 4, callback) + api.send("g", "s", b"bytes", 5, pyCallback=_failed)
    status += api.send("g", "s", "text", 4, on_delivery=lambda result: result.error)
    status += api.close_api(1000) + api.counts().pending
    return status if api.last_error is None else int(inlong_dataproxy.SdkCode.ERROR_INIT)
