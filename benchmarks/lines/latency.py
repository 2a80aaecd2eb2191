"""Latency: one message at a time, and messages that are due at a fixed rate."""

from benchmarks.contest import Contestant
from benchmarks.floors import BUILT
from benchmarks.lines.describe import HUB, PORT, PRODUCER, TIMES, at_most, module

__all__ = ["HUB_ROUNDTRIP", "LOADS", "OPEN_LOOP", "ROUNDTRIP", "load_name"]

LINGER_US = 1000
LOADS = (0.1, 0.25, 0.5, 0.75, 0.9)
PINGPONG = (str(BUILT / "pingpong"), *PORT, *TIMES)


def ratios(p50: float, p99: float, floor: str) -> dict[str, object]:
    """Return floor and goals of a round trip."""
    return {
        "floor": floor,
        "marks": (at_most(f"p50 {p50} x", "p50_us_share", p50), at_most(f"p99 {p99} x", "p99_us_share", p99)),
    }


ROUNDTRIP = (
    Contestant("ping-pong", "roundtrip", "floor", PINGPONG, server="sink", metric="p50_us", quick=True),
    Contestant(
        "send, result, linger 0",
        "roundtrip",
        "ours",
        module("clients.roundtrip", *PORT, *TIMES),
        server="sink",
        metric="p50_us",
        needs=PRODUCER,
        quick=True,
        options="linger=0",
        **ratios(1.3, 1.5, "ping-pong"),  # type: ignore[arg-type]
    ),
    Contestant(
        "send, result, linger 0, busy_poll",
        "roundtrip",
        "ours",
        module("clients.roundtrip", *PORT, *TIMES, "--set", "linger=0", "--set", "busy_poll=1ms"),
        server="sink",
        metric="p50_us",
        needs=PRODUCER,
        options="linger=0, busy_poll=1ms",
        **ratios(1.1, 1.5, "ping-pong"),  # type: ignore[arg-type]
    ),
)
HUB_ROUNDTRIP = (
    Contestant(
        "hub in memory, ping-pong",
        "roundtrip",
        "ours",
        PINGPONG,
        server="hub in memory",
        metric="p50_us",
        needs=HUB,
        quick=True,
        **ratios(1.2, 1.2, "ping-pong"),  # type: ignore[arg-type]
    ),
    Contestant(
        "hub durable, ping-pong",
        "roundtrip",
        "ours",
        PINGPONG,
        server="hub durable",
        metric="p50_us",
        needs=HUB,
        floor="ping-pong",
        every=3,
    ),
)


def load_name(load: float) -> str:
    """Return the name of the line."""
    return f"open loop at {load:.0%} of the ceiling"


def open_loop(load: float) -> Contestant:
    """Describe messages that are due at ``load`` (0 to 1) of the highest rate."""
    goals = (
        at_most("p99 linger + 1 ms", "p99_us", LINGER_US + 1000),
        at_most("p99.9 linger + 3 ms", "p999_us", LINGER_US + 3000),
    )
    return Contestant(
        name=load_name(load),
        scenario="openloop",
        role="ours",
        command=module("clients.openloop", "--load", str(load), "--linger", f"{LINGER_US}us", *PORT, *TIMES),
        server="sink",
        metric="p99_us",
        needs=PRODUCER,
        marks=goals if load == 0.5 else (),
        options="linger=1ms",
        every=1 if load == 0.5 else 2,
        quick=load == 0.5,
    )


OPEN_LOOP = tuple(open_loop(load) for load in LOADS)
