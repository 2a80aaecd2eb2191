"""A TubeMQ master in plain Python that names a broker which runs elsewhere, for floor programs.

``python -m benchmarks.servers.tubemaster BROKER_PORT PARTITIONS TOPIC ...`` prints its port, and runs till it is ended.
"""

import asyncio
import sys
import time

from dataproxy.wire.tubemq.texts import Broker
from tests.support.tubeserver.faults import Faults
from tests.support.tubeserver.listener import Listener
from tests.support.tubeserver.master import Master
from tests.support.tubeserver.service import Service
from tests.support.tubeserver.settings import Settings


async def _run(broker_port: int, partitions: int, topics: list[str]) -> None:
    settings = Settings(dict.fromkeys(topics, partitions), balance_s=0.0)
    master = Master(settings, [Broker(settings.broker_id, "127.0.0.1", broker_port)])
    listener = Listener(Service((1,), master.work, time.monotonic, [], Faults()), [])
    listener.start()
    print(listener.port, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_run(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
