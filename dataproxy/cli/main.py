"""Entry point of the command ``dataproxy``."""

from __future__ import annotations

import codecs
import os
import sys

from dataproxy.cli import ending

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process and exit with its code (docs/cli.md lists them)."""
    ending.install()
    _occupy_standard_descriptors()
    _escape_what_has_no_code()
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


def _escape_what_has_no_code() -> None:
    r"""Print characters that the encoding of stdout does not have as the escapes of JSON, such as ``\u4e2d``.

    Stderr has Python's escapes for them already.
    """
    codecs.register_error("dataproxy.escape", _escaped)
    sys.stdout.reconfigure(errors="dataproxy.escape")  # type: ignore[union-attr]


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = memoryview(error.object[error.start : error.end].encode("utf-16", "surrogatepass")).cast("H")[1:]
    return "".join(f"\\u{unit:04x}" for unit in units), error.end
