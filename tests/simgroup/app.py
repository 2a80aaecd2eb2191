"""An application in a simulated run: it takes packs, and confirms them soon, late or never."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.native.probe_fetch import hold_of
from tests.simgroup.plan import S

if TYPE_CHECKING:
    from tests.simgroup.node import Node

__all__ = ["App", "Out"]


class _Style(NamedTuple):
    """How it behaves; times in limits of a confirm."""

    holds: tuple[float, float] = (0.0, 0.001)
    several: int = 1  #: packs that it has at a time
    rolls_back: float = 0.0
    forgets: float = 0.0
    pauses: float = 0.0  #: after a confirm, with which the next pack was asked for


_STYLES = {
    "fast": _Style(),
    "slow": _Style((0.05, 0.5)),
    "late": _Style((0.5, 1.6)),
    "several": _Style((0.0, 0.5), several=3, pauses=0.2),
    "rolls_back": _Style((0.0, 0.05), rolls_back=0.4),
    "forgets": _Style((0.0, 0.1), several=2, forgets=0.2),
    "mixed": _Style((0.0, 1.2), several=4, rolls_back=0.2, forgets=0.1, pauses=0.1),
}


class Out(NamedTuple):
    """A pack that the application took, and whose outcome it does not know yet."""

    pack: Any
    key: str  #: of its partition
    bodies: tuple[bytes, ...]
    offset: int


class App:
    """What one process does with packs."""

    def __init__(self, node: Node, style: str) -> None:
        self._node = node
        self._style = _STYLES[style]
        self.out: list[Out] = []
        self._mine = 0  # packs that it still works on
        self._takes = False
        self.paused: set[int] = set()  #: numbers of holds

    def calm(self) -> None:
        """Confirm everything soon from now on."""
        self._style = _STYLES["fast"]
        for number in list(self.paused):
            self.resume(number)

    def pause(self, number: int) -> None:
        """Let a partition rest."""
        self._node.world.note(f"{self._node.client} pauses hold {number}")
        self.paused.add(number)
        self._node.awake().pause(number)
        self._node.work()

    def resume(self, number: int) -> None:
        """Let a partition go on."""
        if number in self.paused and self._node.alive:
            self.paused.discard(number)
            self._node.awake().resume(number)
            self._node.work()

    def moved(self, before: int, number: int) -> bool:
        """Take the number of a partition's new hold, which is paused as the one before; return whether it is."""
        paused = before in self.paused
        if paused:
            self.paused.discard(before)
            self.paused.add(number)
        return paused

    def unpaused(self, number: int) -> None:
        """Forget a pause: its partition is gone."""
        self.paused.discard(number)

    def look(self) -> None:
        """Learn outcomes, and take packs soon if there are any."""
        world = self._node.world
        if self.out:
            waiting = []
            for one in self.out:
                outcome = one.pack.outcome
                if outcome == "held":
                    waiting.append(one)
                else:
                    world.laws.ended(self._node, one, outcome)
            self.out = waiting
        if not self._takes and self._mine < self._style.several and self._node.reader.ready:
            self._takes = True
            world.at(world.now + world.random.randrange(2000), self._take)

    def _take(self) -> None:
        node, world = self._node, self._node.world
        self._takes = False
        if not node.alive or node.paused(self._take):
            return
        pack = node.awake().take()
        if pack is None:
            return
        out = Out(
            pack,
            node.partitions[hold_of(pack)].key,
            tuple(body[:16].rstrip(b".") for body in pack.bodies()),
            pack.offset,
        )
        world.laws.taken(node, out, hold_of(pack))
        self.out.append(out)
        dice = world.random.random()
        if dice >= self._style.forgets:
            self._mine += 1
            rolls_back = dice < self._style.forgets + self._style.rolls_back
            holds = int(world.random.uniform(*self._style.holds) * world.plan.times.confirm * S)
            world.at(world.now + holds, partial(self._end, out, rolls_back))
        node.work()

    def _end(self, out: Out, rolls_back: bool) -> None:
        node = self._node
        if not node.alive or node.paused(partial(self._end, out, rolls_back)):
            return
        self._mine -= 1
        reader = node.awake()
        if rolls_back:
            reader.rollback(out.pack)
        else:
            node.world.laws.asked(node, out)
            reader.confirm(out.pack)
        node.work()
        hold = node.reads.get(out.key)
        if hold == hold_of(out.pack) and node.world.random.random() < self._style.pauses:
            self.pause(hold)
            node.world.at(node.world.now + node.world.random.randrange(S), partial(self.resume, hold))
