"""How lines of the table are described: our producer, a peer, the plain C sender."""

import sys

from benchmarks.contest import Bound, Contestant, Mark
from benchmarks.floors import BUILT

__all__ = ["BLAST", "HUB", "PORT", "PRODUCER", "TIMES", "at_least", "at_most", "blast", "module", "ours", "peer"]

PRODUCER = ("dataproxy:Producer",)
HUB = ("dataproxy.hub:Hub",)
TIMES = ("--seconds", "{seconds}", "--warmup", "{warmup}")
PORT = ("--port", "{port}")
BLAST = str(BUILT / "blast")


def module(name: str, *rest: str) -> tuple[str, ...]:
    """Return the command of a Python program of this folder."""
    return (sys.executable, "-m", f"benchmarks.{name}", *rest)


def at_least(text: str, metric: str, value: float) -> Mark:
    """Describe a goal that the figure reaches from below."""
    return Mark(text, (Bound(metric, ">=", value),))


def at_most(text: str, metric: str, value: float) -> Mark:
    """Describe a goal that the figure stays under."""
    return Mark(text, (Bound(metric, "<=", value),))


def ours(scenario: str, mode: str, *rest: str, name: str = "", **fields: object) -> Contestant:
    """Describe a way of sending with our producer."""
    return Contestant(
        name=name or mode,
        scenario=scenario,
        role="ours",
        command=module("clients.ours", "--mode", mode, *PORT, *TIMES, *rest),
        server=str(fields.pop("server", "sink")),
        needs=PRODUCER,
        verify=True,
        **fields,  # type: ignore[arg-type]
    )


def peer(scenario: str, mode: str, *rest: str, name: str, options: str, **fields: object) -> Contestant:
    """Describe a way of sending with confluent-kafka."""
    return Contestant(
        name=name,
        scenario=scenario,
        role="peer",
        command=module("clients.kafka", "--mode", mode, *PORT, *TIMES, *rest),
        server="mock cluster",
        needs=("confluent_kafka",),
        options=f"acks=1, queue.buffering.max.messages=1000000, {options}",
        every=2,
        **fields,  # type: ignore[arg-type]
    )


def blast(scenario: str, name: str, *rest: str, server: str = "sink", **fields: object) -> Contestant:
    """Describe the plain C sender with given frames."""
    return Contestant(
        name=name,
        scenario=scenario,
        role=str(fields.pop("role", "floor")),
        command=(BLAST, *PORT, *TIMES, *rest),
        server=server,
        **fields,  # type: ignore[arg-type]
    )
