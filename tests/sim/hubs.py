"""Simulated proxies: each a real server loop with its committer and store, without threads and sockets."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from dataproxy._core.server.core import HubCore
from dataproxy._core.server.store.core import StoreCore
from tests.campaigns.histories.bodies import read_body
from tests.campaigns.histories.history import Stored
from tests.native.probe_net import Net
from tests.native.probe_sim import Node
from tests.support.reference.containers import decode

__all__ = ["BROKEN", "DISK_FULL", "Hub"]

DISK_FULL, BROKEN = -8, -7  # statuses of base/status
#: Longer than any run, shorter than a step of the wall clock: nothing is ever old enough to be dropped.
RETENTION_MS = 3_600_000


def _lines(records: list[tuple[bytes, dict[str, str]]]) -> list[tuple[bytes, dict[str, str]]]:
    """Split the records of message type 3, which joins bodies by LF."""
    return [(line, attrs) for body, attrs in records for line in body.split(b"\n")]


class Hub:
    """One proxy.  The world calls ``wake`` whenever it may have something to do."""

    def __init__(self, index: int, options: dict[str, Any], rng: random.Random, *, reports: bool = False) -> None:
        self.index = index
        self.rng = rng
        queue = options["queue_bytes"]
        self.store = StoreCore(
            None,
            queue_bytes=queue,
            commit_bytes=options["commit_bytes"],
            dedupe_ids=options["dedupe_ids"],
            retention_ms=RETENTION_MS,
        )
        self.core = HubCore(
            self.store, host="127.0.0.1", port=0, threads=1, max_frame=524288, max_connections=1000,
            read_idle=options["read_idle"], reply_bytes=options["reply_bytes"], queue_bytes=queue, compat=False,
            compress_entries=options["compress_entries"], node_ip="127.0.0.1", partitions=options["partitions"],
            topics=[],
        )  # fmt: skip
        self.port = self.core.open()
        self.node = Node(self.core, reports=reports)
        self.down = False
        self.gone = False  # with its host: nobody answers, not even with a refusal
        self.frozen_until = 0
        self.port_state = "good"  # good, refuse, silent
        self.pending: list[int] = []  # connections that nobody has accepted yet
        self.commit_wait = 0
        self.faulty_commits: list[int] = []
        self.committing = False
        self.timer = -1
        self.marks: dict[tuple[str, int, int], int] = {}  # (topic, partition, offset) -> number of the commit
        self.seen: dict[tuple[str, int], int] = {}

    def accept(self, net: Net, now: int) -> None:
        """Take the connections that wait."""
        for index in self.pending:
            if not net.closed(index, 0):
                self.node.accept(net, index, now)
        self.pending.clear()

    def commit(self) -> None:
        """Make one commit, or let it fail."""
        fault = self.faulty_commits.pop(0) if self.faulty_commits else 0
        self.node.commit(fault)

    def mark(self, number: int) -> None:
        """Note which entries are new, as commit ``number``: it orders the copies of different hubs."""
        for topic, partition, first, following, *_ in self.store.logs():
            for offset in range(self.seen.get((topic, partition), first), following):
                self.marks[topic, partition, offset] = number
            self.seen[topic, partition] = following

    def crash(self) -> None:
        """Die as by kill -9; the store is what it was."""
        self.node.crash()
        self.pending.clear()
        self.down = True
        self.committing = False

    def calm(self) -> None:
        """End every fault."""
        self.core.set_service(0)
        self.core.set_load(None)
        self.gone = False
        self.port_state = "good"
        self.commit_wait = 0
        self.faulty_commits.clear()
        self.frozen_until = 0

    def stored(self) -> Iterator[Stored | None]:
        """Yield every stored message, None for a body that is none of ours."""
        for topic, partition, first, *_ in self.store.logs():
            log = f"p{self.index}/{topic}/{partition}"
            for offset, header, container in self.store.read(topic, partition, first, 1 << 20, 1 << 30):
                for place, (body, attrs) in enumerate(_lines(decode(container))):
                    said = read_body(body)
                    if said is None:
                        yield None
                        continue
                    sid = attrs.get("sid")
                    yield Stored(
                        said.producer, said.sequence, said.key, said.digest, said.intact, log, (offset, place),
                        self.marks[topic, partition, offset],
                        attrs.get("msgid") or (f"{sid}.{place}" if sid else ""), header[3],
                    )  # fmt: skip

    def close(self) -> None:
        """Let go of everything."""
        self.core.close_listener()
        self.store.close()
