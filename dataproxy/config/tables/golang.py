"""Option names of the Go SDK: the fields of its ``Options``, which ``With...`` functions set."""

from __future__ import annotations

from typing import Final

from dataproxy.config.option import Alias, Refusal
from dataproxy.config.tables.conversions import as_is, first_group, go_duration, only, size, switch
from dataproxy.config.tables.reasons import (
    ALWAYS_RETRIED,
    BUFFERS,
    BY_TIME,
    GO,
    LOGGING,
    MAINTAINED,
    STATISTICS,
    of,
    refuse,
)

__all__ = ["GO_ALIASES", "GO_REFUSALS"]

_SDK: Final = (GO,)

GO_ALIASES: Final[tuple[Alias, ...]] = of(
    _SDK,
    Alias("GroupID", first_group, "`group_id`"),
    Alias("URL", as_is("target"), "`target`"),
    Alias("UpdateInterval", go_duration("discovery_interval"), "`discovery_interval`, with a unit"),
    Alias("WorkerNum", as_is("executors"), "`executors`"),
    Alias("ConnTimeout", go_duration("connect_timeout"), "`connect_timeout`, with a unit"),
    Alias("SendTimeout", go_duration("ack_timeout"), "`ack_timeout`, with a unit"),
    Alias("RetryInitialInterval", go_duration("retry_backoff"), "`retry_backoff`, with a unit"),
    Alias("RetryOnServerError", only(True, ALWAYS_RETRIED), "true only"),
    Alias("BatchingMaxMessages", as_is("batch_messages"), "`batch_messages`"),
    Alias("BatchingMaxSize", size("batch_bytes"), "`batch_bytes`, bytes"),
    Alias("BatchingMaxPublishDelay", go_duration("linger"), "`linger`, with a unit"),
    Alias("MaxPendingMessages", as_is("buffer_messages"), "`buffer_messages` (there: for each worker)"),
    Alias("BlockIfQueueIsFull", switch("on_full", "block", "raise"), "`on_full`: true is `block`, false is `raise`"),
)

GO_REFUSALS: Final[tuple[Refusal, ...]] = (
    *refuse(_SDK, BY_TIME, "MaxRetries"),
    *refuse(_SDK, MAINTAINED, "MaxConnLifetime"),
    *refuse(_SDK, BUFFERS, "WriteBufferSize", "ReadBufferSize", "BufferPool", "BytePool"),
    *refuse(_SDK, BUFFERS, "BufferPoolSize", "BytePoolSize", "BytePoolWidth"),
    *refuse(_SDK, "the kernel sizes the buffers of sockets", "SocketSendBufferSize", "SocketRecvBufferSize"),
    *refuse(_SDK, LOGGING, "Logger"),
    *refuse(_SDK, STATISTICS, "MetricsName", "MetricsRegistry"),
    *refuse(_SDK, "give attributes to send(..., attrs=...)", "AddColumns"),
    *refuse(_SDK, "give manager_secret_id and manager_secret_key", "Auth"),
)
