"""A simulated proxy: stores frames, answers them, or misbehaves, by seeded chance."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

from tests.native.probe_wire import Server

__all__ = [
    "OUT_OF_STEP", "Proxy", "Temper", "answer_of", "frame_seq", "is_http", "is_refusal", "message_size", "take_frame",
]  # fmt: skip

_LENGTH = re.compile(rb"\r\nContent-Length: (\d+)")
#: The code of a server that finds no frame where one should begin.
OUT_OF_STEP = 94
_DATA = 7
_UNKNOWN = b"\x00\x00\x00\x03\x7fxx"
_HEARTBEATS = (1, 8)
_CODES = (1, 2, 3, 114, 116, 118, 113, 121, 101, 110, 2147483647 & 0x7FFF)


@dataclass
class Temper:
    """Say how often a proxy does what, as weights."""

    good: float = 1.0
    drop_ack: float = 0.0
    late_ack: float = 0.0
    twice: float = 0.0
    refuse: float = 0.0
    refuse_twice: float = 0.0
    swallow: float = 0.0
    reset: float = 0.0
    garbage: float = 0.0
    unknown: float = 0.0
    lag: float = 0.0  # says something at once, and answers much later
    lost_place: float = 0.0  # reads what it is sent from the wrong byte on
    deaf: bool = False  # answers no heartbeat
    connect: str = "good"  # good, refuse, silent

    @classmethod
    def random(cls, rng: random.Random) -> Temper:
        """Return a temper, mostly good with one to three bad habits."""
        temper = cls()
        habits = (
            "drop_ack", "late_ack", "twice", "refuse", "refuse_twice", "swallow", "reset", "garbage", "unknown", "lag",
            "lost_place",
        )  # fmt: skip
        for name in rng.sample(habits, rng.randint(0, 3)):
            setattr(temper, name, rng.choice((0.05, 0.3, 3.0)))
        temper.deaf = rng.random() < 0.1
        temper.connect = rng.choice(("good", "good", "good", "good", "refuse", "silent"))
        return temper

    @classmethod
    def lagging(cls, rng: random.Random) -> Temper:
        """Return the temper of a proxy that mostly answers long after ``ack_timeout``."""
        return cls(lag=rng.choice((3.0, 20.0, 1000.0)), drop_ack=rng.choice((0.0, 0.0, 1.0)))

    def pick(self, rng: random.Random) -> str:
        """Return what happens to one frame."""
        names = (
            "good",
            "drop_ack",
            "late_ack",
            "twice",
            "refuse",
            "refuse_twice",
            "swallow",
            "reset",
            "garbage",
            "unknown",
            "lag",
            "lost_place",
        )
        return rng.choices(names, [getattr(self, name) for name in names])[0]


@dataclass
class Proxy:
    """Keep what was stored; ``react`` says what goes back and when."""

    label: str
    temper: Temper
    stored: set[int] = field(default_factory=set)
    refused_twice: set[int] = field(default_factory=set)
    server: Server = field(default_factory=lambda: Server(load=7))

    def react(self, frame: bytes, rng: random.Random, ack_timeout: int) -> list[tuple[int, bytes | None]]:
        """Return (delay in microseconds, bytes) of each answer; None for the bytes resets the connection."""
        answer = self.server.serve(frame, 1_700_000_000_000)
        quick = rng.randrange(50, 5000)
        if frame[4] in _HEARTBEATS:
            return [] if self.temper.deaf else [(quick, answer["reply"])]
        deed = self.temper.pick(rng)
        seq = frame_seq(frame)
        reply = answer["reply"]
        if deed in ("good", "drop_ack", "late_ack", "twice", "unknown", "garbage", "lag") or (
            deed == "reset" and rng.random() < 0.5
        ):
            self.stored.add(seq)
        if deed == "good":
            return [(quick, reply)]
        if deed == "late_ack":
            return [(rng.randrange(ack_timeout // 2, ack_timeout * 3), reply)]
        if deed == "twice":
            return [(quick, reply), (quick + rng.randrange(1, ack_timeout), reply)]
        if deed in ("refuse", "refuse_twice"):
            no = self.server.refuse(reply, rng.choice(_CODES), b"no")
            if deed == "refuse":
                return [(quick, no)]
            self.refused_twice.add(seq)
            return [(quick, no), (quick + rng.randrange(1, ack_timeout), no)]
        if deed == "unknown":
            return [(quick, _UNKNOWN), (quick, reply)]
        if deed == "lag":
            return [(quick, _UNKNOWN), (rng.randrange(ack_timeout, ack_timeout * 20), reply)]
        if deed == "lost_place":
            no = self.server.refuse(reply, OUT_OF_STEP, b"magicInMsg != 60929")
            return [(quick, no[:5] + (seq ^ rng.choice((0, 0x55000000))).to_bytes(4, "big") + no[9:])]
        if deed == "garbage":
            return [(quick, b"HTTP/1.1 400 Bad Request\r\n\r\n")]
        if deed == "reset":
            return [(quick, None)]
        return []


def frame_seq(frame: bytes) -> int:
    """Return the sequence number of a data frame of type 7."""
    return int.from_bytes(frame[17:21], "big")


def answer_of(answer: bytes) -> tuple[int, int] | None:
    """Return the number and the code of an answer to a data frame, None of anything else."""
    if len(answer) < 11 or answer[4] != _DATA:
        return None
    attrs = answer[11 : 11 + int.from_bytes(answer[9:11], "big")].split(b"&")
    codes = [int(attr.partition(b"=")[2]) for attr in attrs if attr.startswith(b"errCode=")]
    return int.from_bytes(answer[5:9], "big"), codes[0] if codes else 0


def is_http(data: bytes | bytearray) -> bool:
    """Tell whether a stream begins with a request or an answer of HTTP; the length of a frame begins with a 0."""
    return data[:1] in (b"P", b"G", b"H")


def message_size(data: bytes | bytearray) -> int:
    """Return the size of the first message of a stream: of a frame, a bare answer of V1, or HTTP; 0: not whole."""
    if is_http(data):
        head = data.find(b"\r\n\r\n") + 4
        found = _LENGTH.search(data, 0, head)
        size = head + (int(found[1]) if found else 0)
        return size if head >= 4 and len(data) >= size else 0
    if data[:1] != b"\x08":
        size = 4 + int.from_bytes(data[:4], "big")
        return size if len(data) >= max(4, size) else 0
    at = 1
    for _ in range(2):
        while at < len(data) and data[at] >= 0x80:
            at += 1
        at += 2
    return at - 1 if at - 1 <= len(data) else 0


def is_refusal(answer: bytes) -> bool:
    """Tell whether an answer refuses its frame."""
    if is_http(answer):
        return b'"code":"0"' not in answer
    return answer[1] != 0 if answer[:1] == b"\x08" else b"errCode" in answer


def take_frame(received: bytearray) -> bytes | None:
    """Cut the first whole frame off, or return None."""
    size = message_size(received)
    if size == 0:
        return None
    frame = bytes(received[:size])
    del received[:size]
    return frame
