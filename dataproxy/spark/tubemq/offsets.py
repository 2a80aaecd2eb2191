"""Offsets of partitions: what the options say, and how much of them a micro-batch may have.  No Spark, no calls."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dataproxy.consumer.ranges.reader import INDEX_BYTES
from dataproxy.errors import ConfigError
from dataproxy.problems import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["EARLIEST", "LATEST", "STORED", "Bound", "known_bound", "limited", "read_bound", "split_range"]

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
STORED: Final = "stored"
_WORDS: Final = (EARLIEST, LATEST, STORED)
_MOST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of all ranges: a word, and offsets or words of single partitions by their keys."""

    option: str
    word: str
    by_partition: tuple[tuple[str, int | str], ...] = ()

    @property
    def needs_stored(self) -> bool:
        """Tell whether the group's stored offsets have to be known."""
        return STORED in (self.word, *(value for _, value in self.by_partition))


def read_bound(option: str, text: str, default: str, topics: Sequence[str]) -> Bound:
    """Read ``startingOffsets`` or ``endingOffsets``.  Raises ConfigError."""
    text = text.strip()
    if not text:
        return Bound(option, default)
    words = [word for word in _WORDS if word != EARLIEST or option == "startingOffsets"]
    if text.lower() in words:
        return Bound(option, text.lower())

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise ConfigError(f"option {option} names {twice!r} twice", hint="keep one of the offsets")
        return found

    example = f'{{"1:{topics[0]}:0": 280}}'
    try:
        value = json.loads(text, object_pairs_hook=once)
    except ConfigError:  # it is a ValueError
        raise
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not value:
        raise ConfigError(
            f"option {option}={shown(text)} is not allowed",
            hint=f"give {', '.join(words)}, or JSON by partition such as {example}",
        )
    for key, offset in value.items():
        if isinstance(offset, str) and offset.lower() in words:
            value[key] = offset.lower()
        elif type(offset) is not int or not 0 <= offset <= _MOST:
            raise ConfigError(
                f"option {option} has {shown(offset)} for partition {key!r}",
                hint=f"give an offset from 0 on, or {', '.join(words)}",
            )
        elif offset % INDEX_BYTES:
            raise ConfigError(
                f"option {option} has {offset} for partition {key!r}, and no message begins there",
                hint=f"offsets are multiples of {INDEX_BYTES}: one before it is {offset - offset % INDEX_BYTES}",
            )
    return Bound(option, default, tuple(sorted(value.items())))


def known_bound(bound: Bound, keys: Iterable[str], offsets: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Return one end of each partition's range; ``offsets`` has what words mean, by partition.

    Raises ConfigError for partitions that are not there.
    """
    named = dict(bound.by_partition)
    known = sorted(keys)
    unknown = sorted(named.keys() - set(known))
    if unknown:
        raise ConfigError(
            f"option {bound.option} names the partitions {', '.join(unknown)}, and the topics have {', '.join(known)}",
            hint="name partitions that are there as broker:topic:partition, or leave the others out",
        )
    found = {}
    for key in known:
        value = named.get(key, bound.word)
        found[key] = offsets[value][key] if isinstance(value, str) else value
    return found


def limited(begins: Mapping[str, int], ends: Mapping[str, int], most: int) -> dict[str, int]:
    """Return ends that leave at most so many offsets to read, each partition's part by what it has.

    At least one offset is left where there is any.
    """
    waiting = {key: max(ends[key] - begins[key], 0) // INDEX_BYTES for key in ends}
    total = sum(waiting.values())
    if total <= most:
        return dict(ends)
    parts = {key: n * most // total for key, n in waiting.items()}
    spare = most - sum(parts.values())
    for key in sorted(waiting, key=lambda key: (-(waiting[key] * most % total), key))[:spare]:
        parts[key] += 1
    return {key: begins[key] + parts[key] * INDEX_BYTES if waiting[key] else ends[key] for key in ends}


def split_range(begin: int, end: int, parts: int) -> list[tuple[int, int]]:
    """Return a range in so many parts of about the same number of offsets, none of them empty."""
    count = (end - begin) // INDEX_BYTES
    cuts = [begin + count * part // parts * INDEX_BYTES for part in range(parts)] + [end]
    return [(one, other) for one, other in itertools.pairwise(cuts) if one < other]
