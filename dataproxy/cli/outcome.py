"""Exit codes, and how errors become messages on stderr."""

from __future__ import annotations

import contextlib
import os
import sys
from enum import IntEnum
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TextIO

import typer

from dataproxy.cli import ending
from dataproxy.errors import ConfigError, DataProxyError, DiscoveryError, TransportError
from dataproxy.shown import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "Deaf",
    "ExitCode",
    "check_output",
    "complain",
    "has_output",
    "interrupted",
    "outcome",
    "reported",
    "say",
    "silence",
]

_Arguments = ParamSpec("_Arguments")


class ExitCode(IntEnum):
    """Say how a command ended."""

    OK = 0
    FAILED = 1  #: messages were not delivered, or the work could not be done
    USAGE = 2  #: a wrong option, argument or configuration
    UNREACHABLE = 3  #: no proxy, Manager or hub could be reached
    INTERRUPTED = 130  #: Ctrl-C
    TERMINATED = 143  #: SIGTERM


def complain(text: str) -> None:
    """Write one message to stderr, in one line; control characters in foreign text are shown as escapes."""
    say(f"dataproxy: {printable(text)}")


def say(line: str) -> None:
    """Write a line to stderr; errors (closed, disk full) are ignored, since there is no other place to report them."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


class Deaf:
    """Wrap a stream and ignore its errors: text that cannot be written is dropped.

    For progress on stderr, whose errors must not end the command's work.  Other attributes are the stream's own.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text, if it can be written."""
        with contextlib.suppress(OSError, ValueError):
            return self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream, if it can be flushed."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def has_output() -> bool:
    """Tell whether this process has a stdout: in the place of a closed one `main` has opened the null device."""
    return getattr(sys.stdout, "name", None) != 1


def check_output(what: str) -> None:
    """Raise ConfigError if this process has no stdout, for a command that writes ``what`` there without end."""
    if not has_output():
        raise ConfigError(
            f"stdout is closed: nobody would see the {what}, and the command would not end",
            hint="write them to a file or a pipe",
        )


def silence(stream: TextIO) -> None:
    """Send the rest of a stream's output to the null device: it cannot be written and would fail again at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextlib.contextmanager
def outcome(*, arm: bool = True) -> Iterator[None]:
    """Turn errors of a command's body, SIGINT and SIGTERM into a message and an exit code.

    Without ``arm``, a block inside handles a signal that came before.
    """
    try:
        if arm:
            ending.arm()
        yield
        sys.stdout.flush()
    except KeyboardInterrupt as error:
        if isinstance(error, ending.Unread):
            silence(sys.stdout)
        raise typer.Exit(interrupted(error)) from None
    except BrokenPipeError:
        # The reader has closed the pipe (`dataproxy tail ... | head`); nothing more can be written.
        silence(sys.stdout)
        raise typer.Exit(ExitCode.OK) from None
    except ConfigError as error:
        complain(str(error))
        raise typer.Exit(ExitCode.USAGE) from None
    except (DiscoveryError, TransportError) as error:
        complain(str(error))
        raise typer.Exit(ExitCode.UNREACHABLE) from None
    except DataProxyError as error:
        complain(str(error))
        raise typer.Exit(ExitCode.FAILED) from None
    except OSError as error:
        complain(f"{error.filename or 'the output'}: {error.strerror or error}")
        silence(sys.stdout)
        raise typer.Exit(ExitCode.FAILED) from None
    except ModuleNotFoundError as error:
        ours = (error.name or "").startswith("dataproxy.")  # a compiled module: the text says what to do
        complain(str(error) if ours else _missing(error.name or ""))
        raise typer.Exit(ExitCode.USAGE) from None
    except ImportError as error:
        complain(str(error))
        raise typer.Exit(ExitCode.USAGE) from None


def _missing(module: str) -> str:
    if module == "google" or module.startswith("google."):
        return "the package 'protobuf' is missing; pip install 'dataproxy-sdk[tubemq]'"
    return f"the package {module!r} is missing; pip install 'dataproxy-sdk[cli,hub]'"


def interrupted(error: KeyboardInterrupt) -> ExitCode:
    """Return the exit code of a command that a signal ended, or that nobody reads any more."""
    if isinstance(error, ending.Unread):
        return ExitCode.OK
    return ExitCode.TERMINATED if isinstance(error, ending.Terminated) else ExitCode.INTERRUPTED


def reported(command: Callable[_Arguments, None]) -> Callable[_Arguments, None]:
    """Return a command whose errors become messages and exit codes."""

    @wraps(command)
    def run(*arguments: _Arguments.args, **options: _Arguments.kwargs) -> None:
        with outcome():
            command(*arguments, **options)

    return run
