"""Read the flights out of the hub's topic with a group of two members, and kill one of them in the middle.

As a program it is one member, which `flights_demo.py` starts.  A member appends each row that it reads to a file of
its own, tells so, and confirms the pack when it is told to go on.  So the kill comes at the worst moment: the rows are
written, and nobody has confirmed them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from flights_stream import PATIENCE, ProcessError

from dataproxy import ConfirmError, Consumer, inlong_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataproxy import Pack

GROUP: Final = "readers"
PARTITIONS: Final = 4
#: The servers miss a silent member after half a minute, whatever its heartbeats are; the other one hears of it sooner.
HEARTBEATS: Final = "1s"


class Member:
    """A process of the group as the demo sees it; what it says goes to a queue as words, None at its end."""

    def __init__(self, number: int, target: str, topic: str, folder: Path, said: queue.Queue[Said]) -> None:
        self.number, self.held, self.rows = number, 0, 0
        self.unconfirmed: dict[int, int] = {}  # rows by pack, those without an answer to their confirm
        self.done = False
        self.log = folder / f"member-{number}.log"
        words = [sys.executable, str(Path(__file__)), target, topic, str(rows_of(folder, number)), str(number)]
        with self.log.open("wb") as errors:
            self._process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
            )
        threading.Thread(target=self._listen, args=(said,), name=f"member-{number}", daemon=True).start()

    def go_on(self) -> None:
        """Let the member read, or confirm what it has read.  One that has ended is told nothing."""
        pipe = self._process.stdin
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.write(b"go\n")
                pipe.flush()

    def kill(self) -> None:
        """End the process with SIGKILL, wherever it is."""
        self._process.kill()
        self._process.wait()

    def why(self) -> str:
        """Return what is known of an end that nobody wanted."""
        lines = self.log.read_text(errors="replace").splitlines()
        return f"member {self.number} ended with status {self._process.wait()}: {lines[-1] if lines else 'no words'}"

    def _listen(self, said: queue.Queue[Said]) -> None:
        if self._process.stdout is not None:
            for line in self._process.stdout:
                said.put((self, line.decode().split()))
        said.put((self, None))


Said = tuple[Member, "list[str] | None"]


class GroupOfTwo:
    """Two members that read a topic to its end, of which one is killed when the group has so many rows.

    `run` may be called once, on any thread; `stop` on any other.  `show` is called with the rows that were read and
    with what has become of the group.
    """

    def __init__(self, target: str, topic: str, folder: Path, kill_at: int, show: Callable[[int, str], object]) -> None:
        self.killed: Member | None = None
        self.takeover_s = 0.0
        self.rows_at_kill = 0
        self._kill_at = kill_at
        self._rows, self._show = 0, show
        self._end = self._killed_at = 0.0
        self._said: queue.Queue[Said] = queue.Queue()
        folder.mkdir()
        self.members = [Member(number, target, topic, folder, self._said) for number in range(2)]

    def lost_confirms(self) -> dict[str, int]:
        """Return the packs that were read without an answer to their confirm, as `MEMBER-PACK`, and their rows."""
        return {f"{member.number}-{pack}": rows for member in self.members for pack, rows in member.unconfirmed.items()}

    def run(self) -> None:
        """Read until the member that is left has everything.

        Raises ProcessError when a member ends that was not killed, or time is over.
        """
        self._end = time.monotonic() + PATIENCE
        try:
            while not all(member.held == PARTITIONS // 2 for member in self.members):
                self._hear()
            for member in self.members:
                member.go_on()
            while not any(member.done for member in self.members):
                self._hear()
        finally:
            self.stop()

    def stop(self) -> None:
        """Kill what still runs of the members."""
        for member in self.members:
            member.kill()

    def _hear(self) -> None:
        try:
            member, words = self._said.get(timeout=max(self._end - time.monotonic(), 0))
        except queue.Empty:
            raise ProcessError(f"the group has read {self._rows:,} rows, and stands still") from None
        if words is None:
            if member is not self.killed and not member.done:
                raise ProcessError(member.why())
            return
        what, *numbers = words
        getattr(self, f"_{what}")(member, *map(int, numbers))

    def _holds(self, member: Member, partitions: int) -> None:
        member.held = partitions
        if self.killed not in {None, member} and partitions == PARTITIONS and not self.takeover_s:
            self.takeover_s = time.monotonic() - self._killed_at
            self._show(self._rows, "the other one has its partitions")

    def _read(self, member: Member, pack: int, rows: int) -> None:
        self._rows += rows
        member.rows += rows
        member.unconfirmed[pack] = rows
        if self.killed is None and self._rows >= self._kill_at:
            member.kill()
            self.killed, self._killed_at, self.rows_at_kill = member, time.monotonic(), self._rows
            self._show(self._rows, "the servers are to miss it")
        else:
            self._show(self._rows, "")
            member.go_on()

    def _confirmed(self, member: Member, pack: int) -> None:
        del member.unconfirmed[pack]

    def _done(self, member: Member) -> None:
        member.done = True


def rows_of(folder: Path, number: int) -> Path:
    """Return the file with the rows that a member has read."""
    return folder / f"member-{number}.rows"


class Reader:
    """The member's part: read packs, append their rows to a file, confirm them."""

    def __init__(self, number: int, path: Path) -> None:
        self._number, self._path = number, path
        self._held: set[str] = set()
        self._lock = threading.Lock()  # callbacks have a thread of their own
        self._told = threading.Semaphore(0)
        threading.Thread(target=self._listen, name="told", daemon=True).start()

    def run(self, target: str, topic: str) -> None:
        """Read until every partition of the topic is held here, and read to its end."""
        options: dict[str, Any] = {"group": GROUP, "topics": [topic], "heartbeat_interval": HEARTBEATS}
        with (
            self._path.open("wb") as self._file,
            Consumer(target, on_assigned=self._assigned, on_revoked=self._revoked, **options) as consumer,
        ):
            self._told.acquire()
            for number in range(sys.maxsize):
                pack = consumer.poll(timeout=0.5)
                while pack is None:
                    lags = consumer.lag().values()
                    if len(lags) == PARTITIONS and all(lag.messages == 0 for lag in lags):
                        return
                    pack = consumer.poll(timeout=0.5)
                self._write(number, pack)
                self._told.acquire()
                try:
                    consumer.confirm(pack)
                except ConfirmError as error:
                    sys.stderr.write(f"pack {number} may come again: {error}\n")
                else:
                    self._say("confirmed", number)

    def _write(self, number: int, pack: Pack) -> None:
        rows = 0
        for record in inlong_records(pack):
            self._file.write(b"%d-%d\t%s\t%s\n" % (self._number, number, record.stream_id.encode(), record.body))
            rows += 1
        self._file.flush()  # what the system has outlives the process
        self._say("read", number, rows)

    def _assigned(self, partition: str) -> None:
        self._held.add(partition)
        self._say("holds", len(self._held))

    def _revoked(self, partition: str, lost: bool) -> None:
        self._held.discard(partition)
        self._say("holds", len(self._held))

    def _say(self, what: str, *numbers: int) -> None:
        with self._lock:
            sys.stdout.write(" ".join((what, *map(str, numbers))) + "\n")
            sys.stdout.flush()

    def _listen(self) -> None:
        for _ in sys.stdin:
            self._told.release()
        os._exit(1)  # who has started this process is gone, also if that was killed


def main() -> int:
    """Run one member of the group."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", help="masters as tubemq://host:port")
    parser.add_argument("topic")
    parser.add_argument("rows", type=Path, help="file that gets the rows")
    parser.add_argument("number", type=int, help="number of this member, for the rows of its file")
    chosen = parser.parse_args()
    Reader(chosen.number, chosen.rows).run(chosen.target, chosen.topic)
    sys.stdout.write("done\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
