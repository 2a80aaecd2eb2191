"""``dataproxy send``: lines of stdin or files as messages."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dataproxy.cli.outcome import complain, outcome
from dataproxy.cli.settings import named_options, named_values
from dataproxy.errors import ConfigError

__all__ = ["send"]


def send(
    stream: Annotated[str, typer.Option("--stream", "-s", metavar="ID", help="Stream id.")],
    group: Annotated[
        str | None, typer.Option("--group", "-g", metavar="ID", help="Group id (else the option group_id).")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="ADDRESS", help="tcp://host:port,... or http://manager:8083."),
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option("--file", "-f", metavar="FILE", help="Read this file, - for stdin; may be repeated."),
    ] = None,
    delimiter: Annotated[
        str, typer.Option(metavar="TEXT", help=r"What ends a message; \n, \t, \xNN are understood.")
    ] = r"\n",
    null: Annotated[bool, typer.Option("--null", "-0", help="Messages end with a NUL byte.")] = False,
    max_lines: Annotated[int | None, typer.Option(min=0, metavar="N", help="Stop after so many messages.")] = None,
    attr: Annotated[
        list[str] | None,
        typer.Option("--attr", "-a", metavar="KEY=VALUE", help="Attribute of all messages; may be repeated."),
    ] = None,
    config: Annotated[
        str | None, typer.Option("--config", "-c", metavar="FILE", help="Producer options as TOML or JSON.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", "-o", metavar="NAME=VALUE", help="Any producer option (CONFIGURATION.md); may be repeated."
        ),
    ] = None,
    delivery_timeout: Annotated[
        str | None, typer.Option(metavar="TIME", help="Keep trying each message for so long, e.g. 5m.")
    ] = None,
    progress: Annotated[
        bool | None, typer.Option("--progress/--no-progress", help="Show progress (default: on a terminal).")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the books as JSON on stdout.")] = False,
) -> None:
    """Send lines as messages and wait until the fate of each is known.

    Lines come from stdin, or from files. Empty lines are left out and counted. Ctrl-C stops the reading, delivers
    what was taken, and shows the books; a second one quits at once.
    """
    with outcome():
        from dataproxy.cli.lines import delimiter_bytes
        from dataproxy.cli.sending import Job, finish, run
        from dataproxy.config import load_producer_config

        if null and delimiter != r"\n":
            raise ConfigError("both --null and --delimiter are given", hint="keep one")
        options = named_options(option or [])
        if delivery_timeout is not None:
            options["delivery_timeout"] = delivery_timeout
        named = {"target": target, "group_id": group}
        for name, value in named.items():
            if value is not None and name in options:
                raise ConfigError(f"{name} is given twice", hint="keep one")
        given: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
        try:
            end = b"\0" if null else delimiter_bytes(delimiter)
        except ValueError as error:
            raise ConfigError(f"--delimiter {delimiter!r} cannot be used: {error}") from None
        job = Job(
            config=load_producer_config(file=config, **options, **given),
            stream=stream,
            attrs=named_values(attr or [], "--attr"),
            files=tuple(file or ["-"]),
            delimiter=end,
            max_lines=max_lines,
        )
        books = run(job, progress)
        if books.problem:
            complain(books.problem)
        raise typer.Exit(finish(books, json=json))
