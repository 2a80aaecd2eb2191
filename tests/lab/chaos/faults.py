"""The faults of a chaos run: each picked and timed by the seed, each over after a moment."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable

from tests.lab.chaos.manager import Manager
from tests.lab.chaos.processes import HubProcess, SenderProcess

__all__ = ["Faults"]


class Faults:
    """Do damage to hubs, senders and Manager, never to more than all but one hub for long."""

    def __init__(self, seed: int, hubs: list[HubProcess], senders: list[SenderProcess], manager: Manager) -> None:
        self.rng = random.Random(seed)
        self.hubs = hubs
        self.senders = senders
        self.manager = manager
        self.done: Counter[str] = Counter()
        self.wait = threading.Event().wait
        self.kinds: dict[Callable[[], None], int] = {
            self.kill: 4, self.freeze: 12, self.long_freeze: 2, self.stop_sender: 6, self.manager_mood: 8,
            self.shorter_list: 6, self.two_frozen: 3,
        }  # fmt: skip

    def one(self) -> None:
        """Do one fault and see that it is over."""
        (fault,) = self.rng.choices(list(self.kinds), list(self.kinds.values()))
        self.done[fault.__name__] += 1
        fault()
        self.wait(self.rng.choice((0.0, 0.01, 0.05)))

    def kill(self) -> None:
        """Kill -9 of a hub and its restart on the same directory and port."""
        hub = self.rng.choice(self.hubs)
        hub.kill()
        self.wait(self.rng.choice((0.0, 0.1, 0.3)))
        hub.start()

    def freeze(self) -> None:
        """Stop a hub for a moment: what it has received is stored late."""
        hub = self.rng.choice(self.hubs)
        hub.freeze()
        self.wait(self.rng.choice((0.01, 0.05, 0.15)))
        hub.thaw()

    def long_freeze(self) -> None:
        """Stop a hub for longer than the ack timeout: its frames go elsewhere, and it stores them, too."""
        hub = self.rng.choice(self.hubs)
        hub.freeze()
        self.wait(1.5)
        hub.thaw()

    def two_frozen(self) -> None:
        """Stop two hubs at once."""
        pair = self.rng.sample(self.hubs, 2)
        for hub in pair:
            hub.freeze()
        self.wait(self.rng.choice((0.05, 0.2)))
        for hub in pair:
            hub.thaw()

    def stop_sender(self) -> None:
        """Stop a sender: time passes for it all at once."""
        self.rng.choice(self.senders).freeze(self.rng.choice((0.02, 0.1, 0.3)))

    def manager_mood(self) -> None:
        """Let the Manager be down, slow or talk nonsense for a while."""
        self.manager.mood = self.rng.choice(("down", "slow", "garbage"))
        self.wait(self.rng.choice((0.05, 0.2)))
        self.manager.mood = "good"

    def shorter_list(self) -> None:
        """Take a proxy off the Manager's list, and put it back."""
        ports = list(self.manager.ports)
        self.manager.ports = self.rng.sample(ports, self.rng.randint(1, len(ports)))
        self.wait(self.rng.choice((0.05, 0.1, 1.1)))
        self.manager.ports = ports
