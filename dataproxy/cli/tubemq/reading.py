"""The work of ``dataproxy consume``: join the group, write packs and confirm them, leave, report."""

from __future__ import annotations

import contextlib
import select
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

from dataproxy.cli import ending
from dataproxy.cli.outcome import Deaf, complain
from dataproxy.cli.tubemq.printing import Format
from dataproxy.errors import ConfigError, ConfirmError, DataProxyError, InvalidMessageError, TransportError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TextIO

    from rich.table import Table
    from rich.text import Text

    from dataproxy._core.consumer.pack import Pack
    from dataproxy.config import ConsumerConfig
    from dataproxy.consumer.consumer import Consumer
    from dataproxy.consumer.stats import ConsumerStats

__all__ = ["Job", "Reading", "report", "run"]

_JOIN_S: Final = 30.0
_SOON_S: Final = 3.0  # after which the user is told that no master has answered yet
_LEAVE_S: Final = 2.0  # for a group that was never joined
_PARTITION_S: Final = 120.0  # for the first partition: masters divide them once in a minute, unless configured
_LOOK_S: Final = 0.1
_CHECK_S: Final = 0.5  # between two looks whether stdout has a reader
_LONGEST_S: Final = 1e9
_REFRESHES_A_SECOND: Final = 4
_PATIENCE: Final = 1.0  # seconds that the reader of the count has after a signal


@dataclass(frozen=True, slots=True)
class Job:
    """Say what to read and how; ``timeout``: seconds without a message after which it ends, None: never."""

    config: ConsumerConfig
    form: Format
    show: Callable[[Pack, int], bytes]
    most: int | None
    timeout: float | None


@dataclass(slots=True)
class Reading:
    """Count what was written."""

    messages: int = 0
    unconfirmed: int = 0  # packs that were written, but whose messages may come again
    interrupted: bool = False
    seconds: float = 0.0
    stats: ConsumerStats | None = None
    consumer: Consumer | None = field(default=None, repr=False)
    asked: list[Pack] = field(default_factory=list, repr=False)  # whose confirm has no answer yet


def run(job: Job, reading: Reading, progress: bool | None) -> None:
    """Read and write messages until one of the limits is reached; count them in ``reading``.

    Partitions are given back whatever ends it.  Raises GroupRefusedError, TransportError, OSError of stdout,
    KeyboardInterrupt, DataProxyError if it waits for messages in vain because no partition is for this member.
    """
    from dataproxy.consumer.consumer import Consumer

    if job.most == 0:
        return
    began = time.monotonic()
    try:
        consumer = Consumer(config=job.config)
    except InvalidMessageError as error:  # a name that RocketMQ cannot have
        raise ConfigError(error.message, hint=error.hint, code=error.code) from None
    joined = False
    try:
        _join(consumer, _JOIN_S if job.timeout is None else job.timeout)
        joined = True
        reading.consumer = consumer
        with _shown_progress(job, reading, progress):
            _read(consumer, job, reading)
    except KeyboardInterrupt:
        reading.interrupted = True
        raise
    finally:
        _leave(consumer, None if joined else _LEAVE_S)
        reading.seconds = time.monotonic() - began
        if joined:
            reading.stats = consumer.stats()
            _note_ends(reading)


def _join(consumer: Consumer, seconds: float) -> None:
    """Wait until a master has taken the consumer; say why it takes long."""
    soon = min(_SOON_S, seconds)
    try:
        consumer.wait_ready(soon)
    except TransportError as error:
        if soon == seconds:
            raise
        complain(f"{error.message}; it is tried for {seconds - soon:g} s more")
        consumer.wait_ready(seconds - soon)


def _read(consumer: Consumer, job: Job, reading: Reading) -> None:
    pack = None if job.timeout is None else _first(consumer, max(job.timeout, _PARTITION_S))
    while True:
        pack = pack or _next(consumer, job.timeout)
        if pack is None:
            return
        _write(consumer, job, reading, pack)
        if job.most is not None and reading.messages >= job.most:
            return
        pack = None
        _note_ends(reading)


def _next(consumer: Consumer, seconds: float | None) -> Pack | None:
    """Return the next pack, None if none came within ``seconds``.  Raises BrokenPipeError when stdout has no reader."""
    until = time.monotonic() + (_LONGEST_S if seconds is None else seconds)
    while True:
        left = until - time.monotonic()
        pack = consumer.poll(min(max(left, 0.0), _CHECK_S))
        if pack is not None or left <= 0:
            return pack
        if ending.reader_gone():
            raise BrokenPipeError


def _first(consumer: Consumer, seconds: float) -> Pack | None:
    """Wait until this member has a partition; return a pack if one came meanwhile.

    Raises DataProxyError after ``seconds``: other members have all partitions.
    """
    until = time.monotonic() + seconds
    while not consumer.assignment():
        pack = consumer.poll(_LOOK_S)
        if pack is not None:
            return pack
        if time.monotonic() >= until:
            raise DataProxyError(
                f"no partition was assigned to this member of group {consumer.config.group!r} within {seconds:g} s",
                hint="a group has at most one reader for each partition; end another member, or take another group",
            )
    return None


