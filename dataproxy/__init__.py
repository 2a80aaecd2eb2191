"""Native producer, Spark sink and embedded hub for Apache InLong DataProxy."""

import logging as _logging

from dataproxy._version import __version__
from dataproxy.client import BatchDelivery, Delivery, Producer, Stream
from dataproxy.client.stats import ProducerStats
from dataproxy.errors import (
    BufferFullError,
    ClosedError,
    ConfigError,
    DataProxyError,
    DeliveryError,
    DeliveryExpired,
    DeliveryFailed,
    DeliveryPending,
    DiscoveryError,
    FlushTimeout,
    ForkedError,
    InvalidMessageError,
    TransportError,
    UndeliveredError,
)
from dataproxy.outcomes import BatchDelivered, Delivered, DeliveryResult, Failure, Report

# A library stays quiet until the application configures logging.
_logging.getLogger("dataproxy").addHandler(_logging.NullHandler())

__all__ = [
    "BatchDelivered",
    "BatchDelivery",
    "BufferFullError",
    "ClosedError",
    "ConfigError",
    "DataProxyError",
    "Delivered",
    "Delivery",
    "DeliveryError",
    "DeliveryExpired",
    "DeliveryFailed",
    "DeliveryPending",
    "DeliveryResult",
    "DiscoveryError",
    "Failure",
    "FlushTimeout",
    "ForkedError",
    "InvalidMessageError",
    "Producer",
    "ProducerStats",
    "Report",
    "Stream",
    "TransportError",
    "UndeliveredError",
    "__version__",
]
