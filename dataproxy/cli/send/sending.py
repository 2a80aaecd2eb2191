"""The work of ``dataproxy send``: read lines, send them, show progress, wait for results, report."""

from __future__ import annotations

import contextlib
import os
import sys
from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

from dataproxy.cli.ending import Terminated
from dataproxy.cli.outcome import Deaf, ExitCode, complain, silence
from dataproxy.cli.send.lines import read_lines
from dataproxy.config.rules import is_tubemq
from dataproxy.errors import ConfigError, DataProxyError, FlushTimeout, InvalidMessageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TextIO

    from rich.table import Table
    from rich.text import Text

    from dataproxy import Producer, ProducerStats, Report, Stream
    from dataproxy.config import ProducerConfig

__all__ = ["Accounting", "Job", "finish", "limited", "run"]

_REFRESHES_A_SECOND: Final = 4
_PATIENCE: Final = 1.0  # seconds that the reader of the counts has after a signal


@dataclass(frozen=True, slots=True)
class Job:
    """Say what to send and how."""

    config: ProducerConfig
    stream: str
    attrs: Mapping[str, str]
    files: tuple[str, ...]
    delimiter: bytes
    max_lines: int | None


@dataclass(slots=True)
class _Place:
    """Hold the file and line number that the last list of lines came from."""

    file: str = ""
    before: int = 0  # lines of the file before this list

    def line(self, number: int) -> str:
        """Return the place of a line in words, "line N of FILE"; ``number`` counts from 0 in the list."""
        return f"line {self.before + number + 1:,} of {'stdin' if self.file == '-' else repr(self.file)}"


@dataclass(slots=True)
class Accounting:
    """Count the lines by their results; ``report`` is the producer's final report."""

    lines: int = 0
    empty: int = 0
    interrupted: bool = False
    terminated: bool = False  # interrupted by SIGTERM
    problem: str = ""
    unreadable: bool = False  # the problem is in the input, not in the target
    connected: bool = False
    report: Report | None = None
    producer: Producer | None = field(default=None, repr=False)

    def interrupt(self, error: KeyboardInterrupt) -> None:
        """Note that a signal ended the work."""
        self.interrupted = True
        self.terminated = self.terminated or isinstance(error, Terminated)

    def abandon(self) -> None:
        """Close the producer at once, if there is one without a final report."""
        from dataproxy import Report

        if self.report is None:
            self.report = (
                self.producer.close(0) if self.producer is not None else Report(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0)
            )

    @property
    def complete(self) -> bool:
        """Tell whether every line that is not empty was delivered, or sent with ``ack=none``."""
        done = self.report.delivered + self.report.sent if self.report is not None else -1
        return done == self.lines - self.empty and not self.problem


def run(job: Job, accounting: Accounting, progress: bool | None) -> None:
    """Send all lines and count them in ``accounting``.

    An error of a single line stops the reading and is kept in ``Accounting.problem``; lines accepted before it are
    still delivered.  Raises ConfigError and DiscoveryError before anything is sent.
    """
    from dataproxy import Producer
    from dataproxy.producer.discovery.targets import parse_target

    _check_files(job.files)
    if not job.config.group_id and not is_tubemq(job.config.target):
        parse_target(job.config.target)  # a misspelt one is the greater trouble
        raise ConfigError("no group was given", hint="give --group ID, or group_id in the configuration")
    producer = Producer(config=job.config)
    try:
        handle = producer.stream(job.stream, attrs=job.attrs or None)
    except BaseException as error:
        producer.close(0)
        if isinstance(error, InvalidMessageError):
            raise ConfigError(str(error.args[0]), hint=error.hint, code=error.code) from None
        raise
    accounting.producer = producer
    with _shown_progress(accounting, progress):
        try:
            place = _Place()
            for lines in limited(_all_lines(job, place), job.max_lines):
                _send(handle, accounting, lines, place)
            _settle(producer)
        except KeyboardInterrupt as error:
            accounting.interrupt(error)
        except DataProxyError as error:
            accounting.problem = str(error)
            accounting.unreadable = isinstance(error, InvalidMessageError)
        except _ReadError as error:
            accounting.problem = str(error)
            accounting.unreadable = True
        _close(producer, accounting)


