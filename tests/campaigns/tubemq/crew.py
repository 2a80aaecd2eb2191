"""Members in processes of their own, what they print, and what must hold of all of it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

__all__ = ["Crew", "Process", "eventually"]

ROOT = Path(__file__).resolve().parents[3]
_CONFIRMED = "confirmed"


def eventually(condition: Callable[[], Any], seconds: float, what: str) -> float:
    """Wait until something holds, and return how long that took.  Raises TimeoutError that says ``what``."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        time.sleep(0.02)
    return time.monotonic() - began


class Process:
    """One member."""

    def __init__(self, target: str, group: str, topic: str) -> None:
        command = [sys.executable, "-m", "tests.campaigns.tubemq.member", target, group, topic]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self.held: set[str] = set()
        self.packs: dict[int, list[str]] = {}
        self.outcomes: dict[int, str] = {}
        self.over = False
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                said = json.loads(line)
            except ValueError:  # it was killed in the middle of a line
                break
            if "assigned" in said:
                self.held.add(said["assigned"])
            elif "revoked" in said:
                self.held.discard(said["revoked"])
            elif "pack" in said:
                self.packs[said["pack"]] = said["bodies"]
            elif "end" in said:
                self.outcomes[said["end"]] = said["outcome"]
        self.over = True

    def leave(self) -> None:
        """Let it give everything back, and wait for its end."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(60)
        self._finish()

    def kill(self) -> None:
        """End it without a word."""
        self._process.kill()
        self._process.wait(60)
        self._finish()

    def _finish(self) -> None:
        self._thread.join(60)
        self.held.clear()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Crew:
    """All members of a group, those that are gone as well."""

    def __init__(self, target: str, topic: str, group: str) -> None:
        self._where = (target, group, topic)
        self.here: list[Process] = []
        self.gone: list[Process] = []

    def join(self) -> Process:
        """Start a member."""
        one = Process(*self._where)
        self.here.append(one)
        return one

    def leave(self, one: Process) -> None:
        """End a member in order."""
        one.leave()
        self._went(one)

    def kill(self, one: Process) -> None:
        """Kill a member."""
        one.kill()
        self._went(one)

    def _went(self, one: Process) -> None:
        self.here.remove(one)
        self.gone.append(one)

    def shares(self) -> list[int]:
        """Return how many partitions each member holds."""
        return sorted(len(one.held) for one in self.here)

    def settled(self, partitions: int) -> bool:
        """Tell whether each partition has one owner, and no member has two more than another."""
        held = [key for one in self.here for key in list(one.held)]
        shares = self.shares()
        return len(held) == len(set(held)) == partitions and shares[-1] - shares[0] <= 1

    def counts(self) -> Counter[str]:
        """Return how often each body was seen."""
        seen: Counter[str] = Counter()
        for one in (*self.here, *self.gone):
            for bodies in list(one.packs.values()):
                seen.update(bodies)
        return seen

    def unconfirmed(self) -> set[str]:
        """Return the bodies of packs whose confirm failed, or of which nobody knows whether it counted."""
        found: set[str] = set()
        for one in (*self.here, *self.gone):
            for number, bodies in list(one.packs.items()):
                if one.outcomes.get(number) != _CONFIRMED:
                    found.update(bodies)
        return found

    def problems(self, sent: set[str]) -> list[str]:
        """Return what is wrong with what was seen, against what the broker has taken."""
        seen = self.counts()
        found = []
        if missing := sent - seen.keys():
            found.append(f"{len(missing)} messages are missing, such as {min(missing)}")
        again = {body for body, times in seen.items() if times > 1} - self.unconfirmed()
        if again:
            found.append(f"{len(again)} messages came again although they were confirmed, such as {min(again)}")
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for one in list(self.here):
            self.kill(one)
