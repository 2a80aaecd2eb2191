"""Fuzz target: the Manager server.  Every connection ends, the server stays well, and logs no error."""

import atexit
import functools
import http.client
import logging

from dataproxy.hub import Hub
from dataproxy.hub.web import manager
from dataproxy.hub.web.connections import HttpLimits
from tests.campaigns.httppeers.requests import CLOSED, HOSTILE, Hostile, run
from tests.fuzz.engine import main

__all__ = ["SEEDS", "check"]

_TOKEN = b"the-token-of-the-fuzzer"
_ADMIN = b"host: localhost\r\nauthorization: Bearer " + _TOKEN + b"\r\ncontent-type: application/json\r\n"
_STATUSES = range(200, 600)

SEEDS = [
    *(one.data for one in HOSTILE.values() if len(one.data) <= 4096),
    b"GET /hub/stats HTTP/1.1\r\n" + _ADMIN + b"\r\n",
    b"GET /hub/records?group=g&stream=s&start=0,1:5&limit=10 HTTP/1.1\r\n" + _ADMIN + b"\r\n",
    b"GET /hub/entries?group=g&stream=s&partition=0&from=0&to=10 HTTP/1.1\r\n" + _ADMIN + b"\r\n",
    b"GET /hub/logs?group=g&time=5 HTTP/1.1\r\n" + _ADMIN + b"\r\n",
    b"POST /hub/faults HTTP/1.1\r\ncontent-length: 24\r\n" + _ADMIN + b'\r\n{"kind": "manager_slow"}',
    b"DELETE /hub/faults HTTP/1.1\r\n" + _ADMIN + b"\r\n",
    b"POST /hub/listeners/0/refuse HTTP/1.1\r\ncontent-length: 2\r\n" + _ADMIN + b"\r\n{}",
]


class _Errors(logging.Handler):
    """Keep what is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(logging.Formatter().format(record))


@functools.cache
def _served() -> tuple[Hub, _Errors]:
    usual = manager.HttpLimits
    manager.HttpLimits = lambda: HttpLimits(request=0.2, idle=0.2)  # type: ignore[assignment,misc]
    try:
        hub = Hub(token=_TOKEN.decode(), fault_api="on")
    finally:
        manager.HttpLimits = usual  # type: ignore[misc]
    atexit.register(hub.close)
    errors = _Errors()
    logging.getLogger("dataproxy.hub").addHandler(errors)
    return hub, errors


def check(data: bytes) -> None:
    """Send the bytes, say that no more will come, and see how it ends."""
    hub, errors = _served()
    address = ("127.0.0.1", hub.manager_port)
    status = run(Hostile(data, frozenset()), address)
    hub.faults.clear()  # one of them may have been armed, and what it holds up goes on
    if status != CLOSED and status not in _STATUSES:
        raise AssertionError(f"the answer has the status {status}")
    if errors.texts:
        raise AssertionError(errors.texts.pop())
    connection = http.client.HTTPConnection(*address, timeout=30)
    try:
        connection.request("GET", "/healthz")
        if connection.getresponse().status != http.client.OK:
            raise AssertionError("the server is not well")
    finally:
        connection.close()


if __name__ == "__main__":
    main(check, SEEDS)
