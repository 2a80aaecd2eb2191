"""The embedded hub: an InLong DataProxy, its Manager and a store in one process."""

from dataproxy.hub.fault import Fault
from dataproxy.hub.faultkinds import KINDS
from dataproxy.hub.faults import ArmedFault, Faults
from dataproxy.hub.listeners import Listener
from dataproxy.hub.records import LogInfo, Record, StreamCount
from dataproxy.hub.server import Hub
from dataproxy.hub.store import StoreReader, open_store
from dataproxy.hub.verify import Damage, StoreReport, verify_store

__all__ = [
    "KINDS",
    "ArmedFault",
    "Damage",
    "Fault",
    "Faults",
    "Hub",
    "Listener",
    "LogInfo",
    "Record",
    "StoreReader",
    "StoreReport",
    "StreamCount",
    "open_store",
    "verify_store",
]
