"""The contestants: what is measured, against which floor and peers, and the marks that are aimed at."""

import sys

from benchmarks.contest import TEXT_BODIES, Bound, Contestant, Mark
from benchmarks.floors import BUILT

__all__ = ["ALL", "CONTESTANTS", "COUNTING", "SCENARIOS", "SPARK", "SPARK_SINK"]

SCENARIOS = {
    "small": "100 B bodies, no compression, acknowledged; client on one core, sink on the other",
    "kilobyte": "1 KB bodies, no compression, acknowledged; client on one core, sink on the other",
    "snappy": "1 KB text bodies, snappy, one core",
    "call": "one call with a 100 B body: CPU of the calling thread, loop taken off",
    "roundtrip": "one 100 B message at a time, from send to result",
    "asyncio": "one event loop on one core: 1,000 tasks that await, 100 B bodies, linger 1 ms; lag of a timer",
    "memory": "resident memory at full speed, 100 B bodies, buffer limit 64 MiB",
    "hub": "the hub on one core, acknowledged; pre-built frames from the C program on the other",
    "spark": "one Spark job, 100 B strings, local[2], both cores free for everybody",
}
PRODUCER = ("dataproxy:Producer",)
HUB = ("dataproxy.hub:Hub",)
TIMES = ("--seconds", "{seconds}", "--warmup", "{warmup}")
PORT = ("--port", "{port}")
BLAST = str(BUILT / "blast")


def module(name: str, *rest: str) -> tuple[str, ...]:
    """Return the command of a Python program of this folder."""
    return (sys.executable, "-m", f"benchmarks.{name}", *rest)


def ours(scenario: str, mode: str, *rest: str, name: str = "", **fields: object) -> Contestant:
    """Describe a way of sending with our producer."""
    return Contestant(
        name=name or mode,
        scenario=scenario,
        role="ours",
        command=module("clients.ours", "--mode", mode, *PORT, *TIMES, *rest),
        server="sink",
        needs=PRODUCER,
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


FAST_CALL = (
    Mark("4 M records/s, or 0.25 CPU-s per million", (Bound("rate", ">=", 4e6), Bound("cpu_per_million", "<=", 0.25))),
)
FAST_BATCH = (Mark("10 M records/s", (Bound("rate", ">=", 10e6),)),)
HALF = (Mark("half of the floor's bytes per second", (Bound("share", ">=", 0.5),)),)

SMALL = (
    blast("small", "blast", "--body", "100"),
    blast("small", "blast (again, A/A)", "--body", "100", floor="blast"),
    ours("small", "send_nowait", floor="blast", marks=FAST_CALL),
    ours("small", "stream_nowait", name="stream().send_nowait", floor="blast", marks=FAST_CALL),
    ours("small", "send_batch", name="send_batch, list of bytes", floor="blast", marks=FAST_BATCH),
    ours("small", "send_numpy", name="send_batch, NumPy S100", floor="blast", marks=FAST_BATCH),
    ours("small", "send_arrow", name="send_arrow, binary column", floor="blast", marks=FAST_BATCH),
    ours("small", "send_delivery", name="send, Delivery dropped", floor="blast"),
    ours("small", "send_await", name="send, result() in bulk", floor="blast"),
    peer("small", "produce", name="confluent-kafka produce, linger 5 ms", options="linger.ms=5"),
    peer(
        "small", "produce", "--linger-ms", "100", name="confluent-kafka produce, linger 100 ms", options="linger.ms=100"
    ),
    peer("small", "produce_batch", name="confluent-kafka produce_batch", options="linger.ms=5"),
)
KILOBYTE = (
    blast("kilobyte", "blast 1 KB", "--body", "1024", metric="body_rate"),
    ours(
        "kilobyte",
        "send_batch",
        "--body",
        "1024",
        name="send_batch 1 KB",
        metric="body_rate",
        floor="blast 1 KB",
        marks=HALF,
    ),
    peer(
        "kilobyte",
        "produce_batch",
        "--body",
        "1024",
        name="confluent-kafka produce_batch 1 KB",
        metric="body_rate",
        options="linger.ms=5",
    ),
)
SNAPPY_OURS = ("--body", "1024", "--text", "--block", "2000", "--compression", "snappy")
SNAPPY = (
    Contestant(
        "snappy alone",
        "snappy",
        "floor",
        (str(BUILT / "snappyloop"), "--bodies", str(TEXT_BODIES), "--seconds", "{seconds}"),
        metric="body_rate",
    ),
    ours("snappy", "send_batch", *SNAPPY_OURS, name="send_batch 1 KB snappy", metric="body_rate", floor="snappy alone"),
    peer(
        "snappy",
        "produce_batch",
        "--body",
        "1024",
        "--text",
        "--compression",
        "snappy",
        name="confluent-kafka produce_batch 1 KB snappy",
        metric="body_rate",
        options="linger.ms=5, compression.type=snappy",
    ),
)
CALL_MARK = (Mark("100 ns", (Bound("ns_per_call", "<=", 100),)),)


def call(mode: str, name: str, **fields: object) -> Contestant:
    """Describe the price of one call."""
    return Contestant(
        name=name,
        scenario="call",
        role="ours",
        command=module("clients.call", "--mode", mode, *PORT),
        server="sink",
        metric="ns_per_call",
        floor="copy under a mutex",
        needs=PRODUCER,
        **fields,  # type: ignore[arg-type]
    )


CALL = (
    Contestant("copy under a mutex", "call", "floor", (str(BUILT / "copyloop"),), metric="ns_per_call"),
    call("send_nowait", "one send_nowait", marks=CALL_MARK),
    call("stream_nowait", "one stream().send_nowait", marks=CALL_MARK),
    call("send_delivery", "one send with its Delivery"),
)
ROUNDTRIP = (
    Contestant(
        "ping-pong", "roundtrip", "floor", (str(BUILT / "pingpong"), *PORT, *TIMES), server="sink", metric="p50_us"
    ),
    Contestant(
        "send, result, linger 0",
        "roundtrip",
        "ours",
        module("clients.roundtrip", *PORT, *TIMES),
        server="sink",
        metric="p50_us",
        floor="ping-pong",
        needs=PRODUCER,
    ),
)
MEMORY_MARK = (Mark("buffer limit + 64 MiB", (Bound("excess_mib", "<=", 64),)),)
MEMORY = tuple(
    Contestant(
        f"memory, {label}",
        "memory",
        "ours",
        module("clients.memory", "--mode", mode, *PORT, "--seconds", "{seconds}"),
        server="sink",
        metric="excess_mib",
        needs=PRODUCER,
        marks=MEMORY_MARK,
    )
    for mode, label in (("send_nowait", "send_nowait"), ("send_batch", "send_batch"))
)
AWAIT_CPU = Bound("cpu_share", ">=", 1 / 1.8)
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
        needs=("dataproxy:AsyncProducer", *(("uvloop",) if loop == "uvloop" else ())),
        **fields,  # type: ignore[arg-type]
    )


