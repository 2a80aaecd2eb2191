"""What the hubs of a run have, read from their directories."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from dataproxy.hub import open_store
from tests.campaigns.histories.bodies import read_body
from tests.campaigns.histories.history import History, Stored

__all__ = ["read_stores"]


def read_stores(folders: list[Path], history: History) -> None:
    """Add every stored message to a history, and count the frames that are stored more than once.

    Bodies have no line feeds: in a record with some, they are joined.
    """
    frames: Counter[str] = Counter()
    for folder in folders:
        with open_store(folder) as store:
            for record in store.records("g"):
                if record.index == 0 and "sid" in record.attrs:
                    frames[record.attrs["sid"]] += 1
                lines = record.body.split(b"\n")
                for place, line in enumerate(lines, record.index):
                    said = read_body(line)
                    if said is None:
                        history.foreign += 1
                        continue
                    own = record.message_id if len(lines) == 1 else f"{record.attrs.get('sid', '')}.{place}"
                    history.stored.append(
                        Stored(
                            said.producer, said.sequence, said.key, said.digest, said.intact,
                            f"{folder.name}/{record.topic}/{record.partition}", (record.offset, place),
                            record.receive_ms / 1e3, own if "sid" in record.attrs else "", record.stream_id,
                        )
                    )  # fmt: skip
    history.extra_frames += sum(n - 1 for n in frames.values())
