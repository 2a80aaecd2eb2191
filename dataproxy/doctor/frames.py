"""The steps of an examination over TCP, in frames of InLong."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from dataproxy.doctor.connecting import Failed
from dataproxy.doctor.conversation import Foreign
from dataproxy.wire.requests import BINARY, MESSAGE, calling_heartbeat, heartbeat, marked_frame, wide_heartbeat

if TYPE_CHECKING:
    from dataproxy.doctor.connecting import Plan
    from dataproxy.doctor.conversation import Conversation
    from dataproxy.doctor.findings import MessageReport, ProxyReport
    from dataproxy.wire.inlong import Frame

__all__ = ["beat", "message", "read_ack", "speaks_plain", "takes"]

_LONGEST_TEXT: Final = 300  # bytes of a foreign text that are shown
_MOST_OTHERS: Final = 16  # frames that are skipped while an answer is awaited
_HEARTBEATS: Final = (BINARY, MESSAGE)
_DATA: Final = range(2, 8)
_LOAD_UNKNOWN: Final = 65535


def speaks_plain(talk: Conversation, plan: Plan, end: float) -> bool:
    """Tell whether a heartbeat is answered."""
    talk.send(heartbeat(_kind_of(plan), time.time()), end)
    return not _answer(talk, end).problems


def beat(talk: Conversation, plan: Plan, report: ProxyReport) -> None:
    """Send a heartbeat and read its answer.  Raises Failed, and what a conversation raises.

    If none comes within half of the time, a second heartbeat of another kind follows: old servers know only that one,
    and programs that wait for lines show what they are.
    """
    started, wall = time.monotonic(), time.time()
    end = started + plan.timeout
    sent = heartbeat(_kind_of(plan), wall)
    talk.send(sent, end)
    try:
        frame = _answer(talk, started + plan.timeout / 2)
    except TimeoutError:
        talk.send(calling_heartbeat(), end)
        frame = _answer(talk, end)
    if frame.data in (sent, calling_heartbeat()) and frame.data != heartbeat(MESSAGE, 0):
        raise Failed("garbage", "it sends back what it receives")
    if frame.problems:
        wrong = frame.problems[0]
        raise Failed("malformed", f"its answer to a heartbeat is wrong: {wrong.field} at byte {wrong.at}, {wrong.text}")
    report.heartbeat_seconds = time.monotonic() - started
    report.heartbeat = "binary" if frame.kind == BINARY else "message"
    _read_beat(frame, report, (wall + time.time()) / 2)


def message(talk: Conversation, plan: Plan, body: bytes, mark: str, sequence: int) -> bytes:
    """Return a frame with one message, whose attribute ``doctor`` is the mark."""
    config = plan.config
    return marked_frame(
        config.message_type, config.group_id, plan.stream_id, body, mark=mark, sequence=sequence, now=time.time()
    )


def read_ack(talk: Conversation, end: float, sequence: int, report: MessageReport) -> None:
    """Wait for the answer to a frame, whatever comes before it."""
    while not _read_one(_answer(talk, end, _DATA), sequence, report):
        pass


def takes(talk: Conversation, size: int, end: float) -> bool:
    """Return True when a heartbeat of ``size`` bytes is answered; what does not take it closes the connection."""
    talk.send(wide_heartbeat(size), end)
    _answer(talk, end, (MESSAGE,))
    return True


def _kind_of(plan: Plan) -> int:
    return MESSAGE if plan.config.heartbeat == "message" else BINARY


def _answer(talk: Conversation, end: float, kinds: tuple[int, ...] | range = _HEARTBEATS) -> Frame:
    """Return the next frame of one of these types; some others before it are skipped."""
    for _ in range(_MOST_OTHERS):
        frame = talk.frame(end)
        if frame.kind in kinds:
            return frame
    raise Foreign(frame.data)


def _read_beat(frame: Frame, report: ProxyReport, moment: float) -> None:
    """Take load and clock from the answer to a heartbeat of type 8; ``moment`` is the middle of the exchange."""
    values = {one.name: one.value for one in frame.fields}
    load = values.get("load", _LOAD_UNKNOWN)
    report.load = None if load == _LOAD_UNKNOWN else load
    if values.get("dataTime"):
        report.clock_offset = values["dataTime"] + 0.5 - moment


def _read_one(frame: Frame, sequence: int, report: MessageReport) -> bool:
    """Take an answer into the report; tell whether it is the one that was awaited."""
    answer = frame.answer
    if answer is None or frame.problems:
        wrong = [f"{one.field}, {one.text}" for one in frame.problems] or ["it has no attributes"]
        report.state, report.text = "malformed", f"its answer is wrong: {wrong[0]}"
        return True
    if answer.seq is not None and answer.seq != sequence:
        report.state, report.text = "misaddressed", f"its answer is for request {answer.seq}, not {sequence}"
        return False
    report.code, report.node = answer.code, answer.node[:_LONGEST_TEXT].decode("utf-8", "backslashreplace")
    report.text = answer.message[:_LONGEST_TEXT].decode("utf-8", "backslashreplace")
    report.state = "acknowledged" if answer.code in (0, 120) else "refused"
    return True
