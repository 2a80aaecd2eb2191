"""Entry point of the command ``dataproxy``."""

from __future__ import annotations

import os
import sys

from dataproxy.cli import ending

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process and exit with its code (docs/cli.md lists them)."""
    ending.install()
    _occupy_standard_descriptors()
    try:
        from dataproxy.cli.app import app
        from dataproxy.cli.outcome import ExitCode, outcome, silence
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.stderr.write(f"dataproxy: the package {error.name!r} is missing; pip install 'dataproxy-sdk[cli]'\n")
        raise SystemExit(2) from None
    code: object = 0
    try:
        with outcome(arm=False):
            try:
                app(prog_name="dataproxy")
            except SystemExit as ended:
                code = ended.code
                if isinstance(ended.__context__, BrokenPipeError):  # rich and typer end with 1 for it
                    code = ExitCode.OK
                    silence(sys.stdout)
            if code in (ExitCode.INTERRUPTED, ExitCode.TERMINATED):
                silence(sys.stdout)  # the reader takes nothing more: writing the rest would block the end
    except RuntimeError as error:  # typer.Exit: the output could not be written
        code = code or getattr(error, "exit_code", 1)
    ending.release()
    try:
        sys.stderr.flush()
    except (OSError, ValueError):  # the interpreter would try again, fail, and exit with its own code 120
        silence(sys.stderr)
    sys.exit(code)  # type: ignore[arg-type]


def _occupy_standard_descriptors() -> None:
    """Open a file in place of a closed stdin, stdout or stderr: else a socket gets the number, and then the output."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            if name != "stdin":  # reading from stdin raises its own error where a command reads
                setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - for the process's life
