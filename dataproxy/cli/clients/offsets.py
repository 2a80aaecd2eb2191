"""``dataproxy offsets``: where groups go on, and setting it, whatever their protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from dataproxy.cli.outcome import outcome
from dataproxy.cli.tubemq.change import DEFAULT_HUB, HUB, JSON, asked_reset, show_reset

__all__ = ["app"]

app = typer.Typer(
    name="offsets",
    help="Set where a group of consumers goes on, whatever its protocol.",
    no_args_is_help=True,
)


@app.callback()
def _offsets() -> None:
    """Keep ``reset`` a command of its own, also while it is the only one."""


@app.command()
def reset(
    group: Annotated[str, typer.Argument(help="Name of the group.")],
    to: Annotated[
        str,
        typer.Option("--to", metavar="PLACE", help="first, next, an offset of one partition, or @ and ms since 1970."),
    ],
    topic: Annotated[str, typer.Option("--topic", help="This topic alone, with all its partitions.")] = "",
    partition: Annotated[int | None, typer.Option("--partition", help="This partition of the topic alone.")] = None,
    protocol: Annotated[
        str, typer.Option("--protocol", metavar="NAME", help="rocketmq or tubemq, for a group with members of both.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    hub: HUB = DEFAULT_HUB,
    json: JSON = False,
) -> None:
    """Let a group go on at another place, also while it is reading; members are told.

    All is checked before anything changes. Offsets count messages: those of TubeMQ's clients are 28 times as large.
    Without --topic all partitions are meant in which the group has an offset. The hub's token is needed, also for
    --dry-run: it is found on this machine, or in DATAPROXY_HUB_TOKEN.
    """
    with outcome():
        fields = {"topic": topic, "partition": partition, "protocol": protocol, "execute": not dry_run}
        found = asked_reset(hub, "/hub/offsets", group, to, fields)
        title = f"group {group} of {found['protocol']}: {'nothing is changed' if dry_run else 'done'}"
        show_reset(title, found, as_json=json)
