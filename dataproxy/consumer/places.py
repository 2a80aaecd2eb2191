"""Places in a partition that an application names, and what is wrong with them."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from dataproxy.consumer.group.asking import EARLIEST, LATEST
from dataproxy.errors import ConfigError, DataProxyError, LocalProtocolError, SeekError
from dataproxy.problems import shown

if TYPE_CHECKING:
    from dataproxy.consumer.group.asking import Reply

__all__ = ["INDEX_BYTES", "Choice", "no_choice", "offset_problem", "place_of", "seek_error", "starts_of"]

#: Partitions that an application chooses, by their keys, and where each begins.
Choice = Collection[str] | Mapping[str, int | Literal["earliest", "latest"] | None]

INDEX_BYTES: Final = 28  # of a store's index for each of its messages

_WORDS: Final = {"earliest": EARLIEST, "latest": LATEST}
_LARGEST: Final = 2**63 - 1
_CHOICES: Final = "give a list of keys of available(), or a mapping of them to offsets, 'earliest', 'latest' or None"


def offset_problem(offset: Any, unit: int = INDEX_BYTES) -> str:
    """Return what is wrong with an offset, "" if nothing is; one of NumPy is as good as one of Python."""
    try:
        number = operator.index(offset)
    except TypeError:
        return "is not a whole number"
    if isinstance(offset, bool):
        return "is not a whole number"
    if not 0 <= number <= _LARGEST:
        return "is below 0" if number < 0 else f"is above {_LARGEST}"
    if number % unit:
        return f"is not a multiple of {unit}, the bytes of a store's index for each message"
    return ""


def place_of(offset: Any, unit: int = INDEX_BYTES) -> int:
    """Return an offset, EARLIEST or LATEST.  ``unit``: of offsets, for one message.  Raises ConfigError."""
    if isinstance(offset, str) and offset in _WORDS:
        return _WORDS[offset]
    problem = offset_problem(offset, unit)
    if problem:
        raise ConfigError(
            f"offset {shown(offset)} {problem}",
            code="OFFSET",
            hint="give 'earliest', 'latest', or an offset as pack.offset and position() have them",
        )
    return operator.index(offset)


def starts_of(partitions: Any) -> dict[str, int | None]:
    """Return the places that chosen partitions begin at; None: where the group is.  Raises ConfigError."""
    pairs: list[tuple[Any, Any]]
    if isinstance(partitions, Mapping):
        pairs = list(partitions.items())
    elif isinstance(partitions, (list, tuple, set, frozenset)):
        pairs = [(key, None) for key in partitions]
    else:
        raise ConfigError(f"{shown(partitions)} are no partitions", hint=_CHOICES)
    for key, _ in pairs:
        if not isinstance(key, str):
            raise ConfigError(f"{shown(key)} is not the key of a partition", hint=_CHOICES)
    return {key: None if start is None else place_of(start) for key, start in pairs}


def no_choice() -> LocalProtocolError:
    """Return the error for a call that chooses queues of RocketMQ."""
    return LocalProtocolError(
        "available() and assign() have no meaning with rocketmq://: the members of a group divide its queues",
        hint="leave them out; dataproxy.rocketmq.PullConsumer reads queues that a program chooses",
    )


def seek_error(partition: str, offset: Any, reply: Reply) -> DataProxyError:
    """Return the error for a seek that has not led to the place."""
    where = f"partition {partition} is not read from {offset!r}"
    if reply.problem == "beyond":
        return SeekError(
            f"{where}: its store ends at {reply.end}; reading goes on at {reply.offset}",
            code="SEEK_BEYOND",
            details={"partition": partition, "offset": reply.offset, "end": reply.end},
        )
    if reply.problem == "later":
        return SeekError(f"{where}: another seek of it came in between", details={"partition": partition})
    return SeekError(
        f"{where}: it was taken away before that was done", code="SEEK_REVOKED", details={"partition": partition}
    )
