"""``dataproxy hub``: run a hub until a signal ends it."""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dataproxy.config import load_hub_config
from dataproxy.errors import ConfigError

if TYPE_CHECKING:
    from dataproxy.hub import Hub

__all__ = ["app", "run_hub"]

app = typer.Typer(add_completion=False)

_STORE = typer.Option("--store", help="Keep entries in this directory; an ack is given after the data is on disk.")
_MEMORY = typer.Option("--memory", help="Keep entries in memory only, the newest ones as far as there is room.")
_HOST = typer.Option("--host", help="Address to listen on. [default: 127.0.0.1]")
_PORT = typer.Option("--port", help="TCP port for producers; 0 takes a free one. [default: 46801]")
_MANAGER_PORT = typer.Option("--manager-port", help="HTTP port of the Manager; 0 takes a free one. [default: 8083]")
_CONFIG = typer.Option("--config", help="TOML or JSON file with options of the hub.")
_SET = typer.Option("--set", help="Any other option as name=value; may be repeated (see CONFIGURATION.md).")
_URLS = typer.Option("--print-urls", help="Print the addresses as one line of JSON on stdout.")
_DEFAULT_PORTS = {"port": 46801, "manager_port": 8083}


@app.callback(invoke_without_command=True)
def run_hub(
    store: Annotated[Path | None, _STORE] = None,
    memory: Annotated[bool, _MEMORY] = False,
    host: Annotated[str | None, _HOST] = None,
    port: Annotated[int | None, _PORT] = None,
    manager_port: Annotated[int | None, _MANAGER_PORT] = None,
    config: Annotated[Path | None, _CONFIG] = None,
    settings: Annotated[list[str] | None, _SET] = None,
    print_urls: Annotated[bool, _URLS] = False,
) -> None:
    """Run a hub: it takes what producers send, and stores it.

    Say where to: --store DIR or --memory. It ends on SIGINT or SIGTERM, after everything accepted is stored and
    answered, with status 0; a second signal ends it at once. Where it listens is said on stderr.
    """
    from dataproxy.hub import Hub

    options: dict[str, Any] = {
        "host": host,
        "port": port,
        "manager_port": manager_port,
        **_parse_settings(settings or []),
    }
    if memory and store is not None:
        raise ConfigError("--store and --memory were both given", hint="choose one")
    settled = load_hub_config(None if memory else store, file=config, **options)
    if not memory and not settled.store:
        raise ConfigError("nothing says where to keep the data", hint="give --store DIR, or --memory")
    defaults = {name: n for name, n in _DEFAULT_PORTS.items() if settled.origin(name).startswith("default")}
    if defaults or memory:
        settled = load_hub_config("" if memory else store, file=config, **{**options, **defaults})
    _serve(Hub(config=settled), print_urls=print_urls)


def _serve(hub: Hub, *, print_urls: bool) -> None:
    """Say where the hub listens and wait for a signal."""
    ended = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        ended.set()

    with hub:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, end)
        where = hub.store_path or "memory"
        typer.echo(f"hub: producers {hub.target}, Manager {hub.manager_url}, store {where}", err=True)
        if print_urls:
            urls = {"target": hub.target, "manager_url": hub.manager_url, "store": hub.store_path}
            typer.echo(json.dumps(urls))
            sys.stdout.flush()
        ended.wait()


def _parse_settings(settings: list[str]) -> dict[str, str]:
    """Return the options given as name=value.  Raises ConfigError."""
    options = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise ConfigError(f"--set {setting!r} is not name=value", hint="write e.g. --set threads=2")
        options[name] = value
    return options
