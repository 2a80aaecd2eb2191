"""The embedded hub: an InLong DataProxy, its Manager and a store in one process."""

from dataproxy.hub.records import LogInfo, Record, StreamCount
from dataproxy.hub.server import Hub
from dataproxy.hub.store import StoreReader, open_store

__all__ = ["Hub", "LogInfo", "Record", "StoreReader", "StreamCount", "open_store"]
