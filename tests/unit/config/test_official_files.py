"""Configuration files of the official SDKs are loaded as they are; what has no counterpart is one warning each."""

import json
import logging

import pytest

from dataproxy.config import PRODUCER, load_producer_config
from dataproxy.errors import ConfigError

MANAGER = "http://127.0.0.1:8083/inlong/manager/openapi/dataproxy/getIpList"

# What the example of the Python SDK sets; that of the C++ SDK differs in the four entries below.
PYTHON = {
    "inlong_group_ids": "test_pulsar_group",
    "manager_url": MANAGER,
    "manager_update_interval": 2,
    "manager_url_timeout": 5,
    "msg_type": 7,
    "max_proxy_num": 8,
    "per_groupid_thread_nums": 1,
    "dispatch_interval_zip": 8,
    "dispatch_interval_send": 10,
    "recv_buf_size": 10240000,
    "send_buf_size": 10240000,
    "enable_pack": True,
    "pack_size": 409600,
    "pack_timeout": 3000,
    "ext_pack_size": 409600,
    "enable_zip": True,
    "min_zip_len": 512,
    "tcp_detection_interval": 60000,
    "tcp_idle_time": 600000,
    "log_num": 10,
    "log_size": 104857600,
    "log_level": 3,
    "log_path": "./",
    "need_auth": False,
    "auth_id": "",
    "auth_key": "",
}
CPP = {**PYTHON, "inlong_group_ids": "b_test_01, b_test_02", "log_size": 10, "auth_id": "****", "auth_key": "****"}
# The names of 2022, as the example of that time has them.
CPP_2022 = {
    "thread_num": 5,
    "inlong_group_ids": "b_test",
    "enable_groupId_isolation": True,
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
    "max_buf_pool": 548576000,
    "log_num": 10,
    "log_size": 100,
    "log_level": 2,
    "log_file_type": 2,
    "log_path": "./sdklogs/",
    "proxy_update_interval": 10,
    "proxy_cfg_preurl": MANAGER,
    "need_auth": False,
    "auth_id": "****",
    "auth_key": "****",
}
LEFT_OUT_2026 = {
    "dispatch_interval_zip", "dispatch_interval_send", "send_buf_size", "ext_pack_size", "tcp_detection_interval",
    "tcp_idle_time", "log_num", "log_size", "log_level", "log_path",
}  # fmt: skip
LEFT_OUT_2022 = {
    "enable_groupId_isolation", "buffer_num_per_groupId", "ext_pack_size", "retry_num", "log_num", "log_size",
    "log_level", "log_file_type", "log_path",
}  # fmt: skip


def written(folder, values):
    path = folder / "config_example.json"
    path.write_text(json.dumps({"init-param": values}))
    return path


@pytest.mark.parametrize(
    ("values", "left_out", "expected"),
    [
        (
            PYTHON,
            LEFT_OUT_2026,
            {
                "target": MANAGER,
                "group_id": "test_pulsar_group",
                "discovery_interval": 120.0,
                "manager_timeout": 5.0,
                "message_type": 7,
                "connections": 8,
                "executors": 1,
                "buffer_bytes": 10240000,
                "batch_bytes": 409600,
                "linger": 3.0,
                "compression": "snappy",
                "compression_min_bytes": 512,
            },
        ),
        (CPP, LEFT_OUT_2026, {"group_id": "b_test_01", "manager_secret_id": "", "manager_secret_key": ""}),
        (
            CPP_2022,
            LEFT_OUT_2022,
            {
                "executors": 5,
                "connections": 3,
                "ack_timeout": 3.0,
                "buffer_bytes": 548576000,
                "discovery_interval": 600,
            },
        ),
    ],
    ids=["Python", "C++", "C++ 2022"],
)
def test_an_example_is_loaded_as_it_is(values, left_out, expected, tmp_path, caplog):
    path = written(tmp_path, values)
    with caplog.at_level(logging.WARNING, logger="dataproxy.config"):
        config = load_producer_config(file=path, env={})
    assert {name: getattr(config, name) for name in expected} == expected
    told = [message for message in caplog.messages if message.endswith("; it is left out")]
    assert {message.split("'")[1] for message in told} == left_out
    assert len(told) == len(left_out)
    assert all(message.startswith(f"file {path}: '") for message in told)
    assert any("logs go to the logger 'dataproxy'" in message for message in told)


def test_every_name_without_a_counterpart_is_one_warning(tmp_path, caplog):
    path = written(tmp_path, {refusal.name: 1 for refusal in PRODUCER.refusals})
    with caplog.at_level(logging.WARNING, logger="dataproxy.config"):
        config = load_producer_config("tcp://h:1", file=path, env={})
    assert config == load_producer_config("tcp://h:1", env={})
    assert len(caplog.messages) == len(PRODUCER.refusals)
    for refusal, message in zip(PRODUCER.refusals, caplog.messages, strict=True):
        assert message == f"file {path}: '{refusal.name}' has no counterpart here: {refusal.reason}; it is left out"


def test_a_value_without_a_counterpart_is_left_out(tmp_path, caplog):
    path = written(tmp_path, {"enable_retry": False, "isolation_level": 1, "maxInFlightSizeKb": -1, "pack_size": -1})
    with caplog.at_level(logging.WARNING, logger="dataproxy.config"):
        config = load_producer_config("tcp://h:1", file=path, env={})
    assert config == load_producer_config("tcp://h:1", env={})
    assert len(caplog.messages) == 4


def test_of_an_old_and_a_newer_name_the_newer_counts(tmp_path, caplog):
    path = written(tmp_path, {**CPP_2022, **PYTHON})
    with caplog.at_level(logging.WARNING, logger="dataproxy.config"):
        config = load_producer_config(file=path, env={})
    assert (config.executors, config.connections, config.discovery_interval) == (1, 8, 120.0)
    assert (
        f"file {path}: 'max_active_proxy' is the old name of 'max_proxy_num', which is given too; it is left out"
        in caplog.messages
    )


def test_a_name_that_no_sdk_has_is_refused_with_the_nearest(tmp_path):
    path = written(tmp_path, {**PYTHON, "pack_sise": 1})
    with pytest.raises(ConfigError, match="there is no option 'pack_sise', did you mean 'pack_size'") as caught:
        load_producer_config(file=path, env={})
    assert caught.value.code == "UNKNOWN_OPTION"
    assert "left out" not in str(caught.value)


def test_a_value_of_the_wrong_kind_is_refused(tmp_path):
    path = written(tmp_path, {**PYTHON, "pack_timeout": "soon", "enable_zip": "maybe"})
    with pytest.raises(ConfigError, match=r"'pack_timeout': 'soon' is not a number; 'enable_zip': 'maybe' is neither"):
        load_producer_config(file=path, env={})


def test_a_secret_is_not_shown_where_its_switch_is_off(tmp_path, caplog):
    path = written(tmp_path, {**PYTHON, "auth_id": "me", "auth_key": "hush-hush"})
    with caplog.at_level(logging.DEBUG):
        load_producer_config(file=path, env={})
    assert "hush-hush" not in caplog.text
