"""``dataproxy doctor``: options, progress, exit code."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from dataproxy.cli.outcome import Deaf, ExitCode, complain, interrupted, outcome, say, silence
from dataproxy.cli.settings import named_options
from dataproxy.config import load_producer_config
from dataproxy.errors import ConfigError, InvalidMessageError
from dataproxy.shown import json_text, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TextIO

    from dataproxy.doctor import Findings
    from dataproxy.doctor.examination import Examination

__all__ = ["doctor"]

_SHOWN = 3  # findings in the summary
_LONG = 200  # characters of one of them

_TARGET = typer.Argument(
    metavar="[TARGET]", help="tcp://host:port,... or http://manager:8083; none: only this machine."
)
_GROUP = typer.Option("--group", "-g", metavar="ID", help="Group id (else the option group_id).")
_STREAM = typer.Option("--stream", "-s", metavar="ID", help="Stream id, for --send.")
_SEND = typer.Option("--send", help="Send one marked message to each proxy and wait for its answer.")
_BODY = typer.Option(metavar="TEXT", help="Body of that message, e.g. a row that the readers of the stream can parse.")
_FRAME = typer.Option("--frame-limit", help="Try a heartbeat of max_frame_bytes, and smaller ones if it is refused.")
_TIMEOUT = typer.Option(metavar="TIME", help="Longest time of one step, e.g. of a connection or an answer.")
_CONFIG = typer.Option("--config", "-c", metavar="FILE", help="Producer options as TOML or JSON.")
_OPTION = typer.Option(
    "--option", "-o", metavar="NAME=VALUE", help="Any producer option (CONFIGURATION.md); may be repeated."
)
_STRICT = typer.Option("--strict", help="Warnings count as errors in the exit code.")
_JSON = typer.Option("--json", help="Print JSON (docs/doctor.md describes it).")
_PROGRESS = typer.Option("--progress/--no-progress", help="Progress on stderr. [default: on a terminal]")


def doctor(
    target: Annotated[str | None, _TARGET] = None,
    group: Annotated[str | None, _GROUP] = None,
    stream: Annotated[str, _STREAM] = "",
    send: Annotated[bool, _SEND] = False,
    body: Annotated[str, _BODY] = "",
    frame_limit: Annotated[bool, _FRAME] = False,
    timeout: Annotated[str, _TIMEOUT] = "5s",
    config: Annotated[str | None, _CONFIG] = None,
    option: Annotated[list[str] | None, _OPTION] = None,
    strict: Annotated[bool, _STRICT] = False,
    json: Annotated[bool, _JSON] = False,
    progress: Annotated[bool | None, _PROGRESS] = None,
) -> None:
    """Find out why messages do not arrive: names, Manager, proxies, clocks, limits, versions.

    Nothing but heartbeats is sent, unless --send is given. Exit code 0: no error; 1: something is wrong; 3: no proxy
    or Manager could be reached.
    """
    with outcome():
        examination = _prepared(
            target, group, config, option or [], timeout=timeout, stream=stream, send=send, body=body,
            frame_limit=frame_limit,
        )  # fmt: skip
        ended: KeyboardInterrupt | None = None
        try:
            with _shown_progress(examination, progress):
                examination.run()
        except KeyboardInterrupt as error:
            ended = error
        found = examination.findings()
        code = _code(found, strict=strict) if ended is None else interrupted(ended)
        if ended is None or sys.stdout.isatty():  # a pipe that nobody reads would hold up the end
            _print(found, code, json=json)
        if ended is None:
            _sum_up(found, code)
        raise typer.Exit(code)


def _prepared(
    target: str | None, group: str | None, file: str | None, pairs: list[str], *, timeout: str, stream: str, send: bool,
    body: str, frame_limit: bool,
) -> Examination:  # fmt: skip
    """Return the examination that the options ask for.  Raises ConfigError."""
    from dataproxy.config.units import parse_duration
    from dataproxy.doctor.examination import Examination
    from dataproxy.producer.discovery.targets import refuse_masters

    options = named_options(pairs)
    for name, value in {"target": target, "group_id": group}.items():
        if value is not None and name in options:
            raise ConfigError(f"{name} is given twice", hint="keep one")
        if value is not None:
            options[name] = value
    try:
        seconds = parse_duration(timeout)
    except ValueError as error:
        raise ConfigError(f"--timeout {timeout!r} {error}") from None
    if target is not None and not target.strip():
        raise ConfigError("TARGET is empty", hint="leave it out to check this machine only")
    refuse_masters(target or "")
    settings: dict[str, Any] = {"stream_id": stream, "send": send, "body": body.encode(errors="surrogateescape")}
    try:
        return Examination(
            load_producer_config(file=file, require_target=False, **options),
            timeout=seconds, frame_limit=frame_limit, **settings,
        )  # fmt: skip
    except InvalidMessageError as error:
        raise ConfigError(str(error.args[0]), hint=error.hint, code=error.code) from None


@contextlib.contextmanager
def _shown_progress(examination: Examination, progress: bool | None) -> Iterator[None]:
    """Show each step on stderr while the block runs: on a terminal in one line that changes."""
    if not (sys.stderr.isatty() if progress is None else progress):
        yield
        return
    if not sys.stderr.isatty():
        with examination.watched(say):
            yield
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=cast("TextIO", Deaf(sys.stderr)))
    with console.status(Text("dataproxy doctor")) as status:
        show: Callable[[str], object] = lambda line: status.update(Text(line))  # noqa: E731
        with examination.watched(show):
            yield


def _print(found: Findings, code: ExitCode, *, json: bool) -> None:
    """Print the findings.  If they cannot be written, a code that is not 0 still tells of them."""
    from dataproxy.cli.doctor.shown import as_text

    try:
        sys.stdout.write(json_text(found.as_json(), indent=2) + "\n" if json else as_text(found))
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)
    except OSError as error:
        if code is ExitCode.OK:
            raise
        complain(f"the output: {error.strerror or error}")
        silence(sys.stdout)


def _code(found: Findings, *, strict: bool) -> ExitCode:
    from dataproxy.doctor import Level

    if not found.reachable:
        return ExitCode.UNREACHABLE
    failed = not found.ok or (strict and found.count(Level.WARNING))
    return ExitCode.FAILED if failed else ExitCode.OK


def _sum_up(found: Findings, code: ExitCode) -> None:
    """Write one line to stderr: counts, and what is wrong in short."""
    from dataproxy.doctor import Level

    counts = [(found.count(level), str(level)) for level in (Level.ERROR, Level.WARNING, Level.NOTE)]
    told = ", ".join(f"{number} {word}{'' if number == 1 else 's'}" for number, word in counts)
    if code is ExitCode.OK:
        say(f"{len(found.findings)} checks in {found.seconds:.1f} s: {told}")
        return
    bad = [one for one in found.findings if one.level is Level.ERROR] or [
        one for one in found.findings if one.level is Level.WARNING
    ]
    words = "; ".join(_short(printable(f"{one.check} {one.subject}: {one.text}")) for one in bad[:_SHOWN])
    more = f"; and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
    complain(f"{told}: {words}{more}")


def _short(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[: _LONG - 3]}..."