def _write(consumer: Consumer, job: Job, reading: Reading, pack: Pack) -> None:
    """Write a pack and confirm it; one that is not written whole is given back, to come again."""
    count = len(pack) if job.most is None else min(len(pack), job.most - reading.messages)
    try:
        if data := job.show(pack, count):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
    except BaseException:
        _give_back(consumer, pack)
        raise
    reading.messages += count
    if count < len(pack):
        _give_back(consumer, pack)
        return
    try:
        consumer.confirm(pack, wait=False)
        reading.asked.append(pack)
    except ConfirmError as error:  # the output has taken too long, or the partition went to another member
        _tell(reading, error)


def _give_back(consumer: Consumer, pack: Pack) -> None:
    """Let a pack come again; unless that is asked for, its partition would be held for ``release_wait``."""
    with contextlib.suppress(DataProxyError):
        consumer.rollback(pack)


def _note_ends(reading: Reading) -> None:
    """Look at the packs whose confirms have been answered meanwhile."""
    from dataproxy.consumer.outcomes import check_confirmed

    still = []
    for pack in reading.asked:
        if pack.outcome == "held" and reading.stats is None:
            still.append(pack)
            continue
        try:
            check_confirmed(pack)
        except ConfirmError as error:
            _tell(reading, error)
    reading.asked = still


def _tell(reading: Reading, error: ConfirmError) -> None:
    """Count a pack whose confirm does not count; the first one is told at once, the summary has the number."""
    reading.unconfirmed += 1
    if reading.unconfirmed == 1:
        complain(str(error))


def _leave(consumer: Consumer, seconds: float | None) -> None:
    """Give all partitions back; Ctrl-C or SIGTERM meanwhile ends that at once."""
    try:
        consumer.close(seconds)
    except KeyboardInterrupt:
        consumer.close(0)
        raise


def report(job: Job, reading: Reading, *, verbose: bool) -> None:
    """Print the number of messages on stdout (form ``count``), and the summary on stderr.

    The summary is for a terminal, or for ``verbose``.
    """
    if job.form is Format.COUNT and (reading.consumer is not None or job.most == 0):
        _print_count(reading)
    if reading.unconfirmed > 1:
        complain(f"{reading.unconfirmed:,} packs in all were written but not confirmed: their messages may come again")
    if reading.stats is not None and (verbose or sys.stderr.isatty()):
        from rich.console import Console

        Console(file=cast("TextIO", Deaf(sys.stderr))).print(_table(reading, reading.stats))


def _print_count(reading: Reading) -> None:
    if reading.interrupted and not select.select([], [sys.stdout], [], _PATIENCE)[1]:
        complain(f"the count could not be written to stdout: nobody is reading; {reading.messages:,} messages")
        return
    sys.stdout.write(f"{reading.messages}\n")
    sys.stdout.flush()


@contextlib.contextmanager
def _shown_progress(job: Job, reading: Reading, wanted: bool | None) -> Iterator[None]:
    if wanted is None:
        wanted = sys.stderr.isatty() and (job.form is Format.COUNT or not sys.stdout.isatty())
    if not wanted:
        yield
        return
    from rich.console import Console
    from rich.live import Live

    with Live(
        get_renderable=lambda: _progress_line(reading),
        console=Console(file=cast("TextIO", Deaf(sys.stderr))),
        refresh_per_second=_REFRESHES_A_SECOND,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ):
        yield


def _progress_line(reading: Reading) -> Text:
    """Return one line; the most important counts come first, since a narrow terminal cuts the line."""
    from rich.text import Text

    if reading.consumer is None:
        return Text("")
    stats = reading.consumer.stats()
    behind = [lag.messages for lag in stats.lags.values() if lag.messages is not None]
    parts = [f"{reading.messages:,} messages", f"{len(stats.lags):,} partitions"]
    if behind:
        parts.append(f"{max(behind):,} behind")
    if reading.unconfirmed:
        parts.insert(1, f"{reading.unconfirmed:,} packs not confirmed")
    if stats.trouble and stats.state != "member":
        parts.append("no master")
    return Text("  ".join(parts), style="red" if reading.unconfirmed else "", no_wrap=True, overflow="ellipsis")


def _table(reading: Reading, stats: ConsumerStats) -> Table:
    from rich.table import Table

    table = Table(title="counts", title_justify="left", show_header=False)
    table.add_column("count")
    table.add_column("value", justify="right")
    table.add_row("messages", f"{reading.messages:,}")
    table.add_row("packs confirmed", f"{stats.packs.confirmed:,}")
    for name, number, alarm in (
        ("packs written but not confirmed", reading.unconfirmed, True),
        ("packs given back", stats.packs.rolled_back, False),
        ("messages with a wrong checksum, left out", stats.broken, True),
    ):
        if number:
            table.add_row(name, f"{number:,}", style="red" if alarm else None)
    table.add_row("bytes read", f"{stats.bytes:,}")
    table.add_row("seconds", f"{reading.seconds:.2f}")
    return table
