"""Messages of a stream of server-sent events."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Message", "messages"]


class Message(NamedTuple):
    """One message: its kind, its data (lines, joined), and its id, "" without one."""

    kind: str
    data: str
    id: str


def messages(lines: Iterable[bytes]) -> Iterator[Message]:
    """Yield the messages in the lines of a stream; comments, and a message that is not complete, are left out.

    Lines end with a line feed, with a carriage return before it or without, as the standard of HTML has it.
    """
    fields: dict[str, str] = {}
    for raw in lines:
        line = raw.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")
        if not line:
            if "data" in fields:
                yield Message(fields.get("event", "message"), fields["data"], fields.get("id", ""))
            fields = {}
            continue
        name, _, value = line.partition(":")  # a comment has no name
        value = value.removeprefix(" ")
        fields[name] = f"{fields[name]}\n{value}" if name == "data" and "data" in fields else value
