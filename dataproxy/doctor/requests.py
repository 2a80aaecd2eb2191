"""The steps of an examination over HTTP, as ``protocol="http"`` reports."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlencode

from dataproxy.codes import code_name
from dataproxy.doctor.connecting import Failed
from dataproxy.doctor.conversation import Closed, Foreign, start_of

if TYPE_CHECKING:
    from dataproxy.doctor.connecting import Plan
    from dataproxy.doctor.conversation import Conversation
    from dataproxy.doctor.findings import MessageReport, ProxyReport

__all__ = ["beat", "message", "read_ack", "speaks_plain", "takes"]

_HEARTBEAT: Final = "/dataproxy/heartbeat"
_MESSAGE: Final = "/dataproxy/message"
_FORM: Final = "application/x-www-form-urlencoded"  # with a parameter behind it the server refuses it (36)
_OK: Final = 200
_EMPTY: Final = (204, 304)  # answers that have no body
_BAD_REQUEST: Final = 400
_TOO_LARGE: Final = 413
_LONGEST_ANSWER: Final = 1 << 16  # bytes of a body that are read
_LONGEST_TEXT: Final = 300  # characters of a foreign text that are shown
_READY: Final = 0
_NOT_READY: Final = (1, 2)
#: What the producer's own reader allows: what it refuses is wrong here, too.
_STATUS: Final = re.compile(rb"HTTP/1\.\d ([1-9]\d\d)(?: .*)?", re.DOTALL)
_LONGEST_HEAD: Final = 1 << 16
_MOST_FIELDS: Final = 256
_MOST_CHUNKS: Final = 1024
_MOST_DIGITS: Final = 18
_LONGEST_CHUNK_LINE: Final = 256
_CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,8})(?:[; \t].*)?", re.DOTALL)
#: The first of these decides, wherever it stands: the answer may be the call of a function.
_CODE: Final = re.compile(rb'"code"[ \t:]*"?(0*\d{1,10})(?=["},\s])')
_MOST_CODE: Final = (1 << 31) - 1
#: A DataProxy does not escape its text, so that a quote in it breaks the JSON.
_TEXT: Final = re.compile(rb'"msg"[ \t:]*"?(.*?)(?:" *(?:[,}]|\Z)|\Z)', re.DOTALL)
_NOT_HTTP: Final = (
    "this may be a DataProxy's port for TCP, which takes a request for a frame that is too long",
    "give the port for HTTP (46802 as shipped), or leave protocol=http out",
)
_NOT_PLAIN_HTTP: Final = (
    f"{_NOT_HTTP[0]}, or a port that wants TLS",
    f"{_NOT_HTTP[1]}; for TLS write tls:// before its address (or set tls=true)",
)
#: Of the page with which nginx and servers in Go tell of a request without TLS.
_WANTS_TLS: Final = re.compile(rb"\bHTTP request.{1,20}\bHTTPS (?:port|server)\b")
_UNREADABLE: Final = (
    "producers cannot read it either: another program has this port, or something on the way changes answers",
    "give the DataProxy's port for HTTP (46802 as shipped), and see what stands between",
)
_OTHER_CODE: Final = (
    "a DataProxy answers 0, or 1 or 2 while it takes no messages: another version of it, or another program, answers",
    "ask the operator for its version, and see what stands between",
)
_NOT_DATAPROXY: Final = (
    "another web server, such as a Manager, or a gateway answers in the place of a DataProxy",
    "give the DataProxy's port for HTTP (46802 as shipped), and see what stands between",
)


class _Answer(NamedTuple):
    """Hold what a server answered; ``code`` is None where it is no answer of a DataProxy."""

    status: int
    code: int | None
    text: str
    wants_tls: bool


@dataclass(slots=True)
class _Head:
    """Say where a body ends: behind ``length`` bytes, with the last chunk, or else with the connection."""

    status: int
    length: int | None = None
    chunked: bool = False


class _Incoming:
    """What comes on a conversation until ``end``, read as a producer reads it.

    All calls raise Foreign for what a producer refuses, and what a conversation raises.
    """

    def __init__(self, talk: Conversation, end: float) -> None:
        self._talk, self._end = talk, end
        self._at = 0  # up to here it is read

    def answer(self) -> tuple[int, bytes]:
        """Return status and body of the next answer; interim ones (1xx) are left out."""
        head = self._head()
        while head.status < _OK:
            self._talk.take(self._at)
            head = self._head()
        body = self._body(head)
        self._talk.take(self._at)
        return head.status, body

    def _wrong(self, what: str) -> Foreign:
        return Foreign(b"", what)

    def _head(self) -> _Head:
        self._begin()
        line = self._line(_LONGEST_HEAD)
        found = _STATUS.fullmatch(line)
        if found is None:
            raise self._wrong(f"its first line is {start_of(line)}")
        head = _Head(int(found[1]))
        for _ in range(_MOST_FIELDS + 1):
            line = self._line(_LONGEST_HEAD)
            if not line:
                return head
            self._field(line, head)
        raise self._wrong(f"its head has more than {_MOST_FIELDS} fields")

    def _begin(self) -> None:
        """Wait for the first bytes of an answer; empty lines before it are allowed."""
        while True:
            came = bytes(self._talk.came[:9])
            self._at = min(len(came) - len(came.lstrip(b"\r\n")), 4)
            start = came[self._at : self._at + 5]
            if not b"HTTP/".startswith(start):
                raise Foreign(self._talk.gist(self._end))
            if len(start) == len(b"HTTP/"):
                return
            self._talk.receive(self._end)

    def _line(self, most: int) -> bytes:
        start = self._at
        while (size := self._talk.came.find(b"\n", start) - start) < 0 and len(self._talk.came) - start < most:
            self._talk.receive(self._end)
        if not 0 <= size < most:
            raise self._wrong(f"its head has more than {most:,} bytes" if most == _LONGEST_HEAD else "a chunk is cut")
        self._at = start + size + 1
        return bytes(self._talk.came[start : start + size]).removesuffix(b"\r")

    def _field(self, line: bytes, head: _Head) -> None:
        name, colon, value = line.partition(b":")
        if not colon or not name or name != name.strip(b" \t"):
            raise self._wrong(f"its head has the line {start_of(line)}")
        name, value = name.lower(), value.strip(b" \t")
        if name == b"content-length":
            number = int(value) if value.isdigit() and len(value) <= _MOST_DIGITS else None
            if number is None or head.length not in (None, number) or head.chunked:
                raise self._wrong(f"its Content-Length is {start_of(value)}")
            head.length = number
        elif name == b"transfer-encoding":
            if value.lower() != b"chunked" or head.length is not None:
                raise self._wrong(f"its Transfer-Encoding is {start_of(value)}")
            head.chunked = True

    def _body(self, head: _Head) -> bytes:
        """Return the body, or what is read of a long one."""
        if head.status in _EMPTY:
            return b""
        if head.chunked:
            return self._chunks()
        if head.length is not None:
            return self._exactly(min(head.length, _LONGEST_ANSWER))
        return self._rest(head.status)

    def _exactly(self, size: int) -> bytes:
        start, self._at = self._at, self._at + size
        while len(self._talk.came) < self._at:
            self._talk.receive(self._end)
        return bytes(self._talk.came[start : self._at])

    def _chunks(self) -> bytes:
        body = b""
        for _ in range(_MOST_CHUNKS + 1):
            line = self._line(_LONGEST_CHUNK_LINE)
            found = _CHUNK.fullmatch(line)
            if found is None:
                raise self._wrong(f"a chunk of it begins with {start_of(line)}")
            size = int(found[1], 16)
            if size == 0:
                while self._line(_LONGEST_HEAD):
                    pass
                return body
            body += self._exactly(min(size, _LONGEST_ANSWER))
            if len(body) >= _LONGEST_ANSWER:
                return body
            if self._exactly(2) != b"\r\n":
                raise self._wrong("a chunk of it is longer than it says")
        raise self._wrong(f"it has more than {_MOST_CHUNKS:,} chunks")

    def _rest(self, status: int) -> bytes:
        """Return a body without a length: of a success up to the end of an object, else up to the end of all."""
        start = self._at
        try:
            while len(self._talk.came) - start < _LONGEST_ANSWER:
                if status == _OK and b"}" in self._talk.came[start:]:
                    break
                self._talk.receive(self._end)
        except Closed:
            pass
        except TimeoutError:
            if status == _OK:
                raise
        self._at = len(self._talk.came)
        return bytes(self._talk.came[start:])


def speaks_plain(talk: Conversation, plan: Plan, end: float) -> bool:
    """Tell whether a heartbeat has an answer in HTTP."""
    talk.send(_get(talk, _HEARTBEAT), end)
    return _answer(talk, end).status > 0


def beat(talk: Conversation, plan: Plan, report: ProxyReport) -> None:
    """Send a heartbeat and read its answer.  Raises Failed, and what a conversation raises.

    Over TCP a DataProxy answers heartbeats also while it can take no messages; over HTTP its answer says so.
    """
    started = time.monotonic()
    end = started + plan.timeout
    not_http = _NOT_PLAIN_HTTP if report.tls is None else _NOT_HTTP
    try:
        talk.send(_get(talk, _HEARTBEAT), end)
        answer = _answer(talk, end)
    except Foreign as error:
        if not error.wrong:
            raise
        text = f"its answer to a heartbeat cannot be read: {error.wrong}"
        raise Failed("malformed", text, *_UNREADABLE) from None
    except Closed as error:
        if error.partial:
            raise
        raise Failed("closed", "it closed the connection without an answer to a heartbeat", *not_http) from None
    except ConnectionError as error:
        raise Failed("reset", f"it ended the connection ({error.strerror or error})", *not_http) from None
    if answer.wants_tls and report.tls is None:
        raise Failed("tls", "it answers that it wants TLS")
    if answer.code is None:
        said = f"with status {answer.status}" if answer.status != _OK else "without a DataProxy's code"
        raise Failed("http", f"it answers {said}{_behind(answer.text)}", *_NOT_DATAPROXY)
    report.heartbeat_seconds = time.monotonic() - started
    report.heartbeat = "http"
    talk.over = True  # a server may end the connection behind an answer, and not say so before
    if answer.code != _READY:
        text = f"it answers a heartbeat with code {answer.code} {code_name(answer.code)}{_behind(answer.text)}"
        raise Failed("not_ready", text) if answer.code in _NOT_READY else Failed("malformed", text, *_OTHER_CODE)


def message(talk: Conversation, plan: Plan, body: bytes, mark: str, sequence: int) -> bytes:
    """Return a request with one message; it has no room for the mark and the number."""
    now = str(int(time.time() * 1000))
    fields = {"body": body, "groupId": plan.config.group_id, "streamId": plan.stream_id, "dt": now, "cnt": "1"}
    return _post(talk, _MESSAGE, urlencode(fields).encode())


def read_ack(talk: Conversation, end: float, sequence: int, report: MessageReport) -> None:
    """Wait for the answer to a request."""
    answer = _answer(talk, end)
    if answer.code is None:
        report.state = "malformed"
        report.text = f"it answers with status {answer.status} and without a DataProxy's code{_behind(answer.text)}"
        return
    report.code, report.text = answer.code, answer.text if answer.code else ""
    report.state = "acknowledged" if answer.code == 0 else "refused"


def takes(talk: Conversation, size: int, end: float) -> bool:
    """Tell whether a heartbeat of ``size`` bytes is answered; most of it is a form that nobody reads."""
    form = b"body=".ljust(size, b"0")
    for _ in range(2):  # a shorter form may have a shorter length in the head
        form = b"body=".ljust(size - len(_post(talk, _HEARTBEAT, form)) + len(form), b"0")
    talk.send(_post(talk, _HEARTBEAT, form), end)
    answer = _answer(talk, end)
    if answer.status != _TOO_LARGE and answer.code not in (_READY, *_NOT_READY):
        raise Foreign(b"")  # it says nothing of the size
    return answer.status != _TOO_LARGE


def _get(talk: Conversation, path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {talk.name}\r\nAccept: application/json\r\n\r\n".encode()


def _post(talk: Conversation, path: str, form: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: {talk.name}\r\nAccept: application/json\r\n"
    return f"{head}Content-Type: {_FORM}\r\nContent-Length: {len(form)}\r\n\r\n".encode() + form


def _answer(talk: Conversation, end: float) -> _Answer:
    """Return the next answer.  Raises Foreign for what is none, Closed, TimeoutError and other OSError."""
    status, body = _Incoming(talk, end).answer()
    code, text = _code_of(body)
    if code == _READY and not _OK <= status < 300:
        code = None  # a page of somebody else
    wants_tls = status == _BAD_REQUEST and _WANTS_TLS.search(body) is not None
    return _Answer(status, code, text[:_LONGEST_TEXT], wants_tls)


def _code_of(body: bytes) -> tuple[int | None, str]:
    """Return the code of an answer, as a producer finds it, and its text; None and the beginning if it has none."""
    at = -1 if body.lstrip().startswith(b"<") else body.find(b'"code"')
    found = None if at < 0 else _CODE.match(body, at)
    if found is None or int(found[1]) > _MOST_CODE:
        return None, start_of(body) if body else ""
    return int(found[1]), _text_of(body)


def _text_of(body: bytes) -> str:
    try:
        text = json.loads(body)["msg"]
    except (ValueError, TypeError, KeyError, RecursionError):
        text = None
    if isinstance(text, str):
        return text
    found = _TEXT.search(body)
    return found[1].decode("utf-8", "backslashreplace") if found else ""


def _behind(text: str) -> str:
    return f": {text}" if text else ""
