"""``dataproxy send``: lines of stdin or files as messages."""

from __future__ import annotations

from typing import Annotated

import typer

from dataproxy.cli import ending
from dataproxy.cli.outcome import complain, outcome
from dataproxy.cli.send.lines import delimiter_bytes
from dataproxy.cli.settings import named_options, named_values
from dataproxy.config import load_producer_config
from dataproxy.errors import ConfigError

__all__ = ["send"]


_STREAM = typer.Option("--stream", "-s", metavar="ID", help="Stream id, or topic of TubeMQ.")
_GROUP = typer.Option("--group", "-g", metavar="ID", help="Group id (else the option group_id); not with TubeMQ.")
_TARGET = typer.Option(
    "--target", "-t", metavar="ADDRESS", help="tcp://host:port,..., http://manager:8083, or tubemq://master."
)
_FILE = typer.Option("--file", "-f", metavar="FILE", help="Read this file, - for stdin; may be repeated.")
_DELIMITER = typer.Option(metavar="TEXT", help=r"What ends a message; \n, \t, \xNN are understood.")
_NULL = typer.Option("--null", "-0", help="Messages end with a NUL byte.")
_MAX_LINES = typer.Option(min=0, metavar="N", help="Stop after this many lines.")
_ATTR = typer.Option("--attr", "-a", metavar="KEY=VALUE", help="Attribute of all messages; may be repeated.")
_CONFIG = typer.Option("--config", "-c", metavar="FILE", help="Producer options as TOML or JSON.")
_OPTION = typer.Option(
    "--option", "-o", metavar="NAME=VALUE", help="Any producer option (CONFIGURATION.md); may be repeated."
)
_TIMEOUT = typer.Option("--delivery-timeout", metavar="TIME", help="Retry each message for this long, e.g. 5m.")
_PROGRESS = typer.Option("--progress/--no-progress", help="Show progress (default: on a terminal).")
_JSON = typer.Option("--json", help="Print the counts as JSON on stdout.")


def send(
    stream: Annotated[str, _STREAM],
    group: Annotated[str | None, _GROUP] = None,
    target: Annotated[str | None, _TARGET] = None,
    file: Annotated[list[str] | None, _FILE] = None,
    delimiter: Annotated[str, _DELIMITER] = r"\n",
    null: Annotated[bool, _NULL] = False,
    max_lines: Annotated[int | None, _MAX_LINES] = None,
    attr: Annotated[list[str] | None, _ATTR] = None,
    config: Annotated[str | None, _CONFIG] = None,
    option: Annotated[list[str] | None, _OPTION] = None,
    delivery_timeout: Annotated[str | None, _TIMEOUT] = None,
    progress: Annotated[bool | None, _PROGRESS] = None,
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Send lines as messages and wait for the result of each.

    Lines come from stdin, or from files. Empty lines are skipped and counted. Ctrl-C and SIGTERM stop the reading,
    deliver what was read, and print the counts; a second signal quits at once.
    """
    with outcome(arm=False):
        from dataproxy.cli.send.sending import Accounting, Job, finish, run

        accounting = Accounting()
        try:
            ending.arm()
            options = named_options(option or [])
            for name, value in {"target": target, "group_id": group, "delivery_timeout": delivery_timeout}.items():
                if value is not None and name in options:
                    raise ConfigError(f"{name} is given twice", hint="keep one")
                if value is not None:
                    options[name] = value
            job = Job(
                config=load_producer_config(file=config, **options),
                stream=stream,
                attrs=named_values(attr or [], "--attr"),
                files=tuple(file or ["-"]),
                delimiter=_end_of_line(delimiter, null),
                max_lines=max_lines,
            )
            run(job, accounting, progress)
        except KeyboardInterrupt as error:  # before the first line was read, or a third signal
            accounting.interrupt(error)
            accounting.abandon()
        if accounting.problem:
            complain(accounting.problem)
        raise typer.Exit(finish(accounting, json=json))


def _end_of_line(delimiter: str, null: bool) -> bytes:
    """Return the bytes that end a message.  Raises ConfigError."""
    if null and delimiter != r"\n":
        raise ConfigError("both --null and --delimiter are given", hint="keep one")
    try:
        return b"\0" if null else delimiter_bytes(delimiter)
    except ValueError as error:
        raise ConfigError(f"--delimiter {delimiter!r} cannot be used: {error}") from None
