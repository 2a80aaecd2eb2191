"""HTTP clients as no server wishes them: what each sends, and how a server may end it.

A table to be run against any HTTP server; ``run`` plays one of them and tells what came of it.
"""

from __future__ import annotations

import gzip
import socket
from dataclasses import dataclass

__all__ = ["CLOSED", "HOSTILE", "NEVER_READ", "Hostile", "run"]

#: The connection ended without an answer.
CLOSED = 0
_FORM = b"content-type: application/x-www-form-urlencoded"
_ASK = b"POST /inlong/manager/openapi/dataproxy/getIpList/g HTTP/1.1\r\nhost: 127.0.0.1\r\n"
_END = b"connection: close\r\n\r\n"
_WAIT_S = 60


@dataclass(frozen=True, slots=True)
class Hostile:
    """Send ``data`` and read; fair ends are the statuses in ``fair``, of which CLOSED is one.

    With ``waits`` the client waits for the server to lose patience, otherwise it says that it will send no more.
    """

    data: bytes
    fair: frozenset[int]
    waits: bool = False


def _get(path: bytes, *headers: bytes) -> bytes:
    return b"GET " + path + b" HTTP/1.1\r\nhost: 127.0.0.1\r\n" + b"".join(h + b"\r\n" for h in headers) + _END


def _form(body: bytes, *headers: bytes, length: int | None = None) -> bytes:
    size = b"content-length: %d" % (len(body) if length is None else length)
    return _ASK + b"".join(h + b"\r\n" for h in (*headers, size)) + _END + body


def _charset(name: bytes, body: bytes = b"protocolType=TCP") -> bytes:
    return _form(body, _FORM + b"; charset=" + name)


def _multipart(part: bytes) -> Hostile:
    """Return a form in parts, which no SDK sends: a server may know them or leave them."""
    return _bad(_form(part, b"content-type: multipart/form-data; boundary=x"), 200)


def _bad(data: bytes, *more: int) -> Hostile:
    return Hostile(data, frozenset({CLOSED, 400, *more}))


def _late(data: bytes, *more: int) -> Hostile:
    return Hostile(data, frozenset({CLOSED, 408, *more}), waits=True)


_PART = b'--x\r\ncontent-disposition: form-data; name="protocolType"\r\n'
_BOMB = gzip.compress(b"a" * (64 << 20))