def _send(handle: Stream, accounting: Accounting, lines: list[bytes], place: _Place) -> None:
    """Send a list of lines.  If a line cannot be sent, the lines before it are sent, and the error names it."""
    bodies = lines if b"" not in lines else [line for line in lines if line]
    accounting.lines += len(lines)
    accounting.empty += len(lines) - len(bodies)
    if not bodies:
        return
    try:
        handle.send_batch(bodies)
    except InvalidMessageError as error:
        item = error.details.get("item")
        if not isinstance(item, int) or error.details.get("accepted"):
            raise
        at = [number for number, line in enumerate(lines) if line][item]
        accounting.lines -= len(lines) - at - 1
        accounting.empty -= lines[at:].count(b"")
        if item:
            handle.send_batch(bodies[:item])
        raise InvalidMessageError(
            f"{place.line(at)} cannot be sent: {error.args[0]}", code=error.code, hint=error.hint, details=error.details
        ) from None


def limited(lists: Iterator[list[bytes]], most: int | None) -> Iterator[list[bytes]]:
    """Yield the lists until ``most`` lines were yielded; the last list is cut.  None: no limit."""
    left = most
    for lines in lists if left != 0 else ():
        if left is not None and len(lines) >= left:
            yield list(islice(lines, left))
            return
        yield lines
        if left is not None:
            left -= len(lines)


def finish(accounting: Accounting, *, json: bool) -> ExitCode:
    """Print the counts (a table on stderr, with ``json`` an object on stdout) and return the exit code.

    The code depends on the messages alone, also if the counts cannot be printed; then stderr says so.
    """
    if json:
        _print_json(accounting)
    else:
        from rich.console import Console

        Console(file=cast("TextIO", Deaf(sys.stderr))).print(_table(accounting))
    if accounting.interrupted:
        return ExitCode.TERMINATED if accounting.terminated else ExitCode.INTERRUPTED
    if accounting.complete:
        return ExitCode.OK
    delivered = accounting.report.delivered + accounting.report.sent if accounting.report is not None else 0
    return ExitCode.FAILED if accounting.connected or delivered or accounting.unreadable else ExitCode.UNREACHABLE


def _print_json(accounting: Accounting) -> None:
    """Print the counts on stdout, or on stderr if stdout cannot be written."""
    import json
    import select

    problem = ""
    try:
        if accounting.interrupted and not select.select([], [sys.stdout], [], _PATIENCE)[1]:
            problem = "the reader of stdout is not reading"
        else:
            sys.stdout.write(json.dumps(_as_dict(accounting)) + "\n")
            sys.stdout.flush()
    except (OSError, ValueError) as error:  # a full disk, or the reader has closed the pipe
        problem = getattr(error, "strerror", None) or str(error)
    if problem:
        complain(f"the counts could not be written to stdout: {problem}; {_in_short(accounting)}")
        silence(sys.stdout)


def _in_short(accounting: Accounting) -> str:
    report = accounting.report
    delivered = report.delivered if report is not None else 0
    sent = f", {report.sent:,} sent" if report is not None and report.sent else ""
    return f"{accounting.lines:,} lines read, {delivered:,} messages delivered{sent}"


def _check_files(files: tuple[str, ...]) -> None:
    for name in files:
        if name == "-":
            continue
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK)  # a pipe without a writer must not block here
            try:
                os.read(descriptor, 0)  # opening a folder succeeds, reading it fails
            finally:
                os.close(descriptor)
        except OSError as error:
            raise ConfigError(f"--file {name!r} cannot be read: {error.strerror}") from None
    if "-" in files and sys.stdin is None:
        raise ConfigError("stdin is closed", hint="give --file FILE, or something on stdin")


class _ReadError(Exception):
    """Report that a file could not be read to its end."""


def _all_lines(job: Job, place: _Place) -> Iterator[list[bytes]]:
    for name in job.files:
        place.file, place.before = name, 0
        try:
            descriptor = sys.stdin.fileno() if name == "-" else os.open(name, os.O_RDONLY)
            try:
                for lines in read_lines(descriptor, job.delimiter, job.config.max_frame_bytes):
                    yield lines
                    place.before += len(lines)
            finally:
                if name != "-":
                    os.close(descriptor)
        except OSError as error:
            raise _ReadError(f"{place.line(0)} could not be read: {error.strerror}") from None


def _settle(producer: Producer) -> None:
    """Wait until every message has its result; ``delivery_timeout`` bounds that."""
    with contextlib.suppress(FlushTimeout):
        producer.flush()


def _close(producer: Producer, accounting: Accounting) -> None:
    """Close within ``close_timeout``; Ctrl-C or SIGTERM meanwhile closes at once."""
    connections = producer.stats().connections
    # A master has answered where the producer of TubeMQ was opened, unless it was told not to wait for that.
    asked = is_tubemq(producer.config.target) and producer.config.start != "lazy"
    accounting.connected = asked or any(connection.sent_bytes or connection.read_bytes for connection in connections)
    try:
        accounting.report = producer.close()
    except KeyboardInterrupt as error:
        accounting.interrupt(error)
        accounting.report = producer.close(0)
    accounting.connected = accounting.connected or accounting.report.delivered + accounting.report.sent > 0


