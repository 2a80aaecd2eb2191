"""Connections with TLS: our producer beside the C sender, both over one connection, with OpenSSL's defaults."""

from benchmarks.contest import Contestant
from benchmarks.floors import BUILT
from benchmarks.lines.describe import PORT, TIMES, at_least, ours

__all__ = ["TLS"]

SERVER = "sink with TLS"
BLAST = str(BUILT / "blast-tls")
OURS = ("--set", "tls=true", "--set", "tls_verify=none", "--set", "connections=1")
NAMES = {1024: "1 KB", 102400: "100 KB"}
GOAL = (at_least("0.8 of OpenSSL alone", "share", 0.8),)


def of_size(body: int) -> tuple[Contestant, ...]:
    """Describe floor and ours with bodies of one size."""
    words = ("--body", str(body))
    few = ("--block", str(min(10_000, 50_000_000 // body)))
    floor = f"OpenSSL alone {NAMES[body]}"
    return (
        Contestant(
            floor, "tls", "floor", (BLAST, *PORT, *TIMES, *words), server=SERVER, metric="body_rate", quick=True
        ),
        ours(
            "tls",
            "send_batch",
            *words,
            *few,
            *OURS,
            name=f"send_batch {NAMES[body]} over TLS",
            server=SERVER,
            metric="body_rate",
            floor=floor,
            marks=GOAL,
            quick=True,
        ),
    )


TLS = tuple(line for body in NAMES for line in of_size(body))
