"""The target of the examples: the one that was given, or a hub started in this process."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def target_or_hub(target: str | None, **options: Any) -> Iterator[str]:
    """Yield `target`; without one, that of an embedded hub with these options, whose counts are shown at the end."""
    if target is not None:
        yield target
        return
    from dataproxy.hub import Hub

    with Hub(**options) as hub:
        yield hub.target
        for (group, stream), count in sorted(hub.counts().items()):
            sys.stderr.write(f"hub has {count.records:,} records of {group}/{stream} in {count.entries:,} requests\n")
