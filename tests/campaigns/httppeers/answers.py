"""HTTP servers as no client wishes them: the mirror of ``requests``, to be run against any client.

``HostileServer`` plays one of the table: it takes a request and answers with ``data``, then with ``again`` for ever.
"""

from __future__ import annotations

import gzip
import json
import socket
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Self

__all__ = ["ANSWERS", "ENDLESS", "HostileAnswer", "HostileServer", "proxies"]

_DRIP_S = 0.01


@dataclass(frozen=True, slots=True)
class HostileAnswer:
    """Send ``data``, then ``again`` every 10 ms until the client is gone, or nothing more while ``holds``.

    With ``unasked`` that happens at once, otherwise behind a whole request.
    """

    data: bytes
    again: bytes = b""
    holds: bool = False
    unasked: bool = False

    @property
    def ends(self) -> bool:
        """Tell whether the server hangs up by itself."""
        return not self.again and not self.holds


def proxies(ip: str = "127.0.0.1", port: object = 46801, **more: object) -> bytes:
    """Return a Manager's answer with one proxy."""
    nodes = [{"id": 1, "ip": ip, "port": port, "protocolType": "TCP"}]
    return json.dumps({"success": True, "errMsg": None, "data": {"clusterId": 1, "nodeList": nodes, **more}}).encode()


