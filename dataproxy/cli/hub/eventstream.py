"""Messages of a stream of server-sent events, of a bounded size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from dataproxy.errors import HubError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["MESSAGE_MOST_BYTES", "Message", "lines", "messages"]

MESSAGE_MOST_BYTES: Final = 1 << 20  #: of a line, and of all lines of a message: far more than a hub's events have


class Message(NamedTuple):
    """One message: its kind, its data (lines, joined), and its id, "" without one."""

    kind: str
    data: str
    id: str


def lines(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a stream that comes in parts, without their ends.

    What stands behind the last end of a line is left out.  Raises HubError for a line that is too long.
    """
    rest = bytearray()
    for part in parts:
        *ended, begun = part.split(b"\n")
        for end in ended:
            rest += end
            _check_size(len(rest))
            yield bytes(rest)
            rest.clear()
        rest += begun
        _check_size(len(rest))


def _check_size(size: int) -> None:
    if size > MESSAGE_MOST_BYTES:
        raise HubError(
            f"the hub sent a line or a message of more than {MESSAGE_MOST_BYTES:,} bytes in a stream of events",
            hint="check that --hub is the Manager port of a dataproxy hub",
        )


def messages(lines: Iterable[bytes]) -> Iterator[Message]:
    """Yield the messages in the lines of a stream; comments, and a message that is not complete, are left out.

    Lines end with a line feed, with a carriage return before it or without, as the standard of HTML has it.
    Raises HubError for a message that is too long.
    """
    fields: dict[str, str] = {}
    size = 0
    for raw in lines:
        line = raw.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")
        if not line:
            if "data" in fields:
                yield Message(fields.get("event", "message"), fields["data"], fields.get("id", ""))
            fields, size = {}, 0
            continue
        name, _, value = line.partition(":")
        if not name:
            continue  # a comment
        size += len(raw)
        _check_size(size)
        value = value.removeprefix(" ")
        fields[name] = f"{fields[name]}\n{value}" if name == "data" and "data" in fields else value
