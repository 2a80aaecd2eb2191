"""Messages all the while, members in processes of their own that write down what they see, and the laws of that."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple, Self

from tests.interop.tubemq.conftest import Servers
from tests.native import probe_tubemq as wire
from tests.support.rawclient import Connection, RpcError

__all__ = ["Load", "Seen", "Team"]

_WINDOW = 256  # messages without an answer
_UNKNOWN_TOKEN = -2
_MEMBER = """
import signal, sys, time
ended = []
signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
target, group, topic, path = sys.argv[1:]
with open(path, "w", buffering=1) as log:
    from dataproxy import ConfirmError, Consumer
    def note(kind, bodies):
        print(kind, time.monotonic(), bodies, file=log)
    with Consumer(target, group=group, topics=[topic], heartbeat_interval=1) as consumer:
        while not ended:
            pack = consumer.poll(1)
            if pack is None:
                continue
            bodies = b" ".join(pack.bodies()).decode()
            note("taken", bodies)
            try:
                pack.confirm()
                note("confirmed", bodies)
            except ConfirmError as error:
                note("refused", bodies)
"""


class Load(threading.Thread):
    """A producer that goes on whatever its broker does; ``sent`` has the messages that were acknowledged."""

    def __init__(self, servers: Servers, topic: str, partitions: int, pause_s: float = 0.0) -> None:
        super().__init__(daemon=True)
        self._port, self._topic, self._partitions, self._pause_s = servers.broker, topic, partitions, pause_s
        self.sent: set[bytes] = set()
        self._name = b"%d" % time.time_ns()  # of this load: groups begin with what is in the topic already
        self._next = 0
        self._again: deque[bytes] = deque()  # not acknowledged: a broker may have them all the same
        self._over = threading.Event()
        self.start()

    def run(self) -> None:
        """Send until ``stop``; messages without an answer are sent again under the same name."""
        while not self._over.is_set():
            try:
                with Connection(self._port) as connection:
                    self._send(connection)
            except (OSError, RpcError):
                time.sleep(0.2)

    def _send(self, connection: Connection) -> None:
        flying: deque[tuple[int, bytes]] = deque()
        try:
            while not self._over.is_set():
                body = self._again.popleft() if self._again else self._new()
                flying.append((self._post(connection, body), body))
                if len(flying) >= _WINDOW or self._pause_s:
                    self._take(connection, flying)
                    time.sleep(self._pause_s)
            while flying:
                self._take(connection, flying)
        finally:
            self._again += [body for _, body in flying]

    def _new(self) -> bytes:
        self._next += 1
        return b"%s.%d" % (self._name, self._next)

    def _post(self, connection: Connection, body: bytes) -> int:
        flag, payload = wire.payload(b"", body)
        return connection.post_data(
            "SendMessageRequestP2B", clientId=b"load", topicName=self._topic.encode(),
            partitionId=int(body.rpartition(b".")[2]) % self._partitions, data=payload, flag=flag, sentAddr=0x7F000001,
            checkSum=wire.checksum(payload), msgType=b"", msgTime=b"",
            authInfo={"visitAuthorizedToken": _UNKNOWN_TOKEN, "authAuthorizedToken": b""},
        )  # fmt: skip

    def _take(self, connection: Connection, flying: deque[tuple[int, bytes]]) -> None:
        serial, body = flying[0]
        answer = connection.answer_data(serial, "SendMessageRequestP2B")
        flying.popleft()
        if answer["errCode"] == 200:
            self.sent.add(body)
        else:
            self._again.append(body)
            time.sleep(0.05)

    def stop(self) -> None:
        """End, with an answer to everything that was sent."""
        self._over.set()
        self.join(60)
        assert not self.is_alive()


class Seen(NamedTuple):
    """What a member has noted at a time."""

    at: float
    kind: str  #: taken, confirmed or refused
    bodies: tuple[bytes, ...]


class Team:
    """The members of a group, each a process; what they note lies in files."""

    def __init__(self, servers: Servers, group: str, topic: str, folder: Path) -> None:
        self._words = [f"tubemq://127.0.0.1:{servers.master}", group, topic]
        self._folder = folder
        self._files: list[Path] = []
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self.processes:
            one.kill()
            one.wait()

    def join(self) -> subprocess.Popen[bytes]:
        """Start a member."""
        path = self._folder / f"member-{len(self._files)}"
        process = subprocess.Popen([sys.executable, "-c", _MEMBER, *self._words, str(path)])
        self._files.append(path)
        self.processes.append(process)
        while not path.exists():
            assert process.poll() is None
            time.sleep(0.01)
        return process

    def leave(self, process: subprocess.Popen[bytes]) -> None:
        """Let a member end in order."""
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0

    def seen(self) -> list[Seen]:
        """Return what all members have noted, in the order of time."""
        found = []
        for path in self._files:
            whole, _, _ = path.read_text().rpartition("\n")  # one that was killed may have written half a line
            for line in whole.splitlines():
                kind, at, *bodies = line.split()
                found.append(Seen(float(at), kind, tuple(body.encode() for body in bodies)))
        return sorted(found)

    def wait_for(self, wanted: Any, seconds: float) -> None:
        """Wait until members have taken all these messages; fail with how many lack."""
        deadline = time.monotonic() + seconds
        while missing := set(wanted) - {body for one in self.seen() if one.kind == "taken" for body in one.bodies}:
            assert time.monotonic() < deadline, f"{len(missing)} of {len(wanted)} messages are missing"
            time.sleep(1)

    def check_again(self, but: Any = lambda at: False) -> int:
        """Check that nothing was taken after it was confirmed, unless ``but`` says so of the time of its confirm.

        Returns how many messages were taken twice, or more often, because nobody had confirmed them.
        """
        confirmed: dict[bytes, float] = {}
        counted: set[bytes] = set()
        again = 0
        for one in self.seen():
            for body in one.bodies:
                if one.kind == "confirmed":
                    confirmed[body] = one.at
                elif one.kind == "taken":
                    if body in confirmed:
                        assert but(confirmed[body]), f"{body!r} was confirmed, and came again"
                    again += body in counted
                    counted.add(body)
        return again