def on_loop(loop: str, *await_marks: Mark) -> tuple[Contestant, ...]:
    """Describe everything that is measured on one kind of loop."""
    cpu = Mark("1.8 times the CPU of bare futures", (AWAIT_CPU,))
    soon = Mark("2.5 M/s", (Bound("rate", ">=", 2.5e6),))
    bare, idle = "bare futures awaited", "lag of the idle loop"
    return (
        loops(loop, "bare_futures", bare),
        loops(loop, "await_send", "await send", floor=bare, marks=(cpu, *await_marks)),
        loops(loop, "send_soon", "send_soon", floor=bare, marks=(soon,)),
        loops(loop, "lag", idle, metric="p99_us"),
        loops(loop, "lag", "lag at 50,000 msg/s", floor=idle, metric="p99_us", marks=(LAG,)),
    )


LOOPS = (*on_loop("asyncio"), *on_loop("uvloop", Mark("1 M/s", (Bound("rate", ">=", 1e6),))))
DISK = "synced writes of 4 MiB"
LARGE, MIDDLE, SINGLE = "1 KB bodies in 400 KB frames", "1 KB bodies in 16 KB frames", "one 100 B body a frame"
TEXT = ("--body", "1024", "--bodies", str(TEXT_BODIES))
# label: metric, options of the C sender
SHAPES = {
    LARGE: ("body_rate", (*TEXT, "--frame", "400000", "--window", "33554432")),
    f"{LARGE}, snappy": ("body_rate", (*TEXT, "--frame", "400000", "--window", "33554432", "--snappy")),
    MIDDLE: ("frame_rate", (*TEXT, "--frame", "16384", "--window", "16777216")),
    SINGLE: ("frame_rate", ("--body", "100", "--frame", "1", "--window", "1048576")),
}


def into(server: str, label: str, floor: str = "") -> Contestant:
    """Describe the C sender with one shape of frames against the plain sink or a hub."""
    metric, shape = SHAPES[label]
    plain = server == "sink"
    return blast(
        "hub",
        f"{'plain sink' if plain else server}: {label}",
        *shape,
        server=server,
        role="floor" if plain else "ours",
        metric=metric,
        needs=() if plain else HUB,
        floor="" if plain else floor or f"plain sink: {label}",
    )


HUBS = (
    Contestant(
        DISK,
        "hub",
        "floor",
        module("clients.disk", "--folder", "{folder}", "--seconds", "{seconds}"),
        metric="body_rate",
    ),
    *(into("sink", label) for label in SHAPES),
    *(into("hub in memory", label) for label in SHAPES),
    into("hub in memory, compressing", LARGE),
    *(into("hub durable", label, DISK if label == LARGE else "") for label in SHAPES),
    into("hub durable, compressing", LARGE, DISK),
)
CONTESTANTS: tuple[Contestant, ...] = (*SMALL, *KILOBYTE, *SNAPPY, *CALL, *ROUNDTRIP, *LOOPS, *MEMORY, *HUBS)
SPARK_JOB = module("clients.spark_job", "--port", "{port}")
COUNTING, SPARK_SINK = "counting writer", "dataproxy sink"
SPARK = (
    Contestant(COUNTING, "spark", "floor", SPARK_JOB, server="sink", needs=("pyspark",)),
    Contestant(
        SPARK_SINK,
        "spark",
        "ours",
        SPARK_JOB,
        server="sink",
        floor=COUNTING,
        needs=("pyspark", "dataproxy.spark.sink"),
        marks=(Mark("0.7 of the counting writer", (Bound("share", ">=", 0.7),)),),
    ),
)
ALL = (*CONTESTANTS, *SPARK)
