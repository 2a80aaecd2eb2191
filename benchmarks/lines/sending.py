"""Sending by one thread and more: small bodies, larger ones, compressed ones, late acks, callbacks, single calls."""

from benchmarks.contest import TEXT_BODIES, Contestant
from benchmarks.floors import BUILT
from benchmarks.lines.describe import PORT, PRODUCER, TIMES, at_least, at_most, blast, module, ours, peer

__all__ = ["CALL", "LATE_ACKS", "SIZES", "SMALL", "SNAPPY", "THREADS", "TOLD"]

CALL_GOALS = (at_least("8 M/s", "rate", 8e6), at_most("0.12 CPU-s/M", "cpu_per_million", 0.12))
BATCH_GOALS = (at_least("20 M/s", "rate", 20e6), at_most("0.05 CPU-s/M", "cpu_per_million", 0.05))
SMALL = (
    blast("small", "blast", "--body", "100", quick=True),
    blast("small", "blast (again, A/A)", "--body", "100", floor="blast"),
    ours("small", "send_nowait", floor="blast", marks=CALL_GOALS, quick=True),
    ours("small", "stream_nowait", name="stream().send_nowait", floor="blast", marks=CALL_GOALS, quick=True),
    ours("small", "send_batch", name="send_batch, list of bytes", floor="blast", marks=BATCH_GOALS, quick=True),
    ours("small", "send_numpy", name="send_batch, NumPy S100", floor="blast", marks=BATCH_GOALS),
    ours("small", "send_arrow", name="send_arrow, binary column", floor="blast", marks=BATCH_GOALS, quick=True),
    ours(
        "small",
        "send_delivery",
        name="send, Delivery dropped",
        floor="blast",
        marks=(at_most("250 ns", "cpu_per_million", 0.25),),
        quick=True,
    ),
    ours(
        "small",
        "send_await",
        name="send, result() in bulk",
        floor="blast",
        marks=(at_most("400 ns", "cpu_per_million", 0.40),),
        quick=True,
    ),
    peer("small", "produce", name="confluent-kafka produce, linger 5 ms", options="linger.ms=5"),
    peer("small", "produce", "--linger-ms", "100", name="confluent-kafka produce, 100 ms", options="linger.ms=100"),
    peer("small", "produce_batch", name="confluent-kafka produce_batch", options="linger.ms=5"),
    Contestant(
        name="aiokafka send",
        scenario="small",
        role="peer",
        command=module("clients.aiokafka", *PORT, *TIMES),
        server="mock cluster",
        needs=("aiokafka",),
        options="acks=1, linger_ms=5, max_batch_size=1000000",
        every=3,
    ),
)
LARGE_GOAL = (at_least("0.9 of blast from memory", "share", 0.9),)
SIZE_GOALS = {
    1024: (at_least("0.70 of blast", "share", 0.70), at_most("0.36 CPU-s/M", "cpu_per_million", 0.36)),
    10240: LARGE_GOAL,
    102400: LARGE_GOAL,
    1048576: LARGE_GOAL,
}
ARROW_GOALS = SIZE_GOALS | {1024: (at_least("0.75 of blast", "share", 0.75),)}
SIZE_NAMES = {1024: "1 KB", 10240: "10 KB", 102400: "100 KB", 1048576: "1 MB"}
LARGER_FRAMES = ("--set", "max_frame_bytes=2MiB")  # the default, 512 KiB, has no room for a body of 1 MB
IN_CACHE, FROM_MEMORY = "", ", frames from memory"

BESIDE = {"frames from memory": ("--chunk", "67108864"), "zero-copy": ("--zerocopy",)}


def beside(name: str, what: str, *words: str) -> Contestant:
    """Describe the C sender where it is not the ceiling: it shows the cost of memory reads, or of a kernel feature."""
    is_floor = what in FROM_MEMORY and name != SIZE_NAMES[1024]  # of our lines with bodies of 10 KB and more
    fields: dict[str, object] = {"metric": "body_rate", "floor": f"blast {name}", "every": 1 if is_floor else 3}
    return blast("sizes", f"blast {name}, {what}", *words, **fields)


