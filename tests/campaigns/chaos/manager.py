"""A Manager of a few lines that is down, slow or talks nonsense when it is told to."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Manager"]


class Manager:
    """Answer every look-up with the proxies of ``ports``; ``mood`` is good, down, slow or garbage."""

    def __init__(self, ports: list[int]) -> None:
        self.ports = list(ports)
        self.mood = "good"
        self.asked = 0
        self._ids: dict[int, int] = {}
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                owner.answer(self)

            do_GET = do_POST

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Return the address that producers ask."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer one look-up."""
        self.asked += 1
        request.rfile.read(int(request.headers.get("Content-Length") or 0))
        mood = self.mood
        if mood == "slow":
            time.sleep(0.7)
        nodes = [
            {"id": self._ids.setdefault(port, len(self._ids) + 1), "ip": "127.0.0.1", "port": port}
            for port in list(self.ports)
        ]
        data = {"clusterId": 1, "isIntranet": 1, "isSwitch": 0, "load": 20, "nodeList": nodes}
        text = json.dumps({"success": True, "errMsg": None, "data": data}).encode()
        if mood == "garbage":
            text = text[: len(text) // 2]
        with contextlib.suppress(OSError):  # who asked may be gone
            self._send(request, text, mood)

    @staticmethod
    def _send(request: BaseHTTPRequestHandler, text: bytes, mood: str) -> None:
        request.send_response(503 if mood == "down" else 200)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(text)))
        request.end_headers()
        request.wfile.write(text)

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
