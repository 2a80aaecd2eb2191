"""``dataproxy frames``: print the frames of a file, or of hex digits, readably."""

from __future__ import annotations

import codecs
import io
import os
import select
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from dataproxy.cli.calltext import call_json, call_lines, told_of_call
from dataproxy.cli.frametext import frame_json, frame_lines, told
from dataproxy.cli.hexdump import DumpError, bytes_of, only_digits, read_dump
from dataproxy.cli.outcome import ExitCode, complain, outcome, silence
from dataproxy.cli.rocketmq.commandtext import command_json, command_lines, told_of_command
from dataproxy.wire.inlong import LIMIT, Frame, Sender, read_frames
from dataproxy.wire.rocketmq.commands import Command, begins_command, read_commands
from dataproxy.wire.tubemq.calls import TOKEN, Call, read_calls

__all__ = ["show_frames"]

_CHUNK: Final = 1 << 20
_MOST: Final = 1 << 30  # bytes of input, which is held whole
_BEGINNING: Final = 64  # bytes
_CONTROLS: Final = bytes({*range(32), 127} - {*b"\t\r\n\f\v"})
_SENDERS: Final[dict[str, Sender]] = {"client": "client", "server": "server", "auto": "either"}


def show_frames(
    source: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|HEX", help="A file with frames, their hex digits or a hex dump, - for stdin, or digits."
        ),
    ],
    sender: Annotated[
        str, typer.Option(metavar="WHO", help="Who sent the frames: client, server, or auto (each frame shows it).")
    ] = "auto",
    limit: Annotated[int, typer.Option(min=1, metavar="BYTES", help="Largest body that is unpacked.")] = LIMIT,
    full: Annotated[bool, typer.Option("--full", help="Print all items and attributes, and whole bodies.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per frame.")] = False,
) -> None:
    """Print each field of InLong's, TubeMQ's or RocketMQ's frames, and what is wrong with them.

    The exit code is 0 if every frame is well-formed, 1 if one is not.
    """
    with outcome():
        if sender not in _SENDERS:
            complain(f"--sender {sender!r} is unknown; choose client, server or auto")
            raise typer.Exit(ExitCode.USAGE)
        data = _read(source)
        if not data:
            complain("the input is empty: there is no frame")
            raise typer.Exit(ExitCode.FAILED)
        first = ""
        count = wrong = 0
        who = _SENDERS[sender]
        if len(data) > 1 and data[:4] == TOKEN[: len(data)]:  # to InLong's protocol a length of 4 GB
            shown = _calls(data, who, full=full, json=json)
        elif begins_command(data):
            shown = _commands(data, full=full, json=json)
        else:
            shown = _frames(data, who, limit, full=full, json=json)
        try:
            for lines, problem in shown:
                for line in lines:
                    sys.stdout.write(line)
                count += 1
                if said := problem():
                    wrong += 1
                    first = first or said
            sys.stdout.flush()
        except BrokenPipeError:
            if not first:
                raise
            silence(sys.stdout)
        if first:
            complain(f"{wrong} of {count} frames wrong; {first}{_hint(data)}")
            raise typer.Exit(ExitCode.FAILED)


#: Lines of a frame, and what is wrong with it first, which is asked for when they were printed.
_Shown = tuple[Iterable[str], Callable[[], str]]


def _frames(data: bytes, sender: Sender, limit: int, *, full: bool, json: bool) -> Iterator[_Shown]:
    def problem(frame: Frame) -> str:
        where = f"frame {frame.number} at byte {frame.offset}"
        return f"{where}: {told(frame, frame.problems[0])}" if frame.problems else ""

    for frame in read_frames(data, sender, limit):
        lines = [frame_json(frame, full=full)] if json else frame_lines(frame, full=full)
        yield lines, partial(problem, frame)


def _calls(data: bytes, sender: Sender, *, full: bool, json: bool) -> Iterator[_Shown]:
    """Do the same for TubeMQ's frames."""
    try:
        import google.protobuf  # noqa: F401
    except ImportError:
        complain("these are TubeMQ's frames; the package 'protobuf' is missing; pip install 'dataproxy-sdk[tubemq]'")
        raise typer.Exit(ExitCode.FAILED) from None

    def problem(call: Call) -> str:
        where = f"frame {call.number} at byte {call.offset}"
        return f"{where}: {told_of_call(call, call.problems[0])}" if call.problems else ""

    for call in read_calls(data, sender):
        lines = [call_json(call, full=full)] if json else call_lines(call, full=full)
        yield lines, partial(problem, call)


