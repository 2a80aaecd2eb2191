"""Exit codes, and how errors become messages on stderr."""

from __future__ import annotations

import contextlib
import os
import sys
from enum import IntEnum
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TextIO

import typer

from dataproxy.errors import ConfigError, DataProxyError, DiscoveryError, TransportError
from dataproxy.shown import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["ExitCode", "complain", "outcome", "reported", "say", "silence"]

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
    """Write one message to stderr, in one line: what others said in it is shown and not obeyed."""
    say(f"dataproxy: {printable(text)}")


def say(line: str) -> None:
    """Write a line to stderr; where that is closed, or its disk is full, nobody would read it."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def silence(stream: TextIO) -> None:
    """Have nothing come of what is still to be written there: it cannot be, and would fail again at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextlib.contextmanager
def outcome() -> Iterator[None]:
    """Turn errors of a command's body into a message and an exit code."""
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except BrokenPipeError:
        # The reader of our output has had enough (`dataproxy tail ... | head`); nothing can be written any more.
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
        complain(f"the package {error.name!r} is missing; pip install 'dataproxy-sdk[cli,hub]'")
        raise typer.Exit(ExitCode.USAGE) from None


def reported(command: Callable[_Arguments, None]) -> Callable[_Arguments, None]:
    """Return a command whose errors become messages and exit codes."""

    @wraps(command)
    def run(*arguments: _Arguments.args, **options: _Arguments.kwargs) -> None:
        with outcome():
            command(*arguments, **options)

    return run
