"""The hub: frames of several shapes into it, and its records read back."""

from benchmarks.contest import TEXT_BODIES, Contestant, Mark
from benchmarks.lines.describe import HUB, at_least, blast, module

__all__ = ["HUBS", "READ_BACK"]

DISK = "synced writes of 4 MiB"
LARGE, MIDDLE, SINGLE = "1 KB bodies in 400 KB frames", "1 KB bodies in 16 KB frames", "one 100 B body a frame"
PACKED = f"{LARGE}, snappy"
TEXT = ("--body", "1024", "--bodies", str(TEXT_BODIES))
# label: metric, options of the C sender
SHAPES = {
    LARGE: ("body_rate", (*TEXT, "--frame", "400000", "--window", "33554432")),
    PACKED: ("body_rate", (*TEXT, "--frame", "400000", "--window", "33554432", "--snappy")),
    MIDDLE: ("frame_rate", (*TEXT, "--frame", "16384", "--window", "16777216")),
    SINGLE: ("frame_rate", ("--body", "100", "--frame", "1", "--window", "1048576")),
}
MEMORY_GOALS = {
    LARGE: (at_least("1.5 GB/s", "body_rate", 1.5e9),),
    PACKED: (at_least("3 GB/s", "body_rate", 3e9),),
    MIDDLE: (at_least("600 k frames/s", "frame_rate", 600e3), at_least("0.95 of the plain sink", "share", 0.95)),
    SINGLE: (at_least("2 M frames/s", "frame_rate", 2e6),),
}
HALF = (at_least("0.5 of the synced writes", "share", 0.5),)


def into(server: str, label: str, floor: str = "", marks: tuple[Mark, ...] = (), every: int = 1) -> Contestant:
    """Describe the C sender with one shape of frames against the plain sink or a hub."""
    metric, shape = SHAPES[label]
    plain = server == "sink"
    return blast(
        "hub",
        f"{'plain sink' if plain else server}: {label}",
        *shape,
        server=server,
        role="floor" if plain else "ours",
        metric="body_rate" if floor == DISK else metric,
        needs=() if plain else HUB,
        floor="" if plain else floor or f"plain sink: {label}",
        marks=marks,
        every=every,
        quick=server == "hub in memory",
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
    *(into("hub in memory", label, marks=MEMORY_GOALS[label]) for label in SHAPES),
    into("hub in memory, compressing", LARGE, every=3),
    into("hub in memory, filling", LARGE, every=3),
    into("hub durable", LARGE, DISK, HALF),
    into("hub durable", PACKED, every=3),
    into("hub durable", MIDDLE, DISK, HALF, every=2),
    into("hub durable", SINGLE, every=2),
    into("hub durable, compressing", LARGE, DISK, every=3),
)


def read_back(mode: str, name: str, **fields: object) -> Contestant:
    """Describe reading a durable store of a million records."""
    return Contestant(
        name=name,
        scenario="readback",
        role="ours",
        command=module("clients.readback", "--mode", mode, "--folder", "{folder}"),
        needs=HUB,
        every=3,
        **fields,  # type: ignore[arg-type]
    )


READ_BACK = (
    read_back("record_batches", "open_store().record_batches()", marks=(at_least("5 M/s", "rate", 5e6),)),
    read_back("records", "open_store().records()"),
)
