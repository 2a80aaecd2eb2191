"""What must hold of a stream in the hub after kills: nothing lost, nothing invented, every copy known by its id."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dataproxy.hub import Record

__all__ = ["judge"]


def judge(records: Iterable[Record], source: set[bytes], *, filtered: bool) -> tuple[int, list[str]]:
    """Return the number of surplus rows and the violations; ``filtered`` when the hub drops known ids."""
    bodies: Counter[bytes] = Counter()
    ids: dict[bytes, set[str]] = {}
    owners: dict[str, set[bytes]] = {}
    for record in records:
        bodies[record.body] += 1
        ids.setdefault(record.body, set()).add(record.message_id)
        owners.setdefault(record.message_id, set()).add(record.body)
    surplus = bodies.total() - len(bodies)
    found = []
    if missing := source - bodies.keys():
        found.append(f"{len(missing)} rows are missing, such as {min(missing)!r}")
    if strange := bodies.keys() - source:
        found.append(f"{len(strange)} rows were never sent, such as {min(strange)!r}")
    if several := [body for body, names in ids.items() if len(names) > 1]:
        found.append(f"{len(several)} rows have copies with another id, such as {min(several)!r}")
    if shared := [name for name, rows in owners.items() if len(rows) > 1]:
        found.append(f"{len(shared)} ids belong to several rows, such as {min(shared)!r}")
    if filtered and surplus:
        found.append(f"{surplus} rows were stored twice in spite of the filter")
    return surplus, found
