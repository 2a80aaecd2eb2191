"""Services: many threads or tasks, each waiting for the result of its message, at a fixed rate in all."""

from benchmarks.contest import Contestant
from benchmarks.lines.describe import PORT, PRODUCER, TIMES, at_most, module

__all__ = ["SERVICE"]

SECONDS = "1.5"
CLIENT = ("clients.service", "--client")
CALLERS = {"threads": "64 threads", "tasks": "1,000 asyncio tasks"}
KAFKA = {"confluent-kafka": "confluent_kafka", "aiokafka": "aiokafka"}
GOALS = (
    at_most("p50 of confluent-kafka", "p50_us_share", 1.0),
    at_most("p99 of confluent-kafka", "p99_us_share", 1.0),
    at_most("a third of its CPU", "cpu_per_million_share", 1 / 3),
)


def service(client: str, mode: str) -> Contestant:
    """Describe one client; ours is compared with confluent-kafka, whose linger is our default."""
    ours = client == "dataproxy"
    return Contestant(
        name=f"{CALLERS[mode]}, {client}",
        scenario="service",
        role="ours" if ours else "peer",
        command=module(*CLIENT, client, "--mode", mode, *PORT, *TIMES, "--seconds", SECONDS),
        server="sink" if ours else "mock cluster",
        metric="p50_us",
        floor=f"{CALLERS[mode]}, confluent-kafka" if ours else "",
        needs=PRODUCER if ours else (KAFKA[client],),
        marks=GOALS if ours else (),
        options="" if ours else "acks=1, linger 5 ms",
        every=2 if client != "aiokafka" else 4,
    )


def alone(mode: str) -> Contestant:
    """Describe the threads or tasks without a client: their own cost is in the figures of all clients."""
    command = module(*CLIENT, "none", "--mode", mode, *TIMES, "--seconds", SECONDS)
    return Contestant(f"{CALLERS[mode]} that send nothing", "service", "floor", command, metric="p50_us", every=4)


#: A distant proxy, at a rate that leaves the core idle: each ack comes alone, while most threads wait for theirs.
DISTANT = Contestant(
    "64 threads, dataproxy, 2,500 messages/s, acks late",
    "service",
    "ours",
    module(*CLIENT, "dataproxy", "--mode", "threads", *PORT, *TIMES, "--seconds", SECONDS, "--rate", "2500"),
    server="sink, acks 20 ms late",
    metric="p50_us",
    needs=PRODUCER,
    every=2,
)
SERVICE = (
    alone("threads"),
    *(service(client, "threads") for client in ("dataproxy", "confluent-kafka")),
    DISTANT,
    alone("tasks"),
    *(service(client, "tasks") for client in ("dataproxy", "confluent-kafka", "aiokafka")),
)
