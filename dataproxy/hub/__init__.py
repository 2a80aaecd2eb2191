"""The embedded hub: an InLong DataProxy, its Manager and a store in one process.

What lives here.  `server`: the hub itself.  `nodes`, `listeners`, `addresses`: where it listens.  `health`,
`descriptors`: whether it can store and take connections.  `clients`: the registry of clients, for all protocols;
`idling`: the alarm for members that hold queues and ask for nothing.
`numbering`, `tokenfile`: names behind old numbers, and how commands find a hub.  `tubedoor`: its port of TubeMQ.
`rocketmqport`: that of RocketMQ.  `tasks`: functions that the thread of such a port calls for others.
`built`: whether the hub was built at all.  `web` is its HTTP port, `faults` what it does wrong on request, `overview`
what an operator sees, `reading` reads stores, `tubemq` answers as a master and a broker of TubeMQ do, `zookeeper` keeps
offsets of its groups.  Folders import one way: `web`, then `faults` and `overview`, then `reading`, `rocketmq` and
`tubemq`; `zookeeper` stands alone.  Of the modules here only `server` knows `web`.
"""

try:
    import dataproxy.hub.built  # noqa: F401 - raises ImportError where the hub was left out of the build
    from dataproxy.hub.faults.armed import ArmedFault, Faults
    from dataproxy.hub.faults.fault import Fault
    from dataproxy.hub.faults.kinds import KINDS
    from dataproxy.hub.listeners import Listener
    from dataproxy.hub.nodes import Node
    from dataproxy.hub.reading.records import LogInfo, Record, StreamCount
    from dataproxy.hub.reading.store import StoreReader, open_store
    from dataproxy.hub.reading.verify import Damage, StoreReport, verify_store
    from dataproxy.hub.server import Hub
except ImportError as error:
    from dataproxy._core import explained

    raise explained(error) from error

__all__ = [
    "KINDS",
    "ArmedFault",
    "Damage",
    "Fault",
    "Faults",
    "Hub",
    "Listener",
    "LogInfo",
    "Node",
    "Record",
    "StoreReader",
    "StoreReport",
    "StreamCount",
    "open_store",
    "verify_store",
]
