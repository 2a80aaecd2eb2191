"""``dataproxy consume``: messages of TubeMQ's topics, read as a member of a group."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dataproxy.cli.outcome import has_output, outcome
from dataproxy.cli.settings import named_options
from dataproxy.cli.tubemq.printing import Format, printer
from dataproxy.config import load_consumer_config
from dataproxy.errors import ConfigError

if TYPE_CHECKING:
    from dataproxy.config import ConsumerConfig

__all__ = ["Start", "consume"]


class Start(StrEnum):
    """Name where reading begins."""

    EARLIEST = "earliest"
    LATEST = "latest"
    END = "end"


_SESSION = "dataproxy-consume"  # of groups that begin at --from-offset

_TOPICS = typer.Argument(metavar="TOPIC[,TOPIC...]", help="Topics to read.")
_GROUP = typer.Option("--group", "-g", metavar="NAME", help="Consumer group (else the option group).")
_TARGET = typer.Option(
    "--target",
    "-t",
    metavar="ADDRESS",
    help="Masters: tubemq://host:port,..., or a hub that pushes: rocketmq://host:port (with TLS tubemqs, rocketmqs).",
)
_FILTER = typer.Option(
    metavar="ITEM",
    help=r"Read only messages with this $msgType$ (InLong's streamId), tag, or sql:EXPRESSION; may be repeated.",
)
_FROM = typer.Option(
    "--from",
    help="Where a partition begins: at the group's stored offset, without one at the first message (earliest) or"
    " behind the last (latest); or behind the last whatever is stored (end). [default: earliest]",
    show_default=False,
)
_FROM_OFFSET = typer.Option(
    "--from-offset",
    metavar="PARTITION=OFFSET",
    help="Where a partition begins, e.g. 1:orders:0=280; may be repeated. The group is bound to offsets then, and takes"
    " no members that are not.",
)
_FORMAT = typer.Option("--format", help="Bodies as lines, one JSON object a line, or only the number of messages.")
_NULL = typer.Option("--null", "-0", help="End bodies with a NUL byte instead of a line feed.")
_MAX = typer.Option(
    "--max",
    min=0,
    metavar="N",
    help="Stop after exactly N messages. A pack that this cuts is not confirmed: all of its messages come again, those"
    " behind the N-th and those that were printed.",
)
_TIMEOUT = typer.Option(
    metavar="TIME",
    help="Stop when this member has partitions and no message has come for this long, e.g. 30s. [default: never]",
)
_CONFIG = typer.Option("--config", "-c", metavar="FILE", help="Consumer options as TOML or JSON.")
_OPTION = typer.Option(
    "--option", "-o", metavar="NAME=VALUE", help="Any consumer option (CONFIGURATION.md); may be repeated."
)
_PROGRESS = typer.Option(
    "--progress/--no-progress", help="Show progress on stderr (default: on a terminal that gets no messages)."
)
_VERBOSE = typer.Option("--verbose", "-v", help="Print the summary on stderr even if that is no terminal.")
_RAW = typer.Option("--raw", help="Print bodies to a terminal without escapes; control characters in them take effect.")


def consume(
    topics: Annotated[str, _TOPICS],
    group: Annotated[str | None, _GROUP] = None,
    target: Annotated[str | None, _TARGET] = None,
    filter: Annotated[list[str] | None, _FILTER] = None,  # noqa: A002 - the option's name
    start: Annotated[Start | None, _FROM] = None,
    from_offset: Annotated[list[str] | None, _FROM_OFFSET] = None,
    form: Annotated[Format, _FORMAT] = Format.TEXT,
    null: Annotated[bool, _NULL] = False,
    most: Annotated[int | None, _MAX] = None,
    timeout: Annotated[str | None, _TIMEOUT] = None,
    config: Annotated[str | None, _CONFIG] = None,
    option: Annotated[list[str] | None, _OPTION] = None,
    progress: Annotated[bool | None, _PROGRESS] = None,
    verbose: Annotated[bool, _VERBOSE] = False,
    raw: Annotated[bool, _RAW] = False,
) -> None:
    """Read messages of TubeMQ, or of a hub that pushes, as a member of a group, and print them until Ctrl-C.

    Bodies are printed as the bytes that they are (on a terminal with escapes), each with a line feed. A pack of
    messages is confirmed only after all of them were written; what was not confirmed comes again, here or to another
    member.
    """
    with outcome():
        given: dict[str, Any] = {
            "target": target, "group": group, "topics": topics, "start": None if start is None else start.value,
            "offsets": from_offset or None,
        }  # fmt: skip
        options = named_options(option or [])
        for name, value in given.items():
            if value is not None and name in options:
                raise ConfigError(f"{name} is given twice", hint="keep one")
            if value is not None:
                options[name] = value
        if from_offset:
            options.setdefault("session", _SESSION)
        settled = _filtered(load_consumer_config(file=config, **options), filter or [])
        patience = None if timeout is None else _seconds(timeout)
        _check(settled, form, null=null)
        from dataproxy.cli.tubemq.reading import Job, Reading, report, run

        job = Job(
            # A pack is confirmed when it is written, not when the next one is asked for.
            config=settled.replace(auto_confirm=False),
            form=form,
            show=printer(form, b"\0" if null else b"\n", escaped=sys.stdout.isatty() and not raw),
            most=most,
            timeout=patience,
        )
        reading = Reading()
        try:
            run(job, reading, progress)
        finally:
            report(job, reading, verbose=verbose)


def _check(config: ConsumerConfig, form: Format, *, null: bool) -> None:
    """Raise ConfigError for what cannot be done, or would wait for ever."""
    if null and form is not Format.TEXT:
        raise ConfigError(f"--null does not go with --format {form}", hint="keep one")
    if form is not Format.COUNT and not has_output():
        raise ConfigError(
            "stdout is closed: messages would be confirmed that nobody has seen",
            hint="write them to /dev/null if nobody wants them",
        )
    if config.balance == "client":
        raise ConfigError(
            "balance='client' does not go with this command: nobody chooses partitions",
            hint="leave it out; then the master gives this member partitions",
        )


def _filtered(config: ConsumerConfig, items: list[str]) -> ConsumerConfig:
    """Return the configuration with filter items for all of its topics.  Raises ConfigError."""
    if not items:
        return config
    if any(own for _, own in config.topics):
        raise ConfigError("--filter and filter items of TOPIC were both given", hint="keep one")
    return config.replace(topics={name: items for name, _ in config.topics})


def _seconds(text: str) -> float:
    from dataproxy.config.units import parse_duration

    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise ConfigError(f"--timeout {text!r} {error}") from None
    if seconds < 0:
        raise ConfigError(f"--timeout {text!r} is below 0")
    return seconds