def of_size(body: int) -> tuple[Contestant, ...]:
    """Describe floor, ours and peer with bodies of one size."""
    name, words = SIZE_NAMES[body], ("--body", str(body))
    few = ("--block", str(max(50 if body > 1_000_000 else 200, min(10_000, 50_000_000 // body))))
    more = LARGER_FRAMES if body > 500_000 else ()
    floor = f"blast {name}{IN_CACHE if body == 1024 else FROM_MEMORY}"
    return (
        blast("sizes", f"blast {name}", *words, metric="body_rate", quick=True),
        *(beside(name, what, *words, *rest) for what, rest in BESIDE.items()),
        *(
            ours(
                "sizes",
                mode,
                *words,
                *few,
                *more,
                name=f"{mode} {name}",
                metric="body_rate",
                floor=floor,
                marks=marks[body],
                quick=mode == "send_batch",
            )
            for mode, marks in (("send_batch", SIZE_GOALS), ("send_arrow", ARROW_GOALS))
        ),
        peer(
            "sizes",
            "produce_batch",
            *words,
            *(("--max-bytes", "2000000", *few) if more else ()),
            name=f"confluent-kafka produce_batch {name}",
            metric="body_rate",
            options=f"linger.ms=5{', message.max.bytes=2000000' if more else ''}",
        ),
    )


SIZES = tuple(line for body in SIZE_NAMES for line in of_size(body))
TEXT = ("--body", "1024", "--text")
SNAPPY_OURS = (*TEXT, "--block", "2000", "--set", "compression=snappy")
SNAPPY = (
    Contestant(
        "snappy alone",
        "snappy",
        "floor",
        (str(BUILT / "snappyloop"), "--bodies", str(TEXT_BODIES), "--seconds", "{seconds}"),
        metric="body_rate",
        quick=True,
    ),
    ours(
        "snappy",
        "send_batch",
        *SNAPPY_OURS,
        name="send_batch 1 KB snappy",
        metric="body_rate",
        floor="snappy alone",
        marks=(at_least("0.9 of snappy alone", "share", 0.9),),
        quick=True,
    ),
    ours(
        "snappy",
        "send_batch",
        *SNAPPY_OURS,
        "--set",
        "executors=2",
        name="send_batch 1 KB snappy, two executors, all cores",
        metric="body_rate",
        floor="send_batch 1 KB snappy",
        marks=(at_least("1.8 of one", "share", 1.8),),
        cores="all",
    ),
    peer(
        "snappy",
        "produce_batch",
        *TEXT,
        "--compression",
        "snappy",
        name="confluent-kafka produce_batch 1 KB snappy",
        metric="body_rate",
        options="linger.ms=5, compression.type=snappy",
    ),
)
LATE = "sink, acks 20 ms late"
LATE_GOAL = (at_least("0.9 of undelayed", "share", 0.9),)
LATE_ACKS = (
    ours("late", "send_nowait", name="send_nowait, acks late", server=LATE, floor="send_nowait", marks=LATE_GOAL),
    ours(
        "late",
        "send_batch",
        name="send_batch, acks late",
        server=LATE,
        floor="send_batch, list of bytes",
        marks=LATE_GOAL,
    ),
)
TOLD = (
    ours(
        "told",
        "send_nowait",
        "--told",
        name="send_nowait, on_delivery",
        floor="send_nowait",
        marks=(at_most("0.25 CPU-s/M more", "cpu_per_million_more", 0.25),),
        quick=True,
    ),
)
THREADS = tuple(
    ours(
        "threads",
        "stream_nowait",
        "--threads",
        str(number),
        name=f"{words} threads on one producer",
        floor="stream().send_nowait",
        marks=(at_least("no slower than one", "share", 1.0),),
    )
    for number, words in ((2, "two"), (8, "eight"))
)


def call(mode: str, name: str, limit: float, **fields: object) -> Contestant:
    """Describe the price of one call."""
    return Contestant(
        name=name,
        scenario="call",
        role="ours",
        command=module("clients.call", "--mode", mode, *PORT),
        server="sink",
        metric="ns_per_call",
        floor="Cython call, copy under a lock",
        needs=PRODUCER,
        marks=(at_most(f"{limit:.0f} ns", "ns_per_call", limit),),
        quick=True,
        **fields,  # type: ignore[arg-type]
    )


def call_floor(mode: str, name: str) -> Contestant:
    """Describe a call of the Cython floor."""
    return Contestant(
        name, "call", "floor", module("clients.call", "--mode", mode), metric="ns_per_call", quick=mode == "copying"
    )


CALL = (
    Contestant("C: copy under a mutex", "call", "floor", (str(BUILT / "copyloop"),), metric="ns_per_call", every=3),
    call_floor("empty", "empty Cython call"),
    call_floor("copying", "Cython call, copy under a lock"),
    call("send_nowait", "one send_nowait", 60),
    call("stream_nowait", "one stream().send_nowait", 45),
    call("send_delivery", "one send with its Delivery", 250),
)
