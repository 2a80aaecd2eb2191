"""Option names of the official SDKs: what they stand for here, or why they have no counterpart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from dataproxy.config.option import Alias, Refusal
from dataproxy.config.units import parse_duration, parse_size

__all__ = ["PRODUCER_ALIASES", "PRODUCER_REFUSALS"]

_Convert = Callable[[Any], Mapping[str, Any]]


def _as_is(native: str) -> _Convert:
    return lambda value: {native: value}


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise ValueError("is not a number")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError("is not a number") from None
    except OverflowError:
        raise ValueError("is too large") from None


def _times(native: str, scale: float) -> _Convert:
    return lambda value: {native: _number(value) * scale}


def _bytes(native: str, scale: int = 1) -> _Convert:
    def convert(value: Any) -> Mapping[str, Any]:
        number = _number(value)
        if number <= 0:
            raise ValueError(f"means no limit, which does not exist here; give {native} a size")
        return {native: parse_size(number * scale)}

    return convert


def _flag(value: Any) -> bool:
    word = str(value).strip().lower()
    if word in ("true", "1"):
        return True
    if word in ("false", "0"):
        return False
    raise ValueError("is neither true nor false")


def _switch(native: str, on: Any, off: Any) -> _Convert:
    return lambda value: {native: on if _flag(value) else off}


def _only(expected: bool, reason: str) -> _Convert:
    """Accept only the value that describes the fixed behaviour of this package."""

    def convert(value: Any) -> Mapping[str, Any]:
        if _flag(value) is not expected:
            raise ValueError(f"has no counterpart: {reason}")
        return {}

    return convert


def _one_group(value: Any) -> Mapping[str, Any]:
    groups = [part.strip() for part in str(value).split(",") if part.strip()]
    if len(groups) > 1:
        raise ValueError("names several groups; one producer can send to any group: give it in send(..., group_id=...)")
    return {"group_id": groups[0] if groups else ""}


def _proxies(value: Any) -> Mapping[str, Any]:
    if isinstance(value, (list, tuple)):
        return {"target": value}
    text = str(value).strip()
    return {"target": text if "://" in text else f"tcp://{text}"}


def _need_auth(value: Any) -> Mapping[str, Any]:
    return {} if _flag(value) else {"manager_secret_id": "", "manager_secret_key": ""}


def _unpacked(value: Any) -> Mapping[str, Any]:
    return {} if _flag(value) else {"batch_messages": 1}


def _go_duration(native: str) -> _Convert:
    def convert(value: Any) -> Mapping[str, Any]:
        if not isinstance(value, str):
            raise ValueError("is a bare number, in Go nanoseconds; write a unit, e.g. '20ms'")
        return {native: parse_duration(value)}

    return convert


_MS: Final = 1e-3
_ALWAYS_RETRIED: Final = "failures are retried until delivery_timeout; for an earlier end lower delivery_timeout"
_NO_CACHE: Final = "there is no cache file; the last list is kept in memory while the Manager is away"
_LOGGING: Final = "logs go to the logger 'dataproxy' of Python's logging module; configure it there"
_BUFFERS: Final = "one option bounds all memory: buffer_bytes"
_BY_TIME: Final = "retries are limited by time, not by number: set delivery_timeout"
_MAINTAINED: Final = "heartbeats check connections: set heartbeat_interval and heartbeat_retries"
_ROUTING: Final = "connections are chosen by their waiting bytes and by the load that their proxy reports"
_PACKING: Final = "batch_bytes, batch_messages and linger decide when a pack is sent"
_METRICS: Final = "call Producer.stats() for statistics"
_NO_CAP: Final = "the number of groups and streams is not limited"

#: Names that are accepted, by SDK: C++ (2022 and 2026) and Python, Java, Go.
PRODUCER_ALIASES: Final[tuple[Alias, ...]] = (
    # C++ and Python
    Alias("inlong_group_ids", _one_group, "`group_id` (one group)"),
    Alias("manager_url", _as_is("target"), "`target`"),
    Alias("proxy_cfg_preurl", _as_is("target"), "`target`"),
    Alias("proxies", _proxies, "`target` (`tcp://` is put in front)"),
    Alias("manager_update_interval", _times("discovery_interval", 60), "`discovery_interval`, minutes"),
    Alias("proxy_update_interval", _times("discovery_interval", 60), "`discovery_interval`, minutes"),
    Alias("manager_url_timeout", _times("manager_timeout", 1), "`manager_timeout`, seconds"),
    Alias("proxy_url_timeout", _times("manager_timeout", 1), "`manager_timeout`, seconds"),
    Alias("need_auth", _need_auth, "false clears `manager_secret_id` and `manager_secret_key`; true changes nothing"),
    Alias("auth_id", _as_is("manager_secret_id"), "`manager_secret_id`"),
    Alias("auth_key", _as_is("manager_secret_key"), "`manager_secret_key`"),
    Alias("thread_num", _as_is("executors"), "`executors`"),
    Alias("per_groupid_thread_nums", _as_is("executors"), "`executors`"),
    Alias("max_active_proxy", _as_is("connections"), "`connections`"),
    Alias("max_proxy_num", _as_is("connections"), "`connections`"),
    Alias("enable_groupId_isolation", _only(False, "make one Producer for each group"), "false only"),
    Alias("retry_ms", _times("ack_timeout", _MS), "`ack_timeout`, milliseconds"),
    Alias("enable_retry", _only(True, _ALWAYS_RETRIED), "true only"),
    Alias("msg_type", _as_is("message_type"), "`message_type`"),
    Alias("enable_pack", _unpacked, "false means `batch_messages=1`; true changes nothing"),
    Alias("pack_size", _bytes("batch_bytes"), "`batch_bytes`, bytes"),
    Alias("pack_timeout", _times("linger", _MS), "`linger`, milliseconds"),
    Alias("enable_zip", _switch("compression", "snappy", "none"), "`compression`: true is `snappy`, false is `none`"),
    Alias("min_zip_len", _as_is("compression_min_bytes"), "`compression_min_bytes`, bytes"),
    Alias("min_ziplen", _as_is("compression_min_bytes"), "`compression_min_bytes`, bytes"),
    Alias("max_buf_pool", _bytes("buffer_bytes"), "`buffer_bytes`, bytes"),
    Alias("recv_buf_size", _bytes("buffer_bytes"), "`buffer_bytes`, bytes"),
    Alias("enable_hb", _switch("heartbeat", "binary", "off"), "`heartbeat`: true is `binary`, false is `off`"),
    Alias("hb_interval", _times("heartbeat_interval", 1), "`heartbeat_interval`, seconds"),
    Alias("heart_beat_interval", _times("heartbeat_interval", _MS), "`heartbeat_interval`, milliseconds"),
    Alias("enable_tcp_nagle", _as_is("nagle"), "`nagle`"),
    Alias("enable_balance", _only(True, _ROUTING), "true only"),
    # Java
    Alias("managerAddress", _as_is("target"), "`target`"),
    Alias("mgrMetaSyncInrMin", _times("discovery_interval", 60), "`discovery_interval`, minutes"),
    Alias("nettyWorkerThreadNum", _as_is("executors"), "`executors`"),
    Alias("aliveConnections", _as_is("connections"), "`connections`"),
    Alias("connectTimeoutMs", _times("connect_timeout", _MS), "`connect_timeout`, milliseconds"),
    Alias("requestTimeoutMs", _times("ack_timeout", _MS), "`ack_timeout`, milliseconds"),
    Alias("sdkMsgType", _as_is("message_type"), "`message_type`"),
    Alias("enableDataCompress", _switch("compression", "snappy", "none"), "`compression`: true is `snappy`"),
    Alias("minCompEnableLength", _as_is("compression_min_bytes"), "`compression_min_bytes`, bytes"),
    Alias("maxInFlightSizeKb", _bytes("buffer_bytes", 1024), "`buffer_bytes`, KiB"),
    # Go
    Alias("GroupID", _one_group, "`group_id`"),
    Alias("URL", _as_is("target"), "`target`"),
    Alias("UpdateInterval", _go_duration("discovery_interval"), "`discovery_interval`, with a unit"),
    Alias("WorkerNum", _as_is("executors"), "`executors`"),
    Alias("ConnTimeout", _go_duration("connect_timeout"), "`connect_timeout`, with a unit"),
    Alias("SendTimeout", _go_duration("ack_timeout"), "`ack_timeout`, with a unit"),
    Alias("RetryInitialInterval", _go_duration("retry_backoff"), "`retry_backoff`, with a unit"),
    Alias("RetryOnServerError", _only(True, _ALWAYS_RETRIED), "true only"),
    Alias("BatchingMaxMessages", _as_is("batch_messages"), "`batch_messages`"),
    Alias("BatchingMaxSize", _bytes("batch_bytes"), "`batch_bytes`, bytes"),
    Alias("BatchingMaxPublishDelay", _go_duration("linger"), "`linger`, with a unit"),
    Alias("MaxPendingMessages", _as_is("buffer_messages"), "`buffer_messages` (there: for each worker)"),
    Alias("BlockIfQueueIsFull", _switch("on_full", "block", "raise"), "`on_full`: true is `block`, false is `raise`"),
)


def _refuse(reason: str, *names: str) -> tuple[Refusal, ...]:
    return tuple(Refusal(name, reason) for name in names)


#: Names that are refused, with the reason.
PRODUCER_REFUSALS: Final[tuple[Refusal, ...]] = (
    *_refuse(_BUFFERS, "buffer_num_per_groupId", "shared_buf_num", "send_buf_size", "max_cache_num"),
    *_refuse(_BUFFERS, "maxInFlightReqCnt", "maxMsgInFlightPerConn", "paddingSize"),
    *_refuse("make one Producer for each group that needs buffers of its own", "isolation_level"),
    *_refuse(_BY_TIME, "retry_num", "retry_times", "MaxRetries"),
    *_refuse("the largest message follows from max_frame_bytes", "ext_pack_size"),
    *_refuse("message_type and the attributes decide how items are laid out", "extend_field"),
    *_refuse("the length of each body marks where it ends", "separateEventByLF"),
    *_refuse(_PACKING, "dispatch_interval_zip", "dispatch_interval_send"),
    *_refuse(_ROUTING, "load_balance_interval", "forceReChooseInrMs", "proxy_repeat_times"),
    *_refuse(_MAINTAINED, "tcp_idle_time", "tcp_detection_interval", "MaxConnLifetime"),
    *_refuse(_NO_CACHE, "enable_local_cache", "metaStoreBasePath", "metaCacheExpiredMs", "onlyUseLocalProxyConfig"),
    *_refuse(_NO_CACHE, "metaQryFailCacheExpiredMs"),
    *_refuse(
        "the Manager is asked again after discovery_interval", "metaSyncMaxRetryIfFail", "metaQueryMaxRetryIfFail"
    ),
    *_refuse(_LOGGING, "log_num", "log_size", "log_level", "log_file_type", "log_path", "log_enable_limit", "Logger"),
    *_refuse("give the cluster's address as target", "enable_proxy_cfg_url", "bus_cfg_url", "extend_report"),
    *_refuse("the local address is found automatically", "ser_ip", "ser_port"),
    *_refuse("pin the process with taskset instead", "enable_setaffinity", "mask_cpuaffinity"),
    *_refuse("set busy_poll, a time: executors look for so long before they sleep", "enableEpollBusyWait"),
    *_refuse(_NO_CAP, "max_group_id_num", "max_stream_id_num", "max_instance"),
    *_refuse("give attributes to send(..., attrs=...)", "enable_from_dc", "AddColumns"),
    *_refuse("give manager_secret_id and manager_secret_key", "Auth"),
    *_refuse(_METRICS, "MetricsName", "MetricsRegistry"),
    *_refuse("bodies are not encrypted", "setRptAuthzAndEncryptInfo"),
)
