"""The whole table: scenarios in their order, and every line of each."""

from benchmarks.contest import Contestant
from benchmarks.lines.encrypted import TLS
from benchmarks.lines.hub import HUBS, READ_BACK
from benchmarks.lines.latency import HUB_ROUNDTRIP, OPEN_LOOP, ROUNDTRIP
from benchmarks.lines.loops import LOOPS
from benchmarks.lines.process import IMPORT, MEMORY, SPARK
from benchmarks.lines.sending import CALL, LATE_ACKS, SIZES, SMALL, SNAPPY, THREADS, TOLD
from benchmarks.lines.service import SERVICE
from benchmarks.lines.spread import CONNECTIONS, DEFAULT_STREAMS, STREAMS

__all__ = ["ALL", "CONTESTANTS", "LEFT_OUT", "SCENARIOS", "SPARK"]

SCENARIOS = {
    "small": "100 B bodies, no compression, acknowledged; client on one core, sink on the other",
    "sizes": "1 KB, 10 KB, 100 KB and 1 MB bodies, no compression, acknowledged",
    "snappy": "1 KB text bodies, snappy",
    "tls": "1 KB and 100 KB bodies over one connection with TLS",
    "call": "one call with a 100 B body: CPU of the calling thread, loop taken off",
    "late": "acks that come 20 ms late, 100 B bodies",
    "told": "on_delivery called for each message, 100 B bodies",
    "threads": "several threads that call stream().send_nowait of one producer, in sum, on one core",
    "defaultstreams": "send_nowait to streams at random, 100 B bodies, no option given",
    "streams": "streams at random, 100 B bodies, frames up to 16 KiB, buffer limit 256 MiB for any number of them",
    "connections": "many connections to one server, 100 B bodies",
    "roundtrip": "one 100 B message at a time, from send to its result or ack",
    "openloop": "messages due at a fixed rate, 100 B, linger 1 ms: from when each was due to its ack in the core",
    "asyncio": "one event loop on one core: 1,000 tasks that await, 100 B bodies, linger 1 ms; lag of a timer",
    "service": "a service: each thread or task sends 100 B and waits for its result; 50,000 messages/s in all",
    "memory": "resident memory at full speed, 100 B bodies, buffer limit 64 MiB",
    "import": "import dataproxy, over a bare interpreter",
    "hub": "the hub on one core, acknowledged; pre-built frames from the C program on the other",
    "readback": "a million 100 B records read back from a durable store, decoded",
    "spark": "one Spark job, local[2], both cores free for everybody",
}
CONTESTANTS: tuple[Contestant, ...] = (
    *SMALL,
    *SIZES,
    *SNAPPY,
    *TLS,
    *CALL,
    *LATE_ACKS,
    *TOLD,
    *THREADS,
    *DEFAULT_STREAMS,
    *STREAMS,
    *CONNECTIONS,
    *ROUNDTRIP,
    *HUB_ROUNDTRIP,
    *OPEN_LOOP,
    *LOOPS,
    *SERVICE,
    *MEMORY,
    *IMPORT,
    *HUBS,
    *READ_BACK,
)
ALL = (*CONTESTANTS, *SPARK)
LEFT_OUT = {
    "Pulsar, NATS and RocketMQ clients": "they need a server of their own, and none runs without one",
    "free-threaded build": "the core is built for the interpreter with its lock",
}
