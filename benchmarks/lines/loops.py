"""One event loop on one core: tasks that await, sends that do not, and how late timers are."""

from benchmarks.contest import Bound, Contestant, Mark
from benchmarks.lines.describe import PORT, TIMES, at_least, module

__all__ = ["LOOPS"]

LAG = Mark("p99 under 5 ms", (Bound("p99_us", "<=", 5000),))


def loops(loop: str, mode: str, name: str, *, floor: str = "", **fields: object) -> Contestant:
    """Describe a program on one event loop: the loop alone where there is no floor, else with our producer."""
    return Contestant(
        name=f"{name}, {loop}",
        scenario="asyncio",
        role="ours" if floor else "floor",
        command=module("clients.loops", "--mode", mode, "--loop", loop, *(PORT if floor else ()), *TIMES),
        server="sink" if floor else "none",
        floor=f"{floor}, {loop}" if floor else "",
        options="linger=1ms" if floor else "",
        needs=("dataproxy:AsyncProducer", *(("uvloop",) if loop == "uvloop" else ())),
        **fields,  # type: ignore[arg-type]
    )


def on_loop(loop: str, *await_marks: Mark) -> tuple[Contestant, ...]:
    """Describe everything that is measured on one kind of loop."""
    cpu = at_least("1.8 x the CPU of bare futures", "cpu_share", 1 / 1.8)
    soon = at_least("2.5 M/s", "rate", 2.5e6)
    bare, idle = "bare futures awaited", "lag of the idle loop"
    return (
        loops(loop, "bare_futures", bare, quick=loop == "uvloop"),
        loops(loop, "await_send", "await send", floor=bare, marks=(cpu, *await_marks), quick=loop == "uvloop"),
        loops(loop, "send_soon", "send_soon", floor=bare, marks=(soon,), quick=loop == "uvloop"),
        loops(loop, "lag", idle, metric="p99_us", every=3),
        loops(loop, "lag", "lag at 50,000 msg/s", floor=idle, metric="p99_us", marks=(LAG,), every=3),
    )


LOOPS = (*on_loop("asyncio"), *on_loop("uvloop", at_least("1 M/s", "rate", 1e6)))
