"""Names of the official SDKs: every one is honoured, or has no counterpart and says why."""

import logging

import pytest

from dataproxy.config import PRODUCER, load_producer_config
from dataproxy.errors import ConfigError

TARGET = "tcp://h:1"

# The table of the official Python SDK's README with its default values.
README = {
    "thread_num": 10,
    "inlong_group_ids": "",
    "enable_groupId_isolation": False,
    "buffer_num_per_groupId": 5,
    "enable_pack": True,
    "pack_size": 4096,
    "ext_pack_size": 16384,
    "enable_zip": True,
    "min_ziplen": 512,
    "enable_retry": True,
    "retry_ms": 3000,
    "retry_num": 3,
    "max_active_proxy": 3,
    "max_buf_pool": 50 * 1024 * 1024,
    "log_num": 10,
    "log_size": 10,
    "log_level": 2,
    "log_file_type": 2,
    "log_path": "./logs/",
    "proxy_update_interval": 10,
    "manager_url": "http://127.0.0.1:8083/inlong/manager/openapi/dataproxy/getIpList",
    "need_auth": False,
    "auth_id": "",
    "auth_key": "",
}
HONOURED = {
    "executors": 10,
    "batch_bytes": 4096,
    "compression": "snappy",
    "compression_min_bytes": 512,
    "ack_timeout": 3.0,
    "connections": 3,
    "buffer_bytes": 52428800,
    "discovery_interval": 600.0,
    "target": README["manager_url"],
    "group_id": "",
    "manager_secret_id": "",
    "manager_secret_key": "",
}