HOSTILE: dict[str, Hostile] = {
    "silence": _late(b""),
    "half a line": _late(b"GET /healthz"),
    "half a head": _late(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n"),
    "half a header": _late(b"GET /healthz HTTP/1.1\r\nho"),
    "half a body": _late(_form(b"protocolType", _FORM, length=100)),
    "a body that never begins": _late(_form(b"", _FORM, length=100)),
    "half a chunk": _late(_ASK + _FORM + b"\r\ntransfer-encoding: chunked\r\n\r\n5\r\npro"),
    "half a part": _late(_form(_PART, b"content-type: multipart/form-data; boundary=x", length=500), 200),
    "half a request behind a whole one": Hostile(
        b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\nGET /heal", frozenset({200}), waits=True
    ),
    **{
        f"charset {name[:9]!r}": _bad(_charset(name))
        for name in (b"nonsense", b"rot13", b"hex", b"zlib", b"undefined", b"\xff", b"x" * 4000)
    },
    "charset that the body breaks": _bad(_charset(b"utf-16", b"abc")),
    "charset utf-7": _bad(_charset(b"utf-7", b"protocolType=+2AA"), 200),
    "no UTF-8": _bad(_form(b"protocolType=\xff\xfe", _FORM), 200),
    "escapes that are none": _bad(_form(b"protocolType=%zz%&%&=&==%ff", _FORM), 200),
    "too many fields": _bad(_form(b"&".join(b"%d=" % i for i in range(9000)), _FORM), 200, 413),
    "charset of a part": _multipart(_PART + b"content-type: text/plain; charset=nonsense\r\n\r\nTCP\r\n--x--\r\n"),
    "no boundary": _bad(_form(b"a", b"content-type: multipart/form-data"), 200),
    "another boundary": _multipart(b"--y\r\n\r\n\r\n--y--\r\n"),
    "a part without an end": _multipart(_PART + b"\r\nTCP"),
    "a part in a part": _multipart(
        b"--x\r\ncontent-type: multipart/mixed; boundary=y\r\n\r\n" + b"--y\r\n\r\n--y--\r\n--x--\r\n"
    ),
    "encoding of a part": _multipart(_PART + b"content-transfer-encoding: nonsense\r\n\r\nTCP\r\n--x--\r\n"),
    "gzip that is none": _bad(_form(b"nonsense", _FORM, b"content-encoding: gzip")),
    "half a gzip": _bad(_form(gzip.compress(b"protocolType=TCP")[:12], _FORM, b"content-encoding: gzip"), 200),
    "a gzip bomb": _bad(_form(_BOMB, _FORM, b"content-encoding: gzip"), 413),
    "encoding that is none": _bad(_form(b"a=b", _FORM, b"content-encoding: nonsense"), 200),
    "a body that is too large": _bad(_form(b"a=" + b"b" * 100_000, _FORM), 413),
    "a length that is too large": Hostile(
        _form(b"a=b", _FORM, length=10**15), frozenset({CLOSED, 400, 408, 413}), waits=True
    ),
    **{
        f"length {length[:9]!r}": _bad(_ASK + b"content-length: " + length + b"\r\n" + _END)
        for length in (b"-1", b"x", b"1e3", b"+5", b"0x10", b"9" * 40)
    },
    "two lengths": _bad(_ASK + b"content-length: 0\r\ncontent-length: 5\r\n" + _END + b"a=bcd"),
    "a length and chunks": _bad(
        _ASK + b"content-length: 5\r\ntransfer-encoding: chunked\r\n" + _END + b"0\r\n\r\n", 200
    ),
    "chunks that are none": _bad(_ASK + b"transfer-encoding: chunked\r\n" + _END + b"zz\r\nabc\r\n"),
    "a huge chunk": _bad(_ASK + b"transfer-encoding: chunked\r\n" + _END + b"f" * 40 + b"\r\n", 413),
    "a huge line": _bad(_get(b"/" + b"a" * 200_000), 414),
    "a huge header": _bad(_get(b"/healthz", b"x: " + b"a" * 1_000_000), 431),
    "a huge name": _bad(_get(b"/healthz", b"a" * 1_000_000 + b": x"), 431),
    "many headers": _bad(_get(b"/healthz", *(b"x%d: y" % i for i in range(20_000))), 431),
    "a header without a name": _bad(_get(b"/healthz", b": x")),
    "a header in two lines": _bad(_get(b"/healthz", b"x: a\r\n b"), 200),
    "NUL in a header": _bad(_get(b"/healthz", b"x: \0"), 200),
    "NUL in a path": _bad(_get(b"/hub/\0"), 404),
    "no ASCII in a path": _bad(_get(b"/hub/\xff\xc3\x28"), 404),
    "no UTF-8 in a path": _bad(_get(b"/hub/records?group=%ff%fe&start=%c3%28"), 200),
    "half of a surrogate pair": _bad(_get(b"/hub/records?group=%ed%a0%80&stream=%ed%b0%80"), 200),
    "NUL in a group": _bad(_get(b"/hub/records?group=%00&stream=%00"), 200),
    "escape sequences in a path": _bad(_get(b"/hub/%1b%5b2J%0d%0ax:y"), 404),
    "dots in a path": _bad(_get(b"/hub/../../../etc/passwd"), 404),
    "digits that are none": _bad(_get(b"/hub/records?group=g&start=%d9%a3&limit=%d9%a3")),
    "digits without end": _bad(_get(b"/hub/records?group=g&start=" + b"9" * 6000)),
    "entries of nothing": _bad(_get(b"/hub/entries")),
    "entries of no log": _bad(_get(b"/hub/entries?group=g&partition=4294967295&from=0&to=9223372036854775807"), 200),
    "entries of no partition": _bad(_get(b"/hub/entries?group=g&partition=4294967296&from=0&to=1")),
    "entries without an end": _bad(_get(b"/hub/entries?group=g&partition=0&from=0")),
    "entries from behind": _bad(_get(b"/hub/entries?group=g&partition=0&from=-1&to=1")),
    "entries beyond numbers": _bad(_get(b"/hub/entries?group=g&partition=0&from=0&to=" + b"9" * 6000)),
    "entries by other digits": _bad(_get(b"/hub/entries?group=g&partition=%d9%a3&from=0&to=1")),
    "entries of no text": _bad(_get(b"/hub/entries?group=%ed%a0%80&stream=%ff&partition=0&from=0&to=1"), 200),
    "logs of nothing": _bad(_get(b"/hub/logs")),
    "logs at no time": _bad(_get(b"/hub/logs?group=g&time=-1")),
    "logs of no text": _bad(_get(b"/hub/logs?group=%ed%b0%80%00&time=9223372036854775807"), 200),
    "no host": _bad(b"GET /hub/stats HTTP/1.1\r\n" + _END, 403),
    "two hosts": _bad(_get(b"/hub/stats", b"host: evil.example"), 200, 403),
    "a host that is none": _bad(b"GET /hub/stats HTTP/1.1\r\nhost: [::\xff\r\n" + _END, 403),
    "no base64": _bad(_get(b"/hub/stats", b"authorization: Basic \xff\xff"), 200, 403),
    "a token that is none": _bad(
        b"POST /hub/faults HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer \xff\r\n" + _END, 403
    ),
    "a method that is none": _bad(b"\x1b[2J / HTTP/1.1\r\n" + _END, 405),
    "another method": _bad(b"PURGE /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n" + _END, 405),
    "connect": _bad(b"CONNECT evil.example:443 HTTP/1.1\r\nhost: evil.example:443\r\n" + _END, 404, 405),
    "a URL of another": _bad(_get(b"http://evil.example/hub/stats"), 200, 403),
    "a star": _bad(b"OPTIONS * HTTP/1.1\r\nhost: 127.0.0.1\r\n" + _END, 404, 405),
    "another version": _bad(b"GET /healthz HTTP/9.9\r\nhost: 127.0.0.1\r\n" + _END, 200, 505),
    "HTTP/2": _bad(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 404, 405, 505),
    "an expectation that is no UTF-8": _bad(_get(b"/healthz", b"expect: \x9c"), 417, 500),
    "an upgrade": _bad(_get(b"/healthz", b"upgrade: websocket"), 200),
    "an expectation": _bad(_get(b"/healthz", b"expect: nonsense"), 200, 417),
    "TLS": _bad(bytes.fromhex("16030100c8010000c4030300") + b"\0" * 200),
    "a frame for the other port": _bad(b"\0\0\0\x10\x07" + b"\0" * 15),
    "line feeds": _bad(b"\n" * 10_000),
    "requests without end": Hostile(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * 500, frozenset({200})),
}

#: Asks for as many pages as a connection takes, and reads none.
NEVER_READ = b"GET /hub/records?group=g&limit=10000 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * 20


def run(hostile: Hostile, address: tuple[str, int]) -> int:
    """Play a client against the server at ``address``; return the status of its first answer, or CLOSED.

    Returns when the server has ended the connection.
    """
    with socket.create_connection(address, timeout=_WAIT_S) as connection:
        answer = b""
        try:
            connection.sendall(hostile.data)
            if not hostile.waits:
                connection.shutdown(socket.SHUT_WR)
            while chunk := connection.recv(1 << 16):
                answer += chunk
        except TimeoutError:  # the server is asleep
            raise
        except OSError:  # it has hung up
            pass
    first = answer.partition(b"\r\n")[0].split(b" ")
    return int(first[1]) if len(first) > 1 and first[1].isdigit() else CLOSED
