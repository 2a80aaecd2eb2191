"""The HTTP report in plain Python: what a strict server does with one whole, well-formed request."""

from __future__ import annotations

import json
import urllib.parse
from dataclasses import dataclass, field

__all__ = ["Outcome", "answer_text", "build", "judge", "split"]

CLOSING = {1, 2, 31, 32, 35, 36, 114, 2147483647}
TYPE = "application/x-www-form-urlencoded"
BLANKS = "".join(map(chr, (*range(9, 14), *range(28, 33))))


@dataclass
class Outcome:
    """What comes of a request: a code and a text, and what is stored."""

    code: int = 0
    text: str = "Ok"
    closes: bool = False
    callback: str = ""
    record: bytes = b""
    attrs: dict[str, str] = field(default_factory=dict)


def build(method: str, target: str, body: bytes = b"", headers: dict[str, str] | None = None) -> bytes:
    """Return the bytes of a request."""
    lines = [f"{method} {target} HTTP/1.1", "Host: hub"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def split(data: bytes) -> tuple[str, dict[str, str], bytes]:
    """Return first line, headers by lower-case name, and body of a message."""
    head, _, body = data.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    return first, {name.strip().lower(): value.strip() for name, _, value in (one.partition(":") for one in rest)}, body


def answer_text(data: bytes) -> tuple[int, str, str]:
    """Return code, text and callback of an answer."""
    text = split(data)[2].decode()
    callback = ""
    if text.endswith(")"):
        callback, _, text = text[:-1].partition("(")
    value = json.loads(text)
    assert value.keys() == {"code", "msg"}
    return int(value["code"]), value["msg"], callback


def judge(data: bytes, now_ms: int, *, peer: str = "127.0.0.1", service: int = 0) -> Outcome:
    """Return what a strict server does; every topic is known."""
    first, headers, body = split(data)
    method, target, _ = first.split(" ")
    outcome = Outcome(closes=headers.get("connection", "").lower() == "close")
    path, _, query = target.partition("?")
    problem = _before_the_form(method, path, headers, service)
    if problem is None and path == "/dataproxy/heartbeat":
        return outcome
    if problem is None:
        texts = [query, body.decode("latin-1") if method == "POST" and "content-type" in headers else ""]
        problem = _form(texts, outcome, now_ms, peer)
    if problem is not None:
        outcome.code, outcome.text = problem
        outcome.closes |= outcome.code in CLOSING
    return outcome


def _before_the_form(method: str, path: str, headers: dict[str, str], service: int) -> tuple[int, str] | None:
    if service:
        return service, {1: "Service sink not ready", 2: "Service closed"}[service]
    if method not in ("GET", "POST"):
        return 32, "Only support [GET, POST] methods"
    if path not in ("/dataproxy/heartbeat", "/dataproxy/message"):
        return 35, "Only support [/dataproxy/heartbeat, /dataproxy/message] paths!"
    kind = headers.get("content-type")
    if path != "/dataproxy/message" or method != "POST" or kind is None:
        return None
    if kind.partition(";")[0].rstrip(" \t").lower() == TYPE:
        return None
    return 36, f"Only support [{TYPE}] content type!"


def _form(texts: list[str], outcome: Outcome, now_ms: int, peer: str) -> tuple[int, str] | None:
    found: dict[str, bytes] = {}
    for text in texts:
        for pair in filter(None, text.split("&")):
            name, _, value = pair.partition("=")
            if any(_broken(part) for part in (name, value)):
                return 31, "Decode request failure"
            found[_plain(name).decode("latin-1")] = _plain(value)
    group, stream = found.get("groupId", b""), found.get("streamId", b"")
    callback = found.get("callback", b"").decode("latin-1")
    if len(callback) <= 128 and all(c.isascii() and (c.isalnum() or c in "$._") for c in callback):
        outcome.callback = callback
    if _blank(group):
        return 100, "Field groupId must exist and not blank!"
    if _blank(stream):
        return 101, "Field streamId must exist and not blank!"
    if b"&" in group + stream or b"=" in group + stream or not _is_text(group) or not _is_text(stream):
        return 115, f"Topic not configured for groupId({_shown(group)}),streamId(,{_shown(stream)})"
    if "body" not in found:
        return 103, "Field body is not exist!"
    if _blank(found["body"]):
        return 111, "Field body is Blank!"
    outcome.record = found["body"]
    outcome.attrs = {
        "groupId": group.decode(), "streamId": stream.decode(), "dt": _number(found.get("dt"), now_ms),
        "clientIp": peer, "cnt": _number(found.get("cnt"), 1), "rt": str(now_ms), "rtms": str(now_ms),
    }  # fmt: skip
    audit = _number(found.get("auditVersion"), None)
    if audit is not None:
        outcome.attrs["auditVersion"] = audit
    return None


def _broken(text: str) -> bool:
    parts = text.split("%")[1:]
    return any(len(part) < 2 or not all(c in "0123456789abcdefABCDEF" for c in part[:2]) for part in parts)


def _is_text(name: bytes) -> bool:
    return name.decode(errors="ignore").encode() == name


def _shown(name: bytes) -> str:
    text = name.decode("utf-8", "surrogateescape")
    return "".join("\ufffd" if "\udc80" <= c <= "\udcff" else c for c in text)


def _plain(text: str) -> bytes:
    return urllib.parse.unquote_to_bytes(text.replace("+", " ").encode("latin-1"))


def _blank(value: bytes) -> bool:
    return not value.decode("latin-1").strip(BLANKS)


def _number(value: bytes | None, default: int | None) -> str | None:
    try:
        number = int((value or b"").decode("ascii"))
    except ValueError:
        number = None
    text = (value or b"").decode("latin-1").lstrip("+-")
    if number is None or not text.isascii() or not text.isdigit() or len(text) > 19 or abs(number) >= 1 << 63:
        return None if default is None else str(default)
    return str(number)