def _commands(data: bytes, *, full: bool, json: bool) -> Iterator[_Shown]:
    """Do the same for RocketMQ's frames, each of which shows who sent it."""

    def problem(command: Command) -> str:
        where = f"frame {command.number} at byte {command.offset}"
        return f"{where}: {told_of_command(command, command.problems[0])}" if command.problems else ""

    for command in read_commands(data):
        lines = [command_json(command, full=full)] if json else command_lines(command, full=full)
        yield lines, partial(problem, command)


def _hint(data: bytes) -> str:
    """Return what the input is, if it begins with text, whose first bytes would be a length of 150 MB or more.

    Or where frames of another protocol begin.
    """
    if (at := data.find(TOKEN, 1)) > 0 and data[: len(TOKEN)] != TOKEN:
        return f"; a frame of TubeMQ's may begin at byte {at}: give the bytes from there on alone"
    if not data[:_BEGINNING].isascii() or data[:_BEGINNING].translate(None, _CONTROLS) != data[:_BEGINNING]:
        return ""
    return "; these bytes are text: no frames, no hex digits, and no hex dump of xxd, hexdump -C or od -A x -t x1z"


def _read(source: list[str]) -> bytes:
    """Return the bytes that the arguments mean."""
    try:
        return _bytes(source)
    except DumpError as error:
        complain(str(error))
        raise typer.Exit(ExitCode.USAGE) from None
    except MemoryError:
        complain("the input does not fit into memory")
        raise typer.Exit(ExitCode.FAILED) from None


def _stdin() -> bytes:
    """Return all of stdin, also of a pipe that another program has made not to block."""
    if sys.stdin is None:  # closed, and its number is in use
        complain("stdin is closed; give a file, or hex digits")
        raise typer.Exit(ExitCode.USAGE)
    try:
        with open(0, "rb", buffering=0, closefd=False) as stream:
            return _all(stream)
    except OSError as error:
        complain(f"stdin cannot be read: {error.strerror}")
        raise typer.Exit(ExitCode.USAGE) from None


def _all(stream: io.FileIO) -> bytes:
    """Return what is left of a stream, also of a pipe that does not block; an endless one is given up."""
    parts: list[bytes] = []
    size = 0
    while (part := stream.read(_CHUNK)) != b"":
        if part is None:
            select.select([stream], [], [])
            continue
        parts.append(part)
        size += len(part)
        if size > _MOST:
            complain(f"the input has more than {_MOST >> 20} MiB; cut it into pieces that begin with a frame")
            raise typer.Exit(ExitCode.FAILED)
    return b"".join(parts)


def _bytes(source: list[str]) -> bytes:
    place = source[0] if len(source) == 1 else None
    digits = only_digits("".join(source).encode("utf-8", "surrogateescape"))
    if place == "-":
        data = _stdin()
    elif place is not None and (digits is None or os.path.isfile(place)):  # noqa: PTH113 - digits may be too long for a path
        try:
            with Path(place).open("rb", buffering=0) as stream:
                data = _all(stream)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            complain(f"{place!r} is not hex digits and cannot be read as a file: {reason}")
            raise typer.Exit(ExitCode.USAGE) from None
    elif digits is None:
        complain("of several arguments each is hex digits; give one file")
        raise typer.Exit(ExitCode.USAGE)
    else:
        data = digits
    text = _without_mark(data)
    dumped = read_dump(text)
    if dumped is not None:
        return dumped
    digits = only_digits(text)
    return data if digits is None else bytes_of(digits)


def _without_mark(data: bytes) -> bytes:
    """Return data as UTF-8 without a byte order mark; a frame cannot begin with a mark, its length would be 4 GB."""
    if data.startswith(codecs.BOM_UTF8):
        return data[len(codecs.BOM_UTF8) :]
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return data.decode("utf-16").encode()
        except UnicodeDecodeError:
            return data
    return data
