"""Many streams, many connections: what a record costs when the work is spread over them."""

from benchmarks.contest import Contestant
from benchmarks.floors import BUILT
from benchmarks.lines.describe import PORT, PRODUCER, at_least, at_most, module, ours

__all__ = [
    "CONNECTIONS",
    "CONNECTION_COUNTS",
    "DEFAULT_STREAMS",
    "STREAMS",
    "STREAM_COUNTS",
    "connections_name",
    "streams_name",
]

STREAM_COUNTS = {"send_nowait": (1, 10, 100, 1000, 10_000), "send_arrow": (1, 100, 10_000)}
STREAM_GOALS = {"send_nowait": 1.6, "send_arrow": 2.5}
CONNECTION_COUNTS = (1, 4, 16, 64, 256, 1000)


DEFAULT_GOALS = {
    1: (),
    1000: (at_least("4 M/s", "rate", 4e6),),
    10_000: (at_least("2 M/s", "rate", 2e6), at_most("0.45 CPU-s/M", "cpu_per_million", 0.45)),
}


def streams_name(mode: str, count: int) -> str:
    """Return the name of the line; options of it are in `benchmarks.clients.spread`."""
    return f"{mode}, {count:,} stream{'s' if count > 1 else ''}, 16 KiB frames, linger 10 s, 256 MiB"


def at_defaults(count: int) -> Contestant:
    """Describe ``Producer.send_nowait`` to ``count`` streams in random order, no option given."""
    words = ("--mode", "by_name", "--streams", str(count), "--defaults", "--seconds", "2")
    return Contestant(
        name=f"send_nowait, {count:,} stream{'s' if count > 1 else ''}, all defaults",
        scenario="defaultstreams",
        role="ours",
        command=module("clients.spread", *words, *PORT),
        server="sink",
        needs=PRODUCER,
        floor="send_nowait, 1 stream, all defaults" if count > 1 else "",
        marks=DEFAULT_GOALS[count],
        every=2,
        quick=count == 10_000,
        verify=count == 10_000,
    )


def connections_name(count: int) -> str:
    """Return the name of the line."""
    return f"{count:,} connection{'s' if count > 1 else ''}"


def of_streams(mode: str, count: int) -> Contestant:
    """Describe messages to ``count`` streams in random order."""
    limit = STREAM_GOALS[mode]
    most = count == STREAM_COUNTS[mode][-1]
    return Contestant(
        name=streams_name(mode, count),
        scenario="streams",
        role="ours",
        command=module("clients.spread", "--mode", mode, "--streams", str(count), *PORT),
        server="sink",
        needs=PRODUCER,
        floor=streams_name(mode, 1) if count > 1 else "",
        options="batch_bytes=16KiB, linger=10s, buffer_bytes=256MiB",
        marks=(at_most(f"{limit} x the CPU of one stream", "cpu_per_million_share", limit),) if most else (),
        every=2 if most or count == 1 else 4,
        verify=most,
    )


def of_connections(count: int) -> Contestant:
    """Describe sending over ``count`` connections to one server."""
    return ours(
        "connections",
        "stream_nowait",
        "--set",
        f"connections={count}",
        name=connections_name(count),
        floor=connections_name(4) if count != 4 else "",
        marks=(at_most("1.3 x the CPU of four", "cpu_per_million_share", 1.3),) if count == 1000 else (),
        every=1 if count in (4, 1000) else 4,
    )


FLOORS = tuple(
    Contestant(
        f"C: append to {packs:,} pack{'s' if packs > 1 else ''} at random",
        "streams",
        "floor",
        (str(BUILT / "copyloop"), "--pack", "16384", "--packs", str(packs), "--seconds", "{seconds}"),
        metric="ns_per_call",
        every=4,
    )
    for packs in (1, 10_000)
)
STREAMS = FLOORS + tuple(of_streams(mode, count) for mode, counts in STREAM_COUNTS.items() for count in counts)
DEFAULT_STREAMS = tuple(at_defaults(count) for count in DEFAULT_GOALS)
CONNECTIONS = tuple(of_connections(count) for count in CONNECTION_COUNTS)
