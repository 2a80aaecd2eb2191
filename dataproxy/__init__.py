"""Native producer, Spark sink and embedded hub for Apache InLong DataProxy."""

from importlib import import_module as _import_module

from dataproxy._version import __version__

TYPE_CHECKING = False  # stands for typing's, whose import would cost more than this whole module
if TYPE_CHECKING:
    from dataproxy._core.consumer.pack import Pack, Record
    from dataproxy._core.producer.ingest.stream import Stream
    from dataproxy._core.producer.results.delivery import BatchDelivery, Delivery
    from dataproxy.consumer.asynchronous import AsyncConsumer
    from dataproxy.consumer.consumer import Consumer
    from dataproxy.consumer.inlong import InLongRecord, inlong_records
    from dataproxy.consumer.seen import SeenRecords
    from dataproxy.consumer.stats import ConsumerStats
    from dataproxy.errors import (
        BufferFullError,
        ClosedError,
        ConfigError,
        ConfirmError,
        DataProxyError,
        DeliveryDropped,
        DeliveryError,
        DeliveryExpired,
        DeliveryFailed,
        DeliveryPending,
        DiscoveryError,
        FlushTimeout,
        ForkedError,
        GroupRefusedError,
        InvalidMessageError,
        SeekError,
        TransportError,
        UndeliveredError,
    )
    from dataproxy.outcomes import (
        BatchDelivered,
        Delivered,
        DeliveryResult,
        Failure,
        Refusal,
        Report,
        Sent,
        Undelivered,
    )
    from dataproxy.producer.asynchronous import AsyncProducer
    from dataproxy.producer.producer import Producer
    from dataproxy.producer.stats import ProducerStats

__all__ = [
    "AsyncConsumer",
    "AsyncProducer",
    "BatchDelivered",
    "BatchDelivery",
    "BufferFullError",
    "ClosedError",
    "ConfigError",
    "ConfirmError",
    "Consumer",
    "ConsumerStats",
    "DataProxyError",
    "Delivered",
    "Delivery",
    "DeliveryDropped",
    "DeliveryError",
    "DeliveryExpired",
    "DeliveryFailed",
    "DeliveryPending",
    "DeliveryResult",
    "DiscoveryError",
    "Failure",
    "FlushTimeout",
    "ForkedError",
    "GroupRefusedError",
    "InLongRecord",
    "InvalidMessageError",
    "Pack",
    "Producer",
    "ProducerStats",
    "Record",
    "Refusal",
    "Report",
    "SeekError",
    "SeenRecords",
    "Sent",
    "Stream",
    "TransportError",
    "Undelivered",
    "UndeliveredError",
    "__version__",
    "inlong_records",
]

# Names are loaded on first use, so that programs that never send (the command line's help, a check of the
# configuration, a Spark driver that only plans) do not load the engine.
_HOMES = {
    "dataproxy._core.producer.results.delivery": ("BatchDelivery", "Delivery"),
    "dataproxy._core.producer.ingest.stream": ("Stream",),
    "dataproxy._core.consumer.pack": ("Pack", "Record"),
    "dataproxy.consumer.asynchronous": ("AsyncConsumer",),
    "dataproxy.consumer.consumer": ("Consumer",),
    "dataproxy.consumer.inlong": ("InLongRecord", "inlong_records"),
    "dataproxy.consumer.seen": ("SeenRecords",),
    "dataproxy.consumer.stats": ("ConsumerStats",),
    "dataproxy.producer.asynchronous": ("AsyncProducer",),
    "dataproxy.producer.producer": ("Producer",),
    "dataproxy.producer.stats": ("ProducerStats",),
    "dataproxy.outcomes": (
        "BatchDelivered",
        "Delivered",
        "DeliveryResult",
        "Failure",
        "Refusal",
        "Report",
        "Sent",
        "Undelivered",
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = frozenset({"client", "codes", "config", "errors", "hub", "observe", "outcomes", "testing", "types"})


def __getattr__(name: str) -> object:
    """Load a public name, or a module of the package, on first use."""
    if name in _MODULES:
        return _import_module(f"dataproxy.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'dataproxy' has no attribute {name!r}")
    try:
        home = _import_module(_HOME.get(name, "dataproxy.errors"))
    except ImportError as error:
        from dataproxy._core import explained

        raise explained(error) from error
    value: object = getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