@contextlib.contextmanager
def _shown_progress(accounting: Accounting, wanted: bool | None) -> Iterator[None]:
    if wanted is None:
        wanted = sys.stderr.isatty()
    if not wanted:
        yield
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(file=cast("TextIO", Deaf(sys.stderr)))
    pace = _Pace()
    with Live(
        get_renderable=lambda: _progress_line(accounting, pace),
        console=console,
        refresh_per_second=_REFRESHES_A_SECOND,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ):
        yield


class _Pace:
    """Compute messages a second over the last seconds: an average since the start would hide that they stopped."""

    _SECONDS = 3.0

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def rate(self, seconds: float, delivered: int) -> float:
        """Return messages a second over the last seconds; ``seconds`` and ``delivered`` are totals."""
        self._seen.append((seconds, delivered))
        while len(self._seen) > 2 and seconds - self._seen[1][0] >= self._SECONDS:
            self._seen.popleft()
        before, known = self._seen[0] if len(self._seen) > 1 else (0.0, 0)
        return (delivered - known) / (seconds - before) if seconds > before else 0.0


def _progress_line(accounting: Accounting, pace: _Pace) -> Text:
    """Return one line; the most important counts come first, since a narrow terminal cuts the line."""
    from rich.text import Text

    if accounting.producer is None:
        return Text("")
    stats: ProducerStats = accounting.producer.stats()
    active = sum(connection.state == "active" for connection in stats.connections)
    done = stats.delivered + stats.sent
    word = "sent" if stats.sent else "delivered"
    parts = [
        f"{accounting.lines:,} read",
        f"{done:,} {word} ({pace.rate(stats.seconds, done):,.0f}/s)",
        f"{stats.pending:,} in flight",
        f"{active}/{len(stats.connections)} connected",
    ]
    bad = stats.failed + stats.expired + stats.dropped
    if stats.retries:
        parts.append(f"{stats.retries:,} retries")
    if bad:
        parts.insert(1, f"{bad:,} not delivered")
    return Text("  ".join(parts), style="red" if bad else "", no_wrap=True, overflow="ellipsis")


def _as_dict(accounting: Accounting) -> dict[str, Any]:
    report = accounting.report
    shown: dict[str, Any] = {
        "lines": accounting.lines,
        "empty": accounting.empty,
        "interrupted": accounting.interrupted,
    }
    if report is not None:
        for name in (
            "accepted", "delivered", "sent", "failed", "expired", "dropped", "pending",
            "accepted_bytes", "delivered_bytes", "retries", "duplicates_possible",
        ):  # fmt: skip
            shown[name] = getattr(report, name)
        shown["seconds"] = round(report.seconds, 6)
        shown["errors"] = {str(code): count for code, count in report.errors.items()}
    shown["problem"] = accounting.problem or None
    shown["ok"] = accounting.complete
    return shown


def _table(accounting: Accounting) -> Table:
    from rich.table import Table

    from dataproxy.codes import code_name

    table = Table(title="counts", title_justify="left", show_header=False)
    table.add_column("count")
    table.add_column("value", justify="right")
    values = _as_dict(accounting)
    table.add_row("lines read", f"{accounting.lines:,}")
    if accounting.empty:
        table.add_row("empty lines skipped", f"{accounting.empty:,}")
    report = accounting.report
    if report is None:
        return table
    names = ["accepted", "delivered", "failed", "expired", "dropped", "pending", "retries", "duplicates_possible"]
    if report.sent:
        names.insert(2, "sent")
    for name in names:
        alarm = name in ("failed", "expired", "dropped", "pending") and values[name] > 0
        table.add_row(name.replace("_", " "), f"{values[name]:,}", style="red" if alarm else None)
    for code, count in report.errors.items():
        table.add_row(
            f"  code {code} {code_name(code) if isinstance(code, int) else ''}".rstrip(), f"{count:,}", style="red"
        )
    table.add_row("bytes accepted", f"{report.accepted_bytes:,}")
    table.add_row("seconds", f"{report.seconds:.2f}")
    if report.seconds > 0:
        word = "sent" if report.sent else "delivered"
        table.add_row(f"{word} a second", f"{(report.delivered + report.sent) / report.seconds:,.0f}")
    return table
