"""Option names of the Java SDK: the fields of its configuration classes, whose setters are named after them."""

from __future__ import annotations

from typing import Final

from dataproxy.config.option import Alias, Refusal
from dataproxy.config.tables.conversions import as_is, cleared, first_group, java_type, only, size, switch, times
from dataproxy.config.tables.reasons import BUFFERS, JAVA, MAINTAINED, MS, NO_CACHE, ROUTING, STATISTICS, of, refuse

__all__ = ["JAVA_ALIASES", "JAVA_REFUSALS"]

_SDK: Final = (JAVA,)

_UNBOUNDED: Final = "means no limit, which does not exist here; give buffer_bytes a size"
_NO_COUNT: Final = "means no limit, which is the default here"
_ENCRYPTION: Final = (
    "bodies are not encrypted: that scheme is ECB without authentication, and today's Java SDK fails to start with it"
)
_BACKOFF: Final = "pauses grow from reconnect_backoff to reconnect_backoff_max"
_LENGTHS: Final = "the length of each body marks where it ends"
_ASKED_AGAIN: Final = "the Manager is asked again after discovery_interval"
_WORKERS: Final = "messages are sent in packs by the executors; nothing waits in a pool of workers"

JAVA_ALIASES: Final[tuple[Alias, ...]] = of(
    _SDK,
    Alias("managerAddress", as_is("target"), "`target`"),
    Alias("inlongGroupId", first_group, "`group_id`"),
    Alias(
        "enableMgrAuthz",
        cleared("manager_secret_id", "manager_secret_key"),
        "whether `mgrAuthSecretId` and `mgrAuthSecretKey` count",
        switches=("mgrAuthSecretId", "mgrAuthSecretKey"),
    ),
    Alias("mgrAuthSecretId", as_is("manager_secret_id"), "`manager_secret_id`"),
    Alias("mgrAuthSecretKey", as_is("manager_secret_key"), "`manager_secret_key`"),
    Alias("mgrSocketTimeoutMs", times("manager_timeout", MS), "`manager_timeout`, milliseconds"),
    Alias("mgrMetaSyncInrMin", times("discovery_interval", 60), "`discovery_interval`, minutes"),
    Alias("mgrMetaSyncInrMs", times("discovery_interval", MS), "`discovery_interval`, milliseconds"),
    Alias("nettyWorkerThreadNum", as_is("executors"), "`executors`"),
    Alias("aliveConnections", as_is("connections"), "`connections`"),
    Alias("connectTimeoutMs", times("connect_timeout", MS), "`connect_timeout`, milliseconds"),
    Alias("requestTimeoutMs", times("ack_timeout", MS), "`ack_timeout`, milliseconds"),
    Alias("sdkMsgType", java_type, "`message_type`, also by its name (`MSG_BIN_MULTI_BODY` is 7)"),
    Alias("enableDataCompress", switch("compression", "snappy", "none"), "`compression`: true is `snappy`"),
    Alias("minCompEnableLength", as_is("compression_min_bytes"), "`compression_min_bytes`, bytes"),
    Alias("maxInFlightReqCnt", size("buffer_messages", unlimited=_NO_COUNT), "`buffer_messages` (there: requests)"),
    Alias("maxInFlightSizeKb", size("buffer_bytes", 1024, unlimited=_UNBOUNDED), "`buffer_bytes`, KiB"),
    Alias("maxInFlightSizeInKb", size("buffer_bytes", 1024, unlimited=_UNBOUNDED), "`buffer_bytes`, KiB"),
    Alias("separateEventByLF", only(False, _LENGTHS), "false only"),
    Alias("enableReportAuthz", only(False, "heartbeats are not signed: no server checks it"), "false only"),
    Alias("enableReportEncrypt", only(False, _ENCRYPTION), "false only"),
    Alias("onlyUseLocalProxyConfig", only(False, NO_CACHE), "false only"),
    Alias("httpConTimeoutMs", times("connect_timeout", MS), "`connect_timeout`, milliseconds"),
    Alias("httpSocketTimeoutMs", times("ack_timeout", MS), "`ack_timeout`, milliseconds"),
    Alias("httpCloseWaitPeriodMs", times("close_timeout", MS), "`close_timeout`, milliseconds"),
)

JAVA_REFUSALS: Final[tuple[Refusal, ...]] = (
    *refuse(_SDK, "the address in target says it: http:// or https://", "visitMgrByHttps"),
    *refuse(_SDK, "TLS 1.2 and newer versions are used, the newest that both sides have", "tlsVersion"),
    *refuse(_SDK, "the Manager's answer for the group names its cluster", "regionName"),
    *refuse(_SDK, "manager_timeout bounds a whole request, with its connecting", "mgrConnTimeoutMs"),
    *refuse(_SDK, _ASKED_AGAIN, "metaSyncMaxRetryIfFail", "metaSyncWaitMsIfFail", "metaQueryMaxRetryIfFail"),
    *refuse(_SDK, _ASKED_AGAIN, "metaQueryWaitMsIfFail"),
    *refuse(_SDK, NO_CACHE, "metaStoreBasePath", "metaCacheExpiredMs", "metaQryFailCacheExpiredMs"),
    *refuse(_SDK, ROUTING, "forceReChooseInrMs"),
    *refuse(_SDK, BUFFERS, "maxMsgInFlightPerConn", "paddingSize"),
    *refuse(_SDK, "the kernel sizes the buffers of sockets", "rcvBufferSize", "sendBufferSize"),
    *refuse(_SDK, "set busy_poll, a time: executors look for so long before they sleep", "enableEpollBusyWait"),
    *refuse(_SDK, _BACKOFF, "frozenReconnectWaitMs", "busyReconnectWaitMs", "reconFailWaitMs"),
    *refuse(_SDK, "nothing waits for a connection that is given up: its frames go over others", "conCloseWaitPeriodMs"),
    *refuse(_SDK, MAINTAINED, "maxAllowedSyncMsgTimeoutCnt", "syncMsgTimeoutChkDurMs"),
    *refuse(_SDK, _ENCRYPTION, "setRptAuthzAndEncryptInfo", "rptRsaPubKeyUrl", "rptUserName", "rptSecretKey"),
    *refuse(_SDK, STATISTICS, "enableMetric", "metricOutIntvlMs", "metricOutWarnIntMs", "metricGroupId"),
    *refuse(_SDK, STATISTICS, "maskGroupId", "maskStreamId", "dateFormatIntvlMs"),
    *refuse(_SDK, "the address of the proxies decides", "rptDataByHttps"),
    *refuse(_SDK, _LENGTHS, "httpContentType", "httpEventsSeparator", "sepEventByLF"),
    *refuse(_SDK, "close delivers what was accepted, or reports it as failed", "discardHttpCacheWhenClosing"),
    *refuse(_SDK, _BACKOFF, "httpNodeReuseWaitIfFailMs"),
    *refuse(_SDK, _WORKERS, "httpAsyncRptWorkerNum", "httpAsyncWorkerIdleWaitMs"),
)
