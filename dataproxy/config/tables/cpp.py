"""Option names of the C++ SDK, of 2022 and of 2026, and of the Python SDK, which is made of the latter.

The pages of both SDKs still list the names of 2022, which today's code ignores; here they are understood.
"""

from __future__ import annotations

from typing import Final

from dataproxy.config.option import Alias, Refusal
from dataproxy.config.tables.conversions import as_is, cleared, first_group, one_of, only, size, switch, times
from dataproxy.config.tables.reasons import (
    ALWAYS_RETRIED,
    BUFFERS,
    BY_TIME,
    CPP_2022,
    CPP_2026,
    LOGGING,
    MAINTAINED,
    MS,
    NO_CACHE,
    PACKING,
    ROUTING,
    of,
    refuse,
)

__all__ = ["CPP_ALIASES", "CPP_REFUSALS"]

_BOTH: Final = (CPP_2022, CPP_2026)
_OLD: Final = (CPP_2022,)
_NEW: Final = (CPP_2026,)

_OWN_BUFFER: Final = "make one Producer for each group that needs buffers of its own"
_NODELAY: Final = "these SDKs turn Nagle's algorithm off whatever it says; the option here is nagle"
_CLUSTER: Final = "give the cluster's address as target"
_NO_CAP: Final = "the number of groups, streams and producers is not limited"
_AFFINITY: Final = "pin the process with taskset instead"
_MANAGER_LIST: Final = "the Manager's list of proxies is read in the form that getIpList has"


CPP_ALIASES: Final[tuple[Alias, ...]] = (
    *of(
        _BOTH,
        Alias(
            "inlong_group_ids",
            first_group,
            "`group_id`; of several groups the first, the others are `group_ids`, named in `send(..., group_id=...)`",
        ),
        Alias(
            "need_auth",
            cleared("manager_secret_id", "manager_secret_key"),
            "whether `auth_id` and `auth_key` count",
            switches=("auth_id", "auth_key"),
        ),
        Alias("auth_id", as_is("manager_secret_id"), "`manager_secret_id`"),
        Alias("auth_key", as_is("manager_secret_key"), "`manager_secret_key`"),
        Alias("msg_type", as_is("message_type"), "`message_type`"),
        Alias("enable_pack", switch("batch_messages", None, 1), "false means `batch_messages=1`; true changes nothing"),
        Alias("pack_size", size("batch_bytes"), "`batch_bytes`, bytes"),
        Alias("pack_timeout", times("linger", MS), "`linger`, milliseconds"),
        Alias(
            "enable_zip", switch("compression", "snappy", "none"), "`compression`: true is `snappy`, false is `none`"
        ),
        Alias("min_zip_len", as_is("compression_min_bytes"), "`compression_min_bytes`, bytes"),
    ),
    *of(
        _NEW,
        Alias("manager_url", as_is("target"), "`target`"),
        Alias("manager_update_interval", times("discovery_interval", 60), "`discovery_interval`, minutes"),
        Alias("manager_url_timeout", times("manager_timeout", 1), "`manager_timeout`, seconds"),
        Alias("per_groupid_thread_nums", as_is("executors"), "`executors`"),
        Alias("max_proxy_num", as_is("connections"), "`connections`"),
        Alias("max_tcp_num", as_is("connections"), "`connections`", newer="max_proxy_num"),
        Alias("recv_buf_size", size("buffer_bytes"), "`buffer_bytes`, bytes, of all groups together"),
        Alias("heart_beat_interval", times("heartbeat_interval", MS), "`heartbeat_interval`, milliseconds"),
        Alias("enable_balance", only(True, ROUTING), "true only"),
        Alias("enable_local_cache", only(False, NO_CACHE), "false only"),
        Alias("isolation_level", one_of((2, 3), _OWN_BUFFER), "2 and 3 only: groups of a cluster share connections"),
        Alias("extend_report", only(False, _MANAGER_LIST), "false only"),
    ),
    *of(
        _OLD,
        Alias("proxy_cfg_preurl", as_is("target"), "`target`", newer="manager_url"),
        Alias("bus_cfg_preurl", as_is("target"), "`target`", newer="proxy_cfg_preurl"),
        Alias(
            "proxy_update_interval",
            times("discovery_interval", 60),
            "`discovery_interval`, minutes",
            newer="manager_update_interval",
        ),
        Alias(
            "bus_update_interval",
            times("discovery_interval", 60),
            "`discovery_interval`, minutes",
            newer="proxy_update_interval",
        ),
        Alias(
            "proxy_url_timeout", times("manager_timeout", 1), "`manager_timeout`, seconds", newer="manager_url_timeout"
        ),
        Alias("bus_url_timeout", times("manager_timeout", 1), "`manager_timeout`, seconds", newer="proxy_url_timeout"),
        Alias("thread_num", as_is("executors"), "`executors`", newer="per_groupid_thread_nums"),
        Alias("max_active_proxy", as_is("connections"), "`connections`", newer="max_proxy_num"),
        Alias("max_active_bus", as_is("connections"), "`connections`", newer="max_active_proxy"),
        Alias("enable_groupId_isolation", only(False, _OWN_BUFFER), "false only"),
        Alias("enable_proxy_cfg_url", only(False, _CLUSTER), "false only"),
        Alias("retry_ms", times("ack_timeout", MS), "`ack_timeout`, milliseconds"),
        Alias("enable_retry", only(True, ALWAYS_RETRIED), "true only"),
        Alias("min_ziplen", as_is("compression_min_bytes"), "`compression_min_bytes`, bytes", newer="min_zip_len"),
        Alias("max_buf_pool", size("buffer_bytes"), "`buffer_bytes`, bytes", newer="recv_buf_size"),
        Alias("enable_hb", switch("heartbeat", "binary", "off"), "`heartbeat`: true is `binary`, false is `off`"),
        Alias(
            "hb_interval",
            times("heartbeat_interval", 1),
            "`heartbeat_interval`, seconds",
            newer="heart_beat_interval",
        ),
    ),
)

