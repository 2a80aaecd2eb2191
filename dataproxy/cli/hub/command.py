"""``dataproxy hub``: run a hub until a signal ends it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

import typer

from dataproxy.cli.outcome import complain, reported, say, silence
from dataproxy.cli.settings import named_options
from dataproxy.errors import ConfigError, HubError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from dataproxy.config import HubConfig
    from dataproxy.hub import Hub

__all__ = ["run_hub"]

_WORDS: Final = {"tubemq_port": "tubemq", "rocketmq_port": "rocketmq"}  # options of the command that have another name
_PORTS: Final = {"port": 46801, "manager_port": 8083}
_HTTP_PORT: Final = 46802
_HTTP_HELP: Final = (
    "TCP port of the HTTP report, 0 for a free one, -1 for none. [default: 46802, or the one after all nodes' ports]"
)
_TUBEMQ_HELP: Final = "TCP port for clients of TubeMQ, 0 for a free one, -1 for none. [default: none]"
_ROCKETMQ_HELP: Final = "TCP port for clients of RocketMQ 4, 0 for a free one, -1 for none. [default: none]"
#: Seconds for answers after a signal.  Together with the end of the process this makes the documented 10 s.
_ANSWER_SECONDS: Final = 9.0


@reported
def run_hub(
    store: Annotated[
        str | None, typer.Option(metavar="DIR", help="Keep data in this directory; acks come after it is on disk.")
    ] = None,
    memory: Annotated[bool, typer.Option("--memory", help="Keep data in memory only.")] = False,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Listen on this address. [default: 127.0.0.1]")
    ] = None,
    port: Annotated[
        int | None, typer.Option(metavar="PORT", help="TCP port for producers, 0 for a free one. [default: 46801]")
    ] = None,
    http_port: Annotated[int | None, typer.Option(metavar="PORT", help=_HTTP_HELP)] = None,
    tubemq: Annotated[int | None, typer.Option(metavar="PORT", help=_TUBEMQ_HELP)] = None,
    rocketmq: Annotated[int | None, typer.Option(metavar="PORT", help=_ROCKETMQ_HELP)] = None,
    manager_port: Annotated[
        int | None, typer.Option(metavar="PORT", help="HTTP port of the Manager, 0 for a free one. [default: 8083]")
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(metavar="COUNT", help="Act as this many proxies, on consecutive ports. [default: 1]")
    ] = None,
    config: Annotated[str | None, typer.Option(metavar="FILE", help="TOML or JSON file with options.")] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", metavar="NAME=VALUE", help="Any option of the hub.")
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure",
            help="Accept connections from other machines without credentials: anyone may read all messages.",
        ),
    ] = False,
    print_urls: Annotated[
        bool, typer.Option("--print-urls", help="Print the addresses and the token as JSON on stdout.")
    ] = False,
) -> None:
    """Run a hub: accept messages, store them, and answer discovery requests.

    Say where the data goes: --store DIR or --memory. The hub prints on stderr where it listens, and the file with the
    token for changes over HTTP. SIGINT or SIGTERM ends it with code 0 after everything accepted is stored and
    answered; that takes at most 10 s and the time of the disk. A second signal ends it at once.
    """
    from dataproxy.hub import Hub
    from dataproxy.hub.descriptors import raise_limit

    named = named_options(option or [])
    given = {
        "store": store, "host": host, "port": port, "http_port": http_port, "manager_port": manager_port,
        "tubemq_port": tubemq, "rocketmq_port": rocketmq, "nodes": nodes, "insecure": insecure or None,
    }  # fmt: skip
    options = _together(named, given)
    store = options.pop("store", None)
    if memory and store is not None:
        raise ConfigError("--store and --memory were both given", hint="choose one")
    settled = _settle("" if memory else store, config, options)
    if not memory and not settled.store:
        raise ConfigError("no store was given", hint="give --store DIR, or --memory")
    raise_limit(settled.max_connections)
    with _Ending() as ending:  # from here on a signal is how a hub is meant to end
        _serve(Hub(config=settled), ending, print_urls=print_urls)


def _together(named: dict[str, str], given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of ``-o`` and those of their own.  Raises ConfigError if one was given in both ways."""
    own = {name: value for name, value in given.items() if value is not None}
    for name in own:
        if name in named:
            raise ConfigError(
                f"--{_WORDS.get(name, name).replace('_', '-')} and -o {name} were both given", hint="keep one"
            )
    return {**named, **own}


