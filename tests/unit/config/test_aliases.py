"""Names of the official SDKs: every documented one is honoured or refused with a reason."""

import json
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
    assert len(caplog.records) == 24 - 8
    assert "argument: 'pack_size' is an option name of another SDK and means `batch_bytes`, bytes" in caplog.messages


def test_the_official_json_file(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"init-param": {"manager_url": "http://m:8083", "pack_timeout": 3000}}))
    config = load_producer_config(file=path, env={})
    assert (config.target, config.linger) == ("http://m:8083", 3.0)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"proxies": "a:1,b:2"}, {"target": "tcp://a:1,b:2"}),
        ({"inlong_group_ids": " g "}, {"group_id": "g"}),
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
        ({"inlong_group_ids": "a,b"}, "names several groups"),
        ({"enable_groupId_isolation": True}, "has no counterpart: make one Producer for each group"),
        ({"enable_retry": False}, "has no counterpart: failures are retried until delivery_timeout"),
        ({"maxInFlightSizeKb": -1}, "means no limit, which does not exist here; give buffer_bytes a size"),
        ({"pack_timeout": "soon"}, "'soon' is not a number"),
        ({"pack_timeout": True}, "True is not a number"),
        ({"BatchingMaxPublishDelay": 20000000}, "is a bare number, in Go nanoseconds"),
        ({"enable_zip": "maybe"}, "'maybe' is neither true nor false"),
        ({"pack_size": 4096, "batch_bytes": 8192}, "'pack_size' and 'batch_bytes' both set batch_bytes"),
        ({"need_auth": False, "auth_id": "a", "auth_key": "b"}, "both set manager_secret_id"),
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
    samples = [1, "1", "1s", True, False, "a"]
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
