"""The commands of the command line by name, each imported when it is called: the start of one does not pay for all."""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperGroup

__all__ = ["COMMANDS", "MARKUP", "Commands"]

#: The format of texts of help.
MARKUP: Final = "markdown"
#: Name -> module and name of a function, or of a group of commands; in the order of the help.
COMMANDS: Final = {
    "hub": "dataproxy.cli.hub.command:run_hub",
    "send": "dataproxy.cli.send.command:send",
    "doctor": "dataproxy.cli.doctor.command:doctor",
    "tail": "dataproxy.cli.hub.tail:tail",
    "stats": "dataproxy.cli.hub.stats:stats",
    "clients": "dataproxy.cli.clients.view:clients",
    "groups": "dataproxy.cli.clients.view:groups",
    "locks": "dataproxy.cli.clients.view:locks",
    "transactions": "dataproxy.cli.clients.view:transactions",
    "events": "dataproxy.cli.clients.events:events",
    "consume": "dataproxy.cli.tubemq.consume:consume",
    "topics": "dataproxy.cli.tubemq.topics:topics",
    "explain": "dataproxy.cli.explain:explain_code",
    "frames": "dataproxy.cli.frames:show_frames",
    "config": "dataproxy.cli.config:app",
    "store": "dataproxy.cli.hub.store:app",
    "offsets": "dataproxy.cli.clients.offsets:app",
    "tubemq": "dataproxy.cli.tubemq.administer:app",
    "perf": "dataproxy.cli.perf.sets:app",
}


class Commands(TyperGroup):
    """The group of all commands: those of `COMMANDS`, and those that the application has itself."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Loaded({**COMMANDS, **self.commands})


class _Loaded(UserDict[str, Any]):
    """Commands by name; the place of one is replaced by the command when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        found = self.data[name]
        if isinstance(found, str):
            found = self.data[name] = _command(name, found)
        return found


def _command(name: str, place: str) -> Any:
    """Return a command, imported from its place."""
    module, _, attribute = place.partition(":")
    found = getattr(import_module(module), attribute)
    holder = typer.Typer(rich_markup_mode=MARKUP, pretty_exceptions_enable=False)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    return typer.main.get_group(holder).commands[name]