CPP_REFUSALS: Final[tuple[Refusal, ...]] = (
    *refuse(_BOTH, "the largest message follows from max_frame_bytes", "ext_pack_size"),
    *refuse(_BOTH, _NODELAY, "enable_tcp_nagle"),
    *refuse(_BOTH, "message_type and the attributes decide how items are laid out", "extend_field"),
    *refuse(_BOTH, LOGGING, "log_num", "log_size", "log_level", "log_path"),
    *refuse(_BOTH, "the local address is found automatically", "ser_ip"),
    *refuse(_BOTH, _AFFINITY, "enable_setaffinity", "mask_cpuaffinity"),
    *refuse(_NEW, "proxies see the port that the system gives a connection", "ser_port"),
    *refuse(_NEW, BUFFERS, "send_buf_size", "max_cache_num"),
    *refuse(_NEW, "messages are never copied into objects that could be used again", "enable_share_msg"),
    *refuse(_NEW, BY_TIME, "retry_times"),
    *refuse(_NEW, PACKING, "dispatch_interval_zip", "dispatch_interval_send"),
    *refuse(_NEW, ROUTING, "load_balance_interval", "proxy_repeat_times"),
    *refuse(_NEW, MAINTAINED, "tcp_idle_time", "tcp_detection_interval"),
    *refuse(_NEW, _NO_CAP, "max_group_id_num", "max_stream_id_num", "max_instance"),
    *refuse(_NEW, _CLUSTER, "manager_cluster_url", "enable_manager_url_from_cluster"),
    *refuse(_OLD, BUFFERS, "buffer_num_per_groupId", "shared_buf_num"),
    *refuse(_OLD, BY_TIME, "retry_num"),
    *refuse(_OLD, LOGGING, "log_file_type", "log_enable_limit"),
    *refuse(_OLD, _CLUSTER, "bus_cfg_url", "net_tag"),
    *refuse(_OLD, "give attributes to send(..., attrs=...)", "enable_from_dc"),
)
