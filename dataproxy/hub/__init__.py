"""The embedded hub: an InLong DataProxy, its Manager and a store in one process.

What lives here.  `server`: the hub itself.  `nodes`, `listeners`, `addresses`: where it listens.  `health`,
`descriptors`: whether it can store and take connections.  `clients`: the registry of clients, for all protocols.
`numbering`, `tokenfile`: names behind old numbers, and how commands find a hub.  `built`: whether the hub was built at
all.  `web` is its HTTP port, `faults` what it does wrong on request, `reading` reads stores, `tubemq` decides as a
master of TubeMQ does.  Folders import one way: `web`, then `faults` and `reading`; `tubemq` stands alone.  Of the
modules here only `server` knows `web`.
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
