"""Option names of TubeMQ's own consumers, in Java and C++: the names that the setters of their configurations have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dataproxy.config.option import Alias, Refusal
from dataproxy.config.tables.conversions import as_is, cleared, only, times
from dataproxy.config.tables.reasons import MS, of, refuse

__all__ = ["TUBEMQ_ALIASES", "TUBEMQ_CPP", "TUBEMQ_JAVA", "TUBEMQ_REFUSALS"]

TUBEMQ_JAVA: Final = "TubeMQ Java"
TUBEMQ_CPP: Final = "TubeMQ C++"

_BOTH: Final = (TUBEMQ_JAVA, TUBEMQ_CPP)
_JAVA: Final = (TUBEMQ_JAVA,)
_CPP: Final = (TUBEMQ_CPP,)

#: Positions by number and by name; C++ misspells its last one.
_STARTS: Final = {
    "-1": "earliest",
    "CONSUMER_FROM_FIRST_OFFSET": "earliest",
    "KCONSUMEFROMFIRSTOFFSET": "earliest",
    "0": "latest",
    "CONSUMER_FROM_LATEST_OFFSET": "latest",
    "KCONSUMEFROMLATESTOFFSET": "latest",
    "1": "end",
    "CONSUMER_FROM_MAX_OFFSET_ALWAYS": "end",
    "KCOMSUMEFROMMAXOFFSETALWAYS": "end",
}

_ASKED_ON: Final = "masters are asked until one answers, after growing pauses: set master_retry_max"
_ROLLED_BACK: Final = "a pack without a confirm is always delivered again"
_CONFIRMED: Final = "a confirm is told to the broker, so that its pack does not come again"
_READERS: Final = "there are no listeners: the application asks for packs, in as many threads as it likes"
_BYTES: Final = "one option bounds all memory: prefetch_bytes"
_CARE: Final = "connections that fail are replaced, whatever their number"
_STORES: Final = "PEM files are read, no trust stores: convert it, then give tls_ca"
_WAITS: Final = "the call that asks for a pack says how long it waits"


def _start(value: Any) -> Mapping[str, Any]:
    """Return the start that a position means: its number, its name, or the constant of the Python client."""
    word = str(getattr(value, "value", value)).strip().upper()
    if word not in _STARTS:
        raise ValueError("is not a position; give -1, 0 or 1")
    return {"start": _STARTS[word]}


def _masters(value: Any) -> Mapping[str, Any]:
    text = str(value).strip()
    return {"target": value if isinstance(value, (list, tuple)) or "://" in text else f"tubemq://{text}"}


#: Names that are accepted.
TUBEMQ_ALIASES: Final[tuple[Alias, ...]] = (
    *of(
        _BOTH,
        Alias("masterAddrInfo", _masters, "`target` (`tubemq://` is put in front)"),
        Alias("consumePosition", _start, "`start`: -1 is `earliest`, 0 is `latest`, 1 is `end`"),
        Alias("heartbeatPeriodMs", times("heartbeat_interval", MS), "`heartbeat_interval`, milliseconds"),
        Alias("msgNotFoundWaitPeriodMs", times("not_found_wait", MS), "`not_found_wait`, milliseconds"),
        Alias("usrName", as_is("user"), "`user`"),
        Alias("usrPassWord", as_is("password"), "`password`"),
    ),
    *of(
        _JAVA,
        Alias("consumerGroup", as_is("group"), "`group`"),
        Alias("consumeModel", _start, "`start`: -1 is `earliest`, 0 is `latest`, 1 is `end`"),
        Alias("rpcTimeoutMs", times("call_timeout", MS), "`call_timeout`, milliseconds"),
        Alias("heartbeatPeriodAfterFail", times("master_retry_max", MS), "`master_retry_max`, milliseconds"),
        Alias("pullRebConfirmWaitPeriodMs", times("release_wait", MS), "`release_wait`, milliseconds"),
        Alias("pullProtectConfirmTimeoutMs", times("confirm_timeout", MS), "`confirm_timeout`, milliseconds"),
        Alias("shutDownRebalanceWaitPeriodMs", times("close_timeout", MS), "`close_timeout`, milliseconds"),
        Alias("pullRebConfirmTimeoutRollBack", only(True, _ROLLED_BACK), "true only"),
        Alias("pullConfirmInLocal", only(False, _CONFIRMED), "false only"),
        Alias(
            "needAuthentic",
            cleared("user", "password"),
            "whether `usrName` and `usrPassWord` count",
            switches=("usrName", "usrPassWord"),
        ),
    ),
    *of(
        _CPP,
        Alias("groupName", as_is("group"), "`group`"),
        Alias("rpcReadTimeoutMs", times("call_timeout", MS), "`call_timeout`, milliseconds"),
        Alias("heartbeatPeriodAftFailMs", times("master_retry_max", MS), "`master_retry_max`, milliseconds"),
        Alias("waitPeriodIfConfirmWaitRebalanceMs", times("release_wait", MS), "`release_wait`, milliseconds"),
        Alias("maxConfirmWaitPeriodMs", times("confirm_timeout", MS), "`confirm_timeout`, milliseconds"),
        Alias("shutdownRebWaitPeriodMs", times("close_timeout", MS), "`close_timeout`, milliseconds"),
        Alias("rollbackIfConfirmTimeout", only(True, _ROLLED_BACK), "true only"),
    ),
)

#: Names that have no counterpart, with the reason.
TUBEMQ_REFUSALS: Final[tuple[Refusal, ...]] = (
    *refuse(_BOTH, _ASKED_ON, "maxHeartBeatRetryTimes"),
    *refuse(_BOTH, _STORES, "trustStorePath", "trustStorePassword"),
    *refuse(_JAVA, _ASKED_ON, "maxRegisterRetryTimes", "regFailWaitPeriodMs"),
    *refuse(_JAVA, "every sixth heartbeat lists all partitions", "maxSubInfoReportIntvlTimes"),
    *refuse(_CPP, "every sixth heartbeat lists all partitions", "maxSubinfoReportIntvl"),
    *refuse(_JAVA, _WAITS, "pullConsumeReadyWaitPeriodMs", "pullConsumeReadyChkSliceMs"),
    *refuse(_CPP, _WAITS, "maxPartCheckPeriodMs", "partCheckSliceMs"),
    *refuse(_JAVA, _READERS, "pushFetchThreadCnt", "pushListenerWaitPeriodMs", "pushListenerWaitTimeoutRollBack"),
    *refuse(_JAVA, _READERS, "pushListenerThrowedRollBack"),
    *refuse(_JAVA, "a master is asked every ten seconds", "partMetaInfoCheckPeriodMs"),
    *refuse(_JAVA, _BYTES, "rpcNettyWorkMemorySize", "nettyWriteBufferHighWaterMark", "nettyWriteBufferLowWaterMark"),
    *refuse(_JAVA, "there is no pool of workers for calls", "rpcConnProcessorCnt", "rpcRspCallBackThreadCnt"),
    *refuse(_JAVA, _CARE, "linkStatsDurationMs", "linkStatsForbiddenDurationMs", "linkStatsMaxAllowedFailTimes"),
    *refuse(_JAVA, _CARE, "linkStatsMaxForbiddenRate", "unAvailableFbdDurationMs"),
)