def _settle(store: str | None, file: str | None, options: dict[str, Any]) -> HubConfig:
    """Return the configuration, with the well-known ports unless other ports were given.  Raises ConfigError."""
    from dataproxy.config import load_hub_config

    settled = load_hub_config(store, file=file, **options)
    ports = {name: number for name, number in _PORTS.items() if settled.origin(name).startswith("default")}
    if "port" in ports and settled.origin("http_port").startswith("default"):
        ports["http_port"] = _HTTP_PORT + settled.nodes - 1  # behind the ports of all nodes
    return load_hub_config(store, file=file, **{**options, **ports})


def _serve(running: Hub, ending: _Ending, *, print_urls: bool) -> None:
    """Print where the hub listens, and wait for a signal."""
    import json
    import sys

    with running, _published(running) as token_file:
        where = running.store_path or "memory"
        # A configured token stays valid after this hub, so it must not be in a terminal's history or a log.
        token = None if running.config.token else running.token
        say(f"hub: producers {running.target}, Manager {running.manager_url}, store {where}")
        if running.tubemq_port >= 0:
            say(f"hub: TubeMQ {running.tubemq_target}")
        if running.rocketmq_port >= 0:
            say(f"hub: RocketMQ {running.rocketmq_target}")
        say(f"hub: token {token or 'as configured'}{f', in {token_file}' if token_file else ''}")
        if print_urls:
            urls = {
                "target": running.target, "http_target": running.http_target if running.http_port > 0 else None,
                "tubemq_target": running.tubemq_target if running.tubemq_port >= 0 else None,
                "rocketmq_target": running.rocketmq_target if running.rocketmq_port >= 0 else None,
                "manager_url": running.manager_url, "store": running.store_path, "token": token,
                "token_file": token_file or None,
            }  # fmt: skip
            try:
                with ending.raised():
                    typer.echo(json.dumps(urls))
                    sys.stdout.flush()
            except KeyboardInterrupt:  # printing may block for ever, if nobody reads
                silence(sys.stdout)
        ending.wait()
        running.close(_ANSWER_SECONDS)


class _Ending:
    """Let SIGINT and SIGTERM end the wait for a signal; a second signal ends the process.  Main thread.

    The system writes the signal's number to a socket.  A handler that takes a lock could block for ever, because the
    code that it interrupts may hold this lock.
    """

    def __init__(self) -> None:
        import signal
        import socket

        self._ends: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM)
        self._near, self._far = socket.socketpair()
        self._before = -1
        self._came = 0
        self._raises = False

    def __enter__(self) -> Self:
        import signal

        self._far.setblocking(False)
        self._before = signal.set_wakeup_fd(self._far.fileno(), warn_on_full_buffer=False)
        for number in self._ends:
            signal.signal(number, self._end)
        return self

    def __exit__(self, *_: object) -> None:
        import signal

        signal.set_wakeup_fd(self._before)
        self._near.close()
        self._far.close()

    def _end(self, number: int, _frame: FrameType | None) -> None:
        import signal

        for one in self._ends:
            signal.signal(one, signal.SIG_DFL)
        self._came = number
        if self._raises:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def raised(self) -> Iterator[None]:
        """Make signals raise in this block, which could otherwise block for ever; an earlier signal raises at once."""
        self._raises = True
        try:
            if self._came:
                raise KeyboardInterrupt
            yield
        finally:
            self._raises = False

    def wait(self) -> None:
        """Wait for a signal."""
        while self._near.recv(1)[0] not in self._ends:
            pass


@contextlib.contextmanager
def _published(running: Hub) -> Iterator[str]:
    """Write the token to the file where other commands of this user look for it, and yield the file's name.

    Without a safe folder there is no file, and "" is yielded; the token is printed nevertheless.  A configured token is
    not written: later, commands would send it to any other server that listens at this address.
    """
    from dataproxy.hub.tokenfile import remove_token, runtime_file, write_token

    if running.config.token_file:  # the hub writes it there
        yield running.config.token_file
        return
    if running.config.token:
        yield ""
        return
    file = runtime_file(running.host, running.manager_port)
    try:
        write_token(file, running.token, folder=True)
    except HubError as error:
        complain(str(error))
        yield ""
        return
    try:
        yield str(file)
    finally:
        remove_token(file, running.token)
