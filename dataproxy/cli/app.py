"""The application of the command line: the options that all commands share, and the version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dataproxy.cli.commands import MARKUP, Commands
from dataproxy.cli.outcome import ExitCode, complain, outcome, reported

if TYPE_CHECKING:
    import logging

__all__ = ["app"]

app = typer.Typer(
    name="dataproxy",
    cls=Commands,
    help="Send messages to Apache InLong DataProxy, run a hub and look into it, read messages of TubeMQ.",
    no_args_is_help=True,
    rich_markup_mode=MARKUP,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit(ExitCode.OK)


@app.callback()
def common(
    context: typer.Context,
    log_level: Annotated[
        str, typer.Option(metavar="LEVEL", help="Log to stderr from this level on: debug, info, warning, error, off.")
    ] = "warning",
    log_config: Annotated[
        str | None, typer.Option(metavar="FILE", help="Set up logging from this TOML file instead.")
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Set up what all commands share."""
    # `send` prints its counts after any signal, so it handles signals that came early itself.
    with outcome(arm=log_config is not None or context.invoked_subcommand != "send"):
        _set_up_logging(log_level.lower(), log_config)


@app.command()
@reported
def version() -> None:
    """Print the version."""
    import platform

    from dataproxy._version import __version__

    typer.echo(f"dataproxy {__version__} (Python {platform.python_version()})")


def _set_up_logging(level: str, file: str | None) -> None:
    import logging
    import logging.config

    if file is not None:
        import tomllib

        try:
            with open(file, "rb") as stream:  # noqa: PTH123
                logging.config.dictConfig(tomllib.load(stream))
        except (OSError, ValueError, TypeError, AttributeError, ImportError) as error:
            complain(f"--log-config {file!r} cannot be used: {error}")
            raise typer.Exit(ExitCode.USAGE) from None
        return
    if level == "off":
        return
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        complain(f"--log-level {level!r} is unknown; choose debug, info, warning, error or off")
        raise typer.Exit(ExitCode.USAGE)
    handler = logging.StreamHandler()
    handler.setFormatter(_line_formatter("%(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("dataproxy")
    logger.addHandler(handler)
    logger.setLevel(number)


def _line_formatter(form: str) -> logging.Formatter:
    """Return a formatter whose lines have no control characters for a terminal; a traceback keeps its line ends."""
    import logging

    from dataproxy.shown import printable

    class LineFormatter(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            lines = super().format(record).split("\n")
            kept = 1 + record.getMessage().count("\n")
            return "\n".join(map(printable, ["\\n".join(lines[:kept]), *lines[kept:]]))

    return LineFormatter(form)
