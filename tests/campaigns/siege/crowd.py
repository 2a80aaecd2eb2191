"""All hostile clients at once: ``python -m tests.campaigns.siege.crowd PORT MANAGER_PORT SEED [NAME ...]``.

They stay until standard input ends; with names only the kinds that have them come.

It prints a line when every one of them has done what it can without the hub's help, and its counters at the end.  It
yields the processor to the others: what is to be judged is what the hub spends on it, and real ones have machines
of their own.
"""

from __future__ import annotations

import json
import os
import random
import socket
import sys
import threading
import time
from collections import Counter

from tests.campaigns.hostile import BESIEGERS, Siege
from tests.campaigns.httppeers.requests import CLOSED, HOSTILE, NEVER_READ, Hostile, run

__all__ = ["KINDS", "READERS_THAT_DO_NOT", "main"]

#: How many clients ask for pages and read none: as many as the Manager server has places for pages.
READERS_THAT_DO_NOT = 32
KINDS = len(BESIEGERS) + len(HOSTILE) + 1
_NICE = 5
_SETTLED = 20.0
_REST = 0.2  # before an HTTP client that was turned away comes again


class HttpCrowd:
    """Every kind of hostile HTTP client, each on a thread of its own that begins anew when it was turned away."""

    def __init__(self, address: tuple[str, int], rng: random.Random, only: list[str]) -> None:
        self._address = address
        self.tries: Counter[str] = Counter()
        self.unfair: Counter[str] = Counter()
        kinds = [(name, hostile) for name, hostile in HOSTILE.items() if not only or name in only]
        rng.shuffle(kinds)
        for kind in kinds:
            threading.Thread(target=self._play, args=kind, daemon=True).start()
        for _ in range(READERS_THAT_DO_NOT if not only or "never read" in only else 0):
            threading.Thread(target=self._never_read, args=(_source(rng),), daemon=True).start()

    def _play(self, name: str, hostile: Hostile) -> None:
        while True:
            try:
                status = run(hostile, self._address)
                self.tries[name] += 1
                # All places are at work, or it had to make room: fair ends for anybody in a crowd.
                self.unfair[name] += status not in hostile.fair and status not in (CLOSED, 503)
            except OSError:  # nobody listens for a moment, or it takes its time
                self.tries["not answered"] += 1
            time.sleep(_REST)

    def _never_read(self, source: str) -> None:
        while True:
            try:
                with socket.socket() as peer:
                    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    peer.bind((source, 0))
                    peer.connect(self._address)
                    peer.sendall(NEVER_READ.replace(b"group=g", b"group=honest"))
                    self.tries["never read"] += 1
                    while peer.recv(1, socket.MSG_PEEK):  # one byte is there, and stays
                        time.sleep(0.2)
                        peer.send(b"")
                        if _is_closed(peer):
                            break
            except OSError:
                pass
            time.sleep(_REST)


def _is_closed(peer: socket.socket) -> bool:
    return peer.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0


def _source(rng: random.Random) -> str:
    """Return an address to come from: now and then that of the honest ones."""
    return f"127.0.0.{rng.randint(1, 4)}"


def main() -> None:
    """Besiege until standard input ends."""
    port, manager_port, seed = map(int, sys.argv[1:4])
    only = sys.argv[4:]
    os.nice(_NICE)
    rng = random.Random(seed)
    kinds = [kind for kind in BESIEGERS.values() if not only or kind.name in only]
    rng.shuffle(kinds)
    sieges = [Siege(("127.0.0.1", port), kind, source=_source(rng)) for kind in kinds]
    crowd = HttpCrowd(("127.0.0.1", manager_port), rng, only)
    deadline = time.monotonic() + _SETTLED
    for siege in sieges:
        siege.established.wait(max(0.0, deadline - time.monotonic()))
    print("besieged", flush=True)
    sys.stdin.read()
    besiegers = {
        one.kind.name: [one.opened, one.turned_away, one.sent, one.received, one.established.is_set()] for one in sieges
    }
    print(json.dumps({"besiegers": besiegers, "http": dict(crowd.tries), "unfair": +crowd.unfair}), flush=True)
    os._exit(0)  # all go at once, in the middle of what they do


if __name__ == "__main__":
    main()
