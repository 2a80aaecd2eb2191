"""A small asyncio service: it takes lines over TCP, reports each one, and answers when the line is safe.

python examples/asyncio_service.py                                # hub, service and clients in this process
python examples/asyncio_service.py tcp://host1:46801,host2:46801  # against InLong DataProxy nodes

`--uvloop` runs it on uvloop.
"""

from __future__ import annotations

import asyncio
import sys

from local_hub import target_or_hub

import dataproxy

CLIENTS = 50
LINES = 100


async def serve(producer: dataproxy.AsyncProducer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each line of one client once it is acknowledged, or with the reason why it is not."""
    while line := await reader.readline():
        try:
            done = await producer.send("lines", line.rstrip(b"\n"))
        except (dataproxy.DeliveryFailed, dataproxy.DeliveryExpired, dataproxy.BufferFullError) as error:
            writer.write(f"failed {error.code}\n".encode())
        else:
            writer.write(f"ok {done.id}\n".encode())
        await writer.drain()
    writer.close()


async def client(port: int, name: int) -> int:
    """Send some lines, one after the other, and count the good answers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    good = 0
    for number in range(LINES):
        writer.write(b"client %d line %d\n" % (name, number))
        good += (await reader.readline()).startswith(b"ok ")
    writer.close()
    await writer.wait_closed()
    return good


async def run(target: str) -> bool:
    """Start the service, let the clients talk to it, and end both."""
    async with dataproxy.AsyncProducer(target, group_id="service") as producer:
        service = await asyncio.start_server(lambda *streams: serve(producer, *streams), "127.0.0.1", 0)
        port = service.sockets[0].getsockname()[1]
        good = sum(await asyncio.gather(*(client(port, name) for name in range(CLIENTS))))
        service.close()
        report = await producer.flush()
    print(f"{good:,} of {CLIENTS * LINES:,} lines answered with ok; {report.delivered:,} messages acknowledged")
    return good == CLIENTS * LINES and report.ok


def main() -> int:
    """Read the command line."""
    words = [word for word in sys.argv[1:] if word != "--uvloop"]
    start = asyncio.run
    if "--uvloop" in sys.argv:
        import uvloop

        start = uvloop.run
    with target_or_hub(words[0] if words else None) as target:
        return 0 if start(run(target)) else 1


if __name__ == "__main__":
    sys.exit(main())