def test_all_of_the_readme(caplog):
    assert len(README) == 24
    with pytest.raises(ConfigError) as caught:
        load_producer_config(env={}, **README)
    refused = [name for name in README if name.lower() in PRODUCER.by_refusal]
    assert len(refused) == 8
    for name in refused:
        assert f"'{name}' has no counterpart here: " in str(caught.value)
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="dataproxy.config"):
        config = load_producer_config(env={}, **{name: README[name] for name in README if name not in refused})
    assert {name: getattr(config, name) for name in HONOURED} == HONOURED
    assert len(caplog.records) == 24 - 8 - 2  # need_auth is false: auth_id and auth_key do not count
    assert "argument: 'pack_size' is an option name of another SDK and means `batch_bytes`, bytes" in caplog.messages


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"proxies": "a:1,b:2"}, {"target": "tcp://a:1,b:2"}),
        ({"inlong_group_ids": " g "}, {"group_id": "g"}),
        ({"inlong_group_ids": "g1, g2,g1"}, {"group_id": "g1", "group_ids": ("g2",)}),
        ({"inlong_group_ids": ["a", "b"]}, {"group_id": "a", "group_ids": ("b",)}),
        ({"GroupID": "g"}, {"group_id": "g"}),
        ({"heart_beat_interval": 60000}, {"heartbeat_interval": 60.0}),
        ({"hb_interval": "60"}, {"heartbeat_interval": 60.0}),
        ({"enable_hb": False}, {"heartbeat": "off"}),
        ({"enable_pack": False}, {"batch_messages": 1}),
        ({"enable_zip": "false"}, {"compression": "none"}),
        ({"enableDataCompress": True}, {"compression": "snappy"}),
        ({"manager_update_interval": 2}, {"discovery_interval": 120.0}),
        ({"manager_url_timeout": 5}, {"manager_timeout": 5.0}),
        ({"maxInFlightSizeKb": 64}, {"buffer_bytes": 65536}),
        ({"requestTimeoutMs": 10000}, {"ack_timeout": 10.0}),
        ({"connectTimeoutMs": 8000}, {"connect_timeout": 8.0}),
        ({"BatchingMaxPublishDelay": "20ms"}, {"linger": 0.02}),
        ({"BlockIfQueueIsFull": False}, {"on_full": "raise"}),
        ({"MaxPendingMessages": 204800}, {"buffer_messages": 204800}),
        ({"need_auth": True, "auth_id": "a", "auth_key": "b"}, {"manager_secret_id": "a", "manager_secret_key": "b"}),
        (
            {"need_auth": False, "auth_id": "****", "auth_key": "****"},
            {"manager_secret_id": "", "manager_secret_key": ""},
        ),
        (
            {"enableMgrAuthz": False, "mgrAuthSecretId": "a", "mgrAuthSecretKey": "b"},
            {"manager_secret_id": "", "manager_secret_key": ""},
        ),
        ({"isolation_level": 3, "extend_report": False, "enable_local_cache": False}, {"connections": 0}),
        ({"thread_num": 4, "per_groupid_thread_nums": None}, {"executors": 4}),
        ({"sdkMsgType": "MSG_MULTI_BODY"}, {"message_type": 5}),
        ({"sdkMsgType": 7}, {"message_type": 7}),
        ({"maxInFlightReqCnt": 1000}, {"buffer_messages": 1000}),
        ({"mgrMetaSyncInrMin": 3}, {"discovery_interval": 180.0}),
        ({"httpCloseWaitPeriodMs": 20000}, {"close_timeout": 20.0}),
        ({"PACK_SIZE": 4096}, {"batch_bytes": 4096}),
        ({"pack_size": None}, {"batch_bytes": 256 << 10}),
        ({"pack_size": 4096, "batch_bytes": 4096}, {"batch_bytes": 4096}),
    ],
)
def test_honoured(given, expected):
    config = load_producer_config(None if "proxies" in given else TARGET, env={}, **given)
    assert {name: getattr(config, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"thread_num": 10, "per_groupid_thread_nums": 1}, "'thread_num' is the old name of 'per_groupid_thread_nums'"),
        ({"isolation_level": 1}, "1 has no counterpart: make one Producer for each group"),
        ({"enable_tcp_nagle": True}, "these SDKs turn Nagle's algorithm off whatever it says"),
        ({"maxInFlightReqCnt": -1}, "means no limit, which is the default here"),
        ({"enableReportEncrypt": True}, "bodies are not encrypted"),
        ({"enable_groupId_isolation": True}, "has no counterpart: make one Producer for each group"),
        ({"enable_retry": False}, "has no counterpart: failures are retried until delivery_timeout"),
        ({"maxInFlightSizeKb": -1}, "means no limit, which does not exist here; give buffer_bytes a size"),
        ({"pack_timeout": "soon"}, "'soon' is not a number"),
        ({"pack_timeout": True}, "True is not a number"),
        ({"BatchingMaxPublishDelay": 20000000}, "is a bare number, in Go nanoseconds"),
        ({"enable_zip": "maybe"}, "'maybe' is neither true nor false"),
        ({"pack_size": 4096, "batch_bytes": 8192}, "'pack_size' and 'batch_bytes' both set batch_bytes"),
        ({"pack_size": 4096, "BatchingMaxSize": 8192}, "'pack_size' and 'BatchingMaxSize' both set batch_bytes"),
        ({"retry_times": 3}, "'retry_times' has no counterpart here: retries are limited by time"),
        ({"log_level": 2}, "logs go to the logger 'dataproxy'"),
        ({"thread_num": 100}, "option executors (argument): 100 is too large"),
        ({"pack_timeout": 70000}, "option linger (argument): 70.0 is too large"),
    ],
)
def test_refused(given, message):
    with pytest.raises(ConfigError) as caught:
        load_producer_config(TARGET, env={}, **given)
    assert message in str(caught.value)


def test_every_alias_lands_on_an_option():
    samples = [1, 2, "1", "1s", True, False, "a"]
    for alias in PRODUCER.aliases:
        landed = 0
        for sample in samples:
            try:
                given = alias.convert(sample)
            except ValueError:
                continue
            landed += 1
            assert set(given) <= set(PRODUCER.by_name)
        assert landed, alias.name


def test_every_name_says_where_it_comes_from():
    for entry in (*PRODUCER.aliases, *PRODUCER.refusals):
        assert set(entry.sdks) <= {"C++ 2022", "C++ 2026 and Python", "Java", "Go"}, entry.name
        assert entry.sdks or entry.name == "proxies", entry.name


def test_no_name_stands_for_two_things():
    names = [entry.name.lower() for entry in (*PRODUCER.aliases, *PRODUCER.refusals)]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("alias", [alias for alias in PRODUCER.aliases if alias.newer], ids=lambda alias: alias.name)
def test_a_newer_name_is_one_of_the_table(alias):
    assert alias.newer.lower() in PRODUCER.by_alias


def test_where_a_name_of_java_or_go_is_misspelt_the_nearest_is_told():
    with pytest.raises(ConfigError, match="did you mean 'BatchingMaxMessages'"):
        load_producer_config(TARGET, env={}, BatchingMaxMesages=7)
