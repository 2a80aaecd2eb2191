"""The faults of a chaos run: each picked and timed by the seed, each over after a moment."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence

from dataproxy.testing import FaultProxy
from tests.campaigns.chaos.manager import Manager
from tests.campaigns.chaos.processes import HubProcess, SenderProcess
from tests.campaigns.chaos.rockets import Rockets
from tests.campaigns.readers.members import Group

__all__ = ["Faults"]


_SHORT, _LONG = (0.05, 0.1, 0.3), (0.1, 0.5, 1.5)
_FEW = (1, 2, 5)
#: Kinds of hub faults with their fields (tuples: one of these) and how long the hub has them.  A corrupted answer
#: breaks the framing: one that names another frame could not be told from a true one by anybody.
_WRONGS: list[tuple[str, dict[str, object], tuple[float, ...]]] = [
    ("refuse", {"code": (1, 3, 114, 116), "share": (0.1, 1.0)}, _SHORT),
    ("stopped", {}, _SHORT),
    ("not_ready", {}, _SHORT),
    ("queue_full", {"times": (1, 20)}, _SHORT),
    ("disk_full", {"times": (1, 20)}, _SHORT),
    ("store_error", {"times": (1, 20)}, _SHORT),
    ("drained", {}, _SHORT),
    ("drop_reply", {"times": _FEW}, _SHORT),
    ("delay", {"seconds": (0.02, 0.3, 1.2), "share": (0.2, 1.0)}, _SHORT),
    ("duplicate", {"copies": (2, 5), "share": (0.2, 1.0)}, _SHORT),
    ("foreign_id", {"times": _FEW}, _SHORT),
    ("reverse", {"batch": (2, 5)}, _SHORT),
    ("slice", {"share": (0.2, 1.0)}, _SHORT),
    ("garbage", {"times": _FEW}, _SHORT),
    ("corrupt", {"times": _FEW}, _SHORT),
    ("reset", {"stage": ("before_store", "after_store", "after_reply"), "times": _FEW}, _SHORT),
    ("close", {"stage": ("before_store", "after_store", "after_reply"), "times": _FEW}, _SHORT),
    ("reset", {"on": "bytes", "at_byte": (1, 3, 25, 1000, 30_000)}, _LONG),
    ("freeze", {"on": "data", "side": ("read", "write", "both")}, _LONG),
    ("slow", {"on": "bytes", "bytes_per_second": (1000, 50_000)}, _SHORT),
    ("load", {"on": "heartbeat", "load": (0, 60_000)}, _LONG),
    ("refuse_connections", {}, _SHORT),
    ("kill", {}, _SHORT),
]
#: Faults that no client can see through where answers have no number: the next request would take the second answer.
_NUMBERED = ("duplicate", "foreign_id", "reverse", "corrupt")

#: The same for the proxies on the wire.
_WIRES: list[tuple[str, dict[str, object], tuple[float, ...]]] = [
    ("refuse", {}, _SHORT),
    ("reset", {"at_byte": (0, 0, 1, 30, 5000)}, _SHORT),
    ("close", {"at_byte": (0, 0, 1, 30, 5000)}, _SHORT),
    ("half_close", {"at_byte": (0, 17, 900)}, _SHORT),
    ("freeze", {"at_byte": (0, 40, 2000)}, _LONG),
    ("vanish", {"at_byte": (0, 40, 2000)}, _LONG),
    ("delay", {"seconds": (0.01, 0.2)}, _SHORT),
    ("slice", {"size": (1, 3, 100)}, _SHORT),
    ("bandwidth", {"bytes_per_second": (2000, 100_000)}, _SHORT),
]


class Faults:
    """Do damage to hubs, senders and Manager, never to more than all but one hub for long."""

    def __init__(
        self,
        seed: int,
        hubs: list[HubProcess],
        senders: list[SenderProcess],
        manager: Manager,
        proxies: list[FaultProxy],
        *,
        numbered: bool = True,
        groups: Sequence[Group | Rockets] = (),
    ) -> None:
        self.wrongs = [wrong for wrong in _WRONGS if numbered or wrong[0] not in _NUMBERED]
        self.proxies = proxies
        self.rng = random.Random(seed)
        self.hubs = hubs
        self.senders = senders
        self.manager = manager
        self.groups = groups
        self.done: Counter[str] = Counter()
        self.wait = threading.Event().wait
        self.kinds: dict[Callable[[], None], int] = {
            self.kill: 4, self.freeze: 12, self.long_freeze: 2, self.stop_sender: 6, self.manager_mood: 8,
            self.shorter_list: 6, self.two_frozen: 3, self.misbehave: 60, self.wire: 30,
            self.vanish: 3, **({self.change_member: 4} if groups else {}),
        }  # fmt: skip

    def one(self) -> None:
        """Do one fault and see that it is over."""
        (fault,) = self.rng.choices(list(self.kinds), list(self.kinds.values()))
        self.done[fault.__name__] += 1
        fault()
        self.wait(self.rng.choice((0.0, 0.01, 0.05)))

    def misbehave(self) -> None:
        """Let the hub itself do wrong: refuse, drop, delay, repeat, swap, cut or spoil answers, break connections."""
        kind, fields, seconds = self.rng.choice(self.wrongs)
        fields = {name: self.rng.choice(value) if isinstance(value, tuple) else value for name, value in fields.items()}
        self.done[f"hub {kind}"] += 1
        self.done["misbehave"] -= 1
        self.rng.choice(self.hubs).misbehave(self.rng.choice(seconds), kind, fields)

    def wire(self) -> None:
        """Let a proxy between producers and a hub break, cut, hold or slow down the stream of bytes."""
        kind, fields, seconds = self.rng.choice(_WIRES)
        fields = {name: self.rng.choice(value) if isinstance(value, tuple) else value for name, value in fields.items()}
        self.done[f"wire {kind}"] += 1
        self.done["wire"] -= 1
        proxy = self.rng.choice(self.proxies)
        armed = proxy.add(kind, side=self.rng.choice(("to_server", "to_client", "both")), **fields)
        self.wait(self.rng.choice(seconds))
        proxy.remove(armed)

    def vanish(self) -> None:
        """Let a host be gone without a sign, and come back with its connections or without them."""
        proxy = self.rng.choice(self.proxies)
        with proxy.fault("vanish"):
            self.wait(self.rng.choice((0.3, 1.5, 2.5)))
        if self.rng.random() < 0.5:
            proxy.reset_all()

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

    def change_member(self) -> None:
        """Let a member of a consumer group leave, and another one join."""
        self.rng.choice(self.groups).change()

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
