"""What an InLong DataProxy does with one data frame, in plain Python, written from the specification.

``compat`` copies the reference server's quirks, otherwise the strict profile of the hub applies.
"""

import struct
from dataclasses import dataclass, field

from tests.support.reference.frames import MalformedAttributes, strict_attributes, text_frame
from tests.support.reference.snappy import SnappyError, unpack

__all__ = ["Outcome", "serve"]

NODE = b"127.0.0.1"
BLANKS = bytes(range(33))
LIMIT = 20 * 1024 * 1024


@dataclass
class Outcome:
    """One reaction; ``message`` is not compared where the specification leaves the text open."""

    action: str
    code: int = 0
    reply: bytes = b""
    open_text: bool = False
    records: list[bytes] = field(default_factory=list)
    attrs: dict[bytes, bytes] = field(default_factory=dict)


class _Refusal(Exception):
    def __init__(self, code: int, message: bytes = b"", *, echo: bool = True, open_text: bool = False) -> None:
        super().__init__(code)
        self.code, self.message, self.echo, self.open_text = code, message, echo, open_text


class _Close(Exception):
    pass


class _Server:
    def __init__(self, frame: bytes, now_ms: int, *, compat: bool, known: set[bytes] | None, service_code: int) -> None:
        self.frame, self.now, self.compat = frame, str(now_ms).encode(), compat
        self.known, self.service_code = known, service_code
        self.kind = frame[4] & 31
        self.text = b""
        self.body = b""
        self.attrs: dict[bytes, bytes] = {}
        self.silent = self.sink = False

    # -- replies

    def reply(self, parts: list[bytes]) -> bytes:
        text = b"&".join(part for part in parts if part)
        if self.kind == 7:
            inner = b"\x07" + self.frame[17:21] + struct.pack(">H", len(text) & 0xFFFF) + text + b"\xee\x01"
            return struct.pack(">I", len(inner)) + inner
        body = self.body if self.kind == 4 else b"2"
        if self.sink and parts[0] == b"":
            body = b""
        return text_frame(self.kind, body, text)

    def refuse(self, no: _Refusal) -> Outcome:
        if self.silent:
            return Outcome("reply", no.code)
        message = b"errMsg=" + no.message if no.message else b""
        parts = [b"dpIp=" + NODE, b"errCode=%d" % no.code, message, self.text if no.echo else b""]
        return Outcome("reply", no.code, self.reply(parts), no.open_text)

    # -- steps that both layouts share

    def controls(self) -> None:
        try:
            self.attrs = strict_attributes(self.text)
            if not self.compat:
                self.text.decode()
        except (MalformedAttributes, UnicodeDecodeError):
            raise _Refusal(109, b"Parse attr (" + self.text + b") failure") from None
        order = self.attrs.get(b"syncSend", b"").lower() == b"true"
        proxy = self.attrs.get(b"proxySend", b"").lower() == b"true"
        silent = self.attrs.get(b"isAck", b"").lower() == b"false"
        if silent and (order or proxy):
            raise _Refusal(150 if order else 151)
        self.silent, self.sink = silent, order or proxy

    def names(self) -> None:
        group = self.attrs.get(b"groupId", b"")
        if not group.strip(BLANKS):
            raise _Refusal(100)
        if self.known is not None and group not in self.known:
            stream = self.attrs.get(b"streamId", b"null")
            raise _Refusal(115, b"Topic not configured for groupId=(" + group + b"), streamId=(" + stream + b")")

    def wants(self, key: bytes) -> bool:
        return key not in self.attrs or (self.compat and not self.attrs[key].strip(BLANKS))

    def completed(self) -> list[bytes]:
        parts = [key + b"=" + self.now for key in (b"rt", b"rtms")[self.kind == 7 :] if self.wants(key)]
        if self.kind == 7 and self.frame[10] & 2:
            node = b"46801" if self.compat else NODE
            parts += [b"node2ip=" + node] * (b"node2ip" not in self.attrs)
            parts += [b"rtime2=" + self.now] * (b"rtime2" not in self.attrs)
        return [*parts, self.text]

    def accept(self, records: list[bytes], attrs: dict[bytes, bytes]) -> Outcome:
        reply = b""
        if not self.silent and not (self.sink and self.compat):
            reply = self.reply([b"" if self.sink else b"dpIp=" + NODE, *self.completed()])
        return Outcome("store", 0, reply, records=records, attrs=attrs)

    # -- text layout

    def serve_text(self) -> Outcome:
        frame, total = self.frame, len(self.frame) - 4
        if total < 9:
            raise _Close
        (body_n,) = struct.unpack(">i", frame[5:9])
        if body_n <= 0:
            raise _Refusal(105 if body_n == 0 else 106, echo=False)
        if body_n + 13 > total + 4:
            raise _Refusal(
                104, b"Error msg, bodyLen(%d) + fixedLength(13) > totalDataLen(%d) + 4" % (body_n, total), echo=False
            )
        (attr_n,) = struct.unpack(">i", frame[9 + body_n : 13 + body_n])
        if attr_n < 0:
            raise _Refusal(107, echo=False)
        if total + 4 != 13 + body_n + attr_n:
            sizes = (total, body_n, attr_n)
            raise _Refusal(
                104,
                b"Error msg, totalDataLen(%d) + 4 != fixedLength(13) + bodyLen(%d) + attrLen(%d)" % sizes,
                echo=False,
            )
        self.body, self.text = frame[9 : 9 + body_n], frame[13 + body_n :]
        self.controls()
        body = self.body
        if self.attrs.get(b"cp", b"").strip(BLANKS):
            body = self.inflate(body)
        records = self.text_records(body)
        if self.service_code:
            raise _Refusal(self.service_code)
        self.names()
        if self.compat and self.kind in (2, 3, 4) and body == b"\n":
            raise _Close
        return self.accept(records, self.stored())

    def inflate(self, body: bytes) -> bytes:
        try:
            raw = unpack(body, LIMIT)
        except SnappyError:
            raise _Refusal(96, open_text=True) from None
        if not raw:
            raise _Refusal(96, open_text=True)
        return raw

    def text_records(self, body: bytes) -> list[bytes]:
        if self.kind == 5:
            return self.items(body)
        if self.kind == 6:
            return self.pairs(body)
        if self.attrs.get(b"mt") == b"pb":
            return [body]
        trimmed = body
        if body.endswith(b"\n"):
            trimmed = body[:-2] if body.endswith(b"\r\n") else body[:-1]
        return [trimmed if trimmed or self.compat else body]

    def items(self, body: bytes) -> list[bytes]:
        wrong = b"Malformed data len, bodyLen(%d), attr: (" % len(body) + self.text + b")"
        if self.kind == 5 and len(body) <= 4:
            raise _Refusal(123, wrong)
        out, at = [], 0
        while at < len(body):
            if len(body) - at < 4:
                if self.compat and out:
                    raise _Close
                raise _Refusal(123, open_text=True)
            (n,) = struct.unpack(">i", body[at : at + 4])
            if n <= 0 or n > len(body) - at - 4:
                if self.compat and out:
                    return out
                text = b"Malformed data len, singleMsgLen(%d), buffer remaining(%d), attr: (" % (n, len(body) - at - 4)
                raise _Refusal(123, text + self.text + b")", open_text=self.kind == 7)
            out.append(body[at + 4 : at + 4 + n])
            at += 4 + n
        return out

    def pairs(self, body: bytes) -> list[bytes]:
        chunks, at = [], 0
        while at < len(body):
            if len(body) - at < 4:
                raise _Refusal(123, open_text=True)
            n = int.from_bytes(body[at : at + 4])
            if n == 0 or n > len(body) - at - 4:
                raise _Refusal(123, open_text=True)
            chunks.append(body[at + 4 : at + 4 + n])
            at += 4 + n
        if not chunks or len(chunks) % 2:
            raise _Refusal(123, open_text=True)
        for own in chunks[1::2]:
            try:
                strict_attributes(own)
                own.decode()
            except (MalformedAttributes, UnicodeDecodeError):
                raise _Refusal(123, open_text=True) from None
        return chunks[::2]

    def stored(self) -> dict[bytes, bytes]:
        out = dict(self.attrs)
        out.setdefault(b"rt", self.now)
        out.setdefault(b"rtms", self.now)
        if not _is_long(out.get(b"dt")):
            out[b"dt"] = self.now
        if self.kind in (5, 6) or not _is_long(out.get(b"cnt")):
            out[b"cnt"] = b"1"
        else:
            out[b"cnt"] = b"%d" % int(out[b"cnt"])
        return out

    # -- binary layout

    def serve_binary(self) -> Outcome:
        frame, n = self.frame, len(self.frame)
        if n < 29:
            raise _Close
        lengths = _Close() if self.compat else _Refusal(95, echo=False, open_text=True)
        (body_n,) = struct.unpack(">i", frame[21:25])
        if not 0 <= 25 + body_n <= n - 2:
            raise lengths
        (attr_n,) = struct.unpack(">h", frame[25 + body_n : 27 + body_n])
        magic_at = 27 + body_n + attr_n
        if not 0 <= magic_at <= n - 2:
            raise lengths
        if body_n <= 0:
            raise _Refusal(105 if body_n == 0 else 106, echo=False)
        if attr_n < 0:
            raise _Refusal(107, echo=False)
        magic = int.from_bytes(frame[magic_at : magic_at + 2])
        if magic != 0xEE01:
            raise _Refusal(94, b"magicInMsg(%d) != 60929" % magic, echo=False)
        if magic_at != n - 2 and not self.compat:
            raise lengths
        self.body, self.text = frame[25 : 25 + body_n], frame[27 + body_n : magic_at]
        self.controls()
        if self.service_code:
            raise _Refusal(self.service_code)
        ext = frame[10]
        if ext & 0x18:
            raise _Refusal(112)
        if not ext & 4:
            if frame[5:7] == b"\0\0":
                raise _Refusal(100, b"groupIdNum is 0 in message")
            raise _Refusal(3, b"GroupId-Mapping configuration is null")
        self.names()
        text = b"&".join(part for part in self.completed() if part)
        if self.compat:
            if magic_at != n - 2 or not self.text.isascii() or len(text) > 32767:
                raise _Close
            return self.accept([], {})
        if len(text) > 32767:
            raise _Refusal(104, open_text=True)
        return self.accept(self.binary_records(ext), strict_attributes(text))

    def binary_records(self, ext: int) -> list[bytes]:
        body = self.body
        if self.frame[4] & 0x40:
            return [body]
        if self.frame[4] & 0xE0 == 0x20:
            body = self.inflate(body)
        return self.pairs(body) if ext & 1 else self.items(body)


def _is_long(value: bytes | None) -> bool:
    if value is None:
        return False
    digits = value[1:] if value[:1] in (b"+", b"-") else value
    return 0 < len(digits) < 20 and all(c in b"0123456789" for c in digits) and abs(int(value)) < 1 << 63


def serve(
    frame: bytes, now_ms: int, *, compat: bool = False, known: set[bytes] | None = None, service_code: int = 0
) -> Outcome:
    """Return the reaction to one data frame of types 2 to 7."""
    server = _Server(frame, now_ms, compat=compat, known=known, service_code=service_code)
    try:
        return server.serve_binary() if server.kind == 7 else server.serve_text()
    except _Refusal as no:
        return server.refuse(no)
    except _Close:
        return Outcome("close")