def _head(*headers: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 " + status + b"\r\n" + b"".join(h + b"\r\n" for h in headers) + b"\r\n"


def _body(body: bytes, *headers: bytes) -> HostileAnswer:
    return HostileAnswer(_head(b"content-type: application/json", b"content-length: %d" % len(body), *headers) + body)


_CHUNKED = b"transfer-encoding: chunked"
_GOOD = proxies()
_DEEP = 200_000

#: None of these ever ends: only a limit of the client does.
ENDLESS: dict[str, HostileAnswer] = {
    "silence": HostileAnswer(b"", holds=True),
    "half a line": HostileAnswer(b"HTTP/1.", holds=True),
    "a line byte by byte": HostileAnswer(b"HTTP/1.1 200 ", again=b"O"),
    "a header byte by byte": HostileAnswer(b"HTTP/1.1 200 OK\r\nx: ", again=b"y"),
    "half a head": HostileAnswer(b"HTTP/1.1 200 OK\r\nx: y\r\n", holds=True),
    "continue for ever": HostileAnswer(b"", again=b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a body byte by byte": HostileAnswer(_head(b"content-length: 1000000"), again=b" "),
    "a body without a length": HostileAnswer(_head(), again=b" "),
    "chunks byte by byte": HostileAnswer(_head(_CHUNKED), again=b"1\r\n \r\n"),
    "a chunk's size byte by byte": HostileAnswer(_head(_CHUNKED), again=b"0"),
    "trailers for ever": HostileAnswer(_head(_CHUNKED) + b"0\r\n", again=b"x: y\r\n"),
    "half a body": HostileAnswer(_head(b"content-length: 1000") + _GOOD, holds=True),
    "a refusal byte by byte": HostileAnswer(_head(b"content-length: 1000000", status=b"503 Busy"), again=b"x"),
    "a redirection byte by byte": HostileAnswer(b"HTTP/1.1 302 Found\r\nlocation: /", again=b"/"),
}

ANSWERS: dict[str, HostileAnswer] = {
    **ENDLESS,
    "nothing": HostileAnswer(b""),
    "a head without a body": HostileAnswer(_head(b"content-length: 100")),
    "a head that breaks off": HostileAnswer(b"HTTP/1.1 200 OK\r\ncontent-le"),
    "no HTTP": HostileAnswer(b"\x1b[2J\x1b]0;x\x07\r\n\r\n"),
    "a body alone": HostileAnswer(_GOOD),
    "a status that is none": HostileAnswer(b"HTTP/1.1 \x1b[2J OK\r\n\r\n"),
    "a huge status": HostileAnswer(b"HTTP/1.1 99999999999999999999 OK\r\n\r\n"),
    "a huge line": HostileAnswer(b"HTTP/1.1 200 " + b"a" * 1_000_000 + b"\r\n\r\n"),
    "a huge header": HostileAnswer(_head(b"x: " + b"a" * 1_000_000)),
    "many headers": HostileAnswer(_head(*(b"x%d: y" % i for i in range(10_000)))),
    "a header that is none": HostileAnswer(_head(b"\xff\xfe\0")),
    "a short length": HostileAnswer(_head(b"content-length: 10") + _GOOD),
    "a long length": HostileAnswer(_head(b"content-length: 100000") + _GOOD),
    "a huge length": HostileAnswer(_head(b"content-length: " + b"9" * 30) + _GOOD),
    "a negative length": HostileAnswer(_head(b"content-length: -5") + _GOOD),
    "no number": HostileAnswer(_head(b"content-length: x") + _GOOD),
    "two lengths": HostileAnswer(_head(b"content-length: 5", b"content-length: 10") + _GOOD),
    "a chunk that is none": HostileAnswer(_head(_CHUNKED) + b"zz\r\nabc\r\n"),
    "a negative chunk": HostileAnswer(_head(_CHUNKED) + b"-5\r\nabc\r\n"),
    "a huge chunk": HostileAnswer(_head(_CHUNKED) + b"f" * 30 + b"\r\n" + _GOOD),
    "gzip that is none": _body(_GOOD, b"content-encoding: gzip"),
    "half a gzip": _body(gzip.compress(_GOOD)[:30], b"content-encoding: gzip"),
    "a gzip bomb": _body(gzip.compress(b" " * (64 << 20)), b"content-encoding: gzip"),
    "gzip in gzip": _body(gzip.compress(gzip.compress(_GOOD)), b"content-encoding: " + b", ".join([b"gzip"] * 50)),
    "to itself": HostileAnswer(_head(b"location: /", b"content-length: 0", status=b"307 Temporary Redirect")),
    "a huge body": _body(b" " * (9 << 20)),
    "arrays in arrays": _body(b"[" * _DEEP),
    "objects in objects": _body(b'{"a":' * _DEEP),
    "depth where nobody looks": _body(_GOOD[:-1] + b', "more": ' + b"[" * _DEEP + b"]" * _DEEP + b"}"),
    "depth in a proxy": _body(_GOOD.replace(b'"id": 1', b'"id": ' + b'{"a":[' * _DEEP + b"]}" * _DEEP)),
    "brackets without end": _body(b'{"success": true, "a": [' + b"[]," * 1_000_000),
    "a text without end": _body(b'{"success": true, "errMsg": "' + b'\\"' * 2_000_000),
    "brackets in a text": _body(proxies(name="[" * 100_000)),
    "a huge number": _body(_GOOD.replace(b"46801", b"9" * 100_000)),
    "a port of many digits": _body(proxies(port="9" * 100_000)),
    "a huge exponent": _body(_GOOD.replace(b"46801", b"1e999999999")),
    "no number at all": _body(_GOOD.replace(b"46801", b"NaN")),
    "no UTF-8": _body(_GOOD.replace(b"127.0.0.1", b"\xff\xfe")),
    "UTF-16": _body(_GOOD.decode().encode("utf-16")),
    "a charset that is none": HostileAnswer(
        _head(b"content-type: application/json; charset=nonsense", b"content-length: %d" % len(_GOOD)) + _GOOD
    ),
    "a type to obey": HostileAnswer(_head(b"content-type: \x1b[2J", b"content-length: 1") + b"x"),
    "half a pair": _body(_GOOD.replace(b"127.0.0.1", b"\\ud800")),
    "an address to obey": _body(proxies(ip="\x1b[2J\n10.0.0.1")),
    "an address with a path": _body(proxies(ip="evil.example/x?y#z@w")),
    "a long address": _body(proxies(ip="a" * 100_000)),
    "a reason to obey": _body(json.dumps({"success": False, "errMsg": "\x1b[2J\n\u202e[/oops]"}).encode()),
}


class HostileServer:
    """Answer every connection on loopback as one of the table does, until it is closed."""

    def __init__(self, answer: HostileAnswer) -> None:
        self._answer = answer
        self._stop = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()
        self.port = int(self._listener.getsockname()[1])

    def _accept(self) -> None:
        while True:
            peer, _ = self._listener.accept()
            if self._stop.is_set():
                peer.close()
                return
            self._threads.append(threading.Thread(target=self._serve, args=(peer,)))
            self._threads[-1].start()

    def _serve(self, peer: socket.socket) -> None:
        with peer:
            peer.settimeout(60)
            try:
                if not (self._answer.unasked or _take_request(peer)):
                    return
                peer.sendall(self._answer.data)
                while not self._answer.ends and not self._stop.wait(_DRIP_S):
                    if self._answer.again:
                        peer.sendall(self._answer.again)
            except OSError:  # the client is gone
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        socket.create_connection(("127.0.0.1", self.port)).close()
        for thread in self._threads:
            thread.join()
        self._listener.close()


def _take_request(peer: socket.socket) -> bool:
    """Read one request to the end of its body: to close before that resets the connection under the answer."""
    with peer.makefile("rb") as asked:
        length = 0
        while (line := asked.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return line != b"" and len(asked.read(length)) == length
