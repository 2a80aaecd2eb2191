"""The embedded hub: an InLong DataProxy, its Manager and a store in one process."""

from dataproxy.hub.server import Hub

__all__ = ["Hub"]
