"""The JSON file of ``InLongApi``: each name of InLong's own SDK works, is translated, or is left out with a reason."""

import json
import logging

import pytest

from dataproxy.config import PRODUCER
from dataproxy.errors import ConfigError
from inlong_dataproxy.configuration import read_settings

MANAGER = "http://m:8083/inlong/manager/openapi/dataproxy/getIpList"
LEFT_OUT = "has no counterpart here: "


@pytest.fixture
def read(tmp_path, caplog):
    """Return settings and warnings of a table ``init-param``."""

    def read(values, env=None):
        path = tmp_path / "settings of no known kind"
        path.write_text(json.dumps({"init-param": values, "comment": "other parts do not count"}))
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            settings = read_settings(str(path), env or {})
        assert all(record.name == "dataproxy.inlong" for record in caplog.records)
        return settings, [message.removeprefix(f"file {path}: ") for message in caplog.messages]

    return read


def test_what_holds_where_the_file_is_silent(read):
    settings, warnings = read({})
    assert warnings == []
    config = settings.config
    assert (config.target, config.on_full, config.start, config.compression) == (
        "http://127.0.0.1:8099/inlong/manager/openapi/dataproxy/getIpList", "raise", "lazy", "snappy",
    )  # fmt: skip
    assert (settings.groups, settings.most_groups, settings.most_bytes, settings.client_ip) == ((), 101, 409590, "")


def test_over_http_the_usual_compression_is_left_out(read):
    for settings, warnings in (read({"protocol": "http"}), read({}, {"DATAPROXY_PROTOCOL": "HTTP"})):
        assert (settings.config.protocol, settings.config.compression, warnings) == ("http", "none", [])
    with pytest.raises(ConfigError, match="compression has no place in the HTTP report"):
        read({"protocol": "http", "enable_zip": True})


@pytest.mark.parametrize(
    ("key", "value", "option", "expected"),
    [
        ("manager_url", MANAGER, "target", MANAGER),
        ("manager_update_interval", 2, "discovery_interval", 120.0),
        ("manager_url_timeout", 7, "manager_timeout", 7.0),
        ("msg_type", 5, "message_type", 5),
        ("max_proxy_num", 6, "connections", 6),
        ("max_tcp_num", 6, "connections", 6),
        ("per_groupid_thread_nums", 2, "executors", 2),
        ("recv_buf_size", 10240000, "buffer_bytes", 10240000),
        ("enable_pack", False, "batch_messages", 1),
        ("enable_pack", True, "batch_messages", 65535),
        ("pack_size", 4096, "batch_bytes", 4096),
        ("pack_timeout", 3000, "linger", 3.0),
        ("enable_zip", True, "compression", "snappy"),
        ("enable_zip", False, "compression", "none"),
        ("min_zip_len", 1000, "compression_min_bytes", 1000),
        ("heart_beat_interval", 60000, "heartbeat_interval", 60.0),
        ("enable_balance", True, "connections", 0),
        ("enable_local_cache", False, "connections", 0),
        ("isolation_level", 2, "connections", 0),
        ("isolation_level", 3, "connections", 0),
        ("extend_report", False, "connections", 0),
        ("thread_num", 4, "executors", 4),
        ("retry_ms", 3000, "ack_timeout", 3.0),
        ("enable_retry", True, "ack_timeout", 10.0),
        ("max_active_proxy", 3, "connections", 3),
        ("max_buf_pool", 52428800, "buffer_bytes", 52428800),
        ("min_ziplen", 512, "compression_min_bytes", 512),
        ("proxy_update_interval", 10, "discovery_interval", 600.0),
        ("enable_groupId_isolation", False, "connections", 0),
        ("delivery_timeout", "10m", "delivery_timeout", 600.0),  # options of this package may stand beside the others
    ],
)
def test_a_name_that_works(read, key, value, option, expected):
    settings, warnings = read({key: value})
    assert getattr(settings.config, option) == expected
    assert warnings == []


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("dispatch_interval_zip", 8, "batch_bytes, batch_messages and linger decide"),
        ("dispatch_interval_send", 10, "batch_bytes, batch_messages and linger decide"),
        ("send_buf_size", 10240000, "one option bounds all memory"),
        ("max_cache_num", 10, "one option bounds all memory"),
        ("buffer_num_per_groupId", 5, "one option bounds all memory"),
        ("retry_times", 1, "retries are limited by time"),
        ("retry_num", 3, "retries are limited by time"),
        ("tcp_detection_interval", 60000, "heartbeats check connections"),
        ("tcp_idle_time", 600000, "heartbeats check connections"),
        ("load_balance_interval", 300000, "connections are chosen by"),
        ("proxy_repeat_times", 1, "connections are chosen by"),
        ("log_num", 10, "logs go to the logger 'dataproxy'"),
        ("log_size", 10, "logs go to the logger 'dataproxy'"),
        ("log_level", 3, "logs go to the logger 'dataproxy'"),
        ("log_path", "./", "logs go to the logger 'dataproxy'"),
        ("log_file_type", 2, "logs go to the logger 'dataproxy'"),
        ("enable_tcp_nagle", True, "turn Nagle's algorithm off"),
        ("ser_port", 46801, "proxies see the port"),
        ("enable_setaffinity", False, "pin the process with taskset"),
        ("mask_cpuaffinity", 255, "pin the process with taskset"),
        ("extend_field", 0, "message_type and the attributes decide"),
        ("max_instance", 30, "is not limited"),
        ("enable_share_msg", True, "messages are never copied into objects"),
    ],
)
def test_a_name_that_is_left_out(read, key, value, reason):
    settings, warnings = read({key: value})
    assert settings == read({})[0]
    (warning,) = warnings
    assert warning.startswith(f"'{key}' {LEFT_OUT}")
    assert reason in warning
    assert warning.endswith("; it is left out")


@pytest.mark.parametrize(
    ("key", "value", "warning"),
    [
        ("enable_retry", False, "'enable_retry': False has no counterpart: failures are retried"),
        ("isolation_level", 1, "'isolation_level': 1 has no counterpart: make one Producer for each group"),
        ("enable_local_cache", True, "'enable_local_cache': True has no counterpart: set cache_dir"),
        ("extend_report", True, "'extend_report': True has no counterpart: the Manager's list"),
        ("pack_size", 0, "'pack_size': 0 means no limit"),
        ("pack_size", "4096x", "'pack_size': '4096x' is not a number"),
        ("enable_zip", "perhaps", "'enable_zip': 'perhaps' is neither true nor false"),
        ("msg_type", 8, "'msg_type': option message_type (msg_type): 8 is not one of"),
        ("ext_pack_size", "big", "'ext_pack_size': 'big' is not a whole number above 0; 409600 is used"),
        ("max_group_id_num", 0, "'max_group_id_num': 0 is not a whole number above 0; 50 is used"),
        ("inlong_group_ids", ["a"], "'inlong_group_ids': ['a'] is not text"),
        ("ser_ip", 7, "'ser_ip': 7 is not text"),
        ("pack_sise", 4096, "there is no option 'pack_sise', did you mean 'pack_size'?"),
        ("my comment", "x", "there is no option 'my comment'"),
    ],
)
def test_a_value_that_cannot_be_used_is_left_out(read, key, value, warning):
    settings, warnings = read({key: value})
    assert settings == read({})[0]
    assert [text.startswith(warning) for text in warnings] == [True], warnings


@pytest.mark.parametrize(
    ("key", "value", "option", "expected"),
    [
        ("pack_timeout", 70000, "linger", 60.0),
        ("thread_num", 100, "executors", 64),
        ("heart_beat_interval", 600000, "heartbeat_interval", 170.0),
        ("recv_buf_size", 10, "buffer_bytes", 1024),
        ("pack_size", 1 << 40, "batch_bytes", (20 << 20) - 1024),
    ],
)
def test_a_number_out_of_range_becomes_the_nearest(read, key, value, option, expected):
    settings, warnings = read({key: value})
    assert getattr(settings.config, option) == expected
    assert len(warnings) == 1
    assert warnings[0].startswith(f"'{key}': ")
    assert "is outside of " in warnings[0]


def test_values_of_this_module_alone(read):
    given = {
        "inlong_group_ids": " a, b,,a",
        "ext_pack_size": 1000,
        "ser_ip": "10.1.2.3",
        "max_group_id_num": 3,
        "max_stream_id_num": 7,
    }
    settings, warnings = read(given)
    assert warnings == []
    assert settings[1:] == (("a", "b"), 8, 990, "10.1.2.3")
    assert settings.config.group_id == ""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"pack_size": 1 << 20}, {"batch_bytes": 1 << 20, "max_frame_bytes": (1 << 20) + 1024}),
        ({"ext_pack_size": 2 << 20}, {"batch_bytes": 262144, "max_frame_bytes": (2 << 20) - 10 + 1024}),
        ({"ext_pack_size": 400 << 20}, {"max_frame_bytes": 20 << 20}),
        ({"pack_size": 409600, "recv_buf_size": 100000}, {"batch_bytes": 100000, "buffer_bytes": 100000}),
        ({"pack_size": 409600}, {"max_frame_bytes": 512 << 10}),
    ],
)
def test_frames_and_buffer_have_room_for_what_the_file_asks(read, given, expected):
    settings, warnings = read(given)
    assert {name: getattr(settings.config, name) for name in expected} == expected
    assert warnings == []


SECRETS = {"auth_id": "me", "auth_key": "hush"}


@pytest.mark.parametrize(
    ("given", "key", "warnings"),
    [
        ({"need_auth": True, **SECRETS}, "hush", 0),
        ({"need_auth": False, **SECRETS}, "", 0),
        (SECRETS, "", 0),
        ({"need_auth": "true", **SECRETS}, "", 0),  # the official parser takes true alone, not a text
        ({"need_auth": True, "auth_id": "me"}, "", 1),
        ({"need_auth": True, "auth_id": 7, "auth_key": "hush"}, "", 1),
    ],
)
def test_secrets_count_only_where_they_are_needed(read, given, key, warnings):
    settings, told = read(given)
    assert settings.config.manager_secret_key == key
    assert bool(settings.config.manager_secret_id) == bool(key)
    assert len(told) == warnings
    assert "hush" not in " ".join(told)


def test_variables_win_over_the_file(read):
    env = {"DATAPROXY_LINGER": "1ms", "DATAPROXY_DELIVERY_TIMEOUT": "30s"}
    settings, _ = read({"pack_timeout": 3000}, env)
    assert (settings.config.linger, settings.config.delivery_timeout) == (0.001, 30.0)
    assert settings.config.origin("linger") == "environment variable DATAPROXY_LINGER"


def test_the_same_name_twice_counts_once(tmp_path, caplog):
    path = tmp_path / "c.json"
    path.write_text('{"init-param": {"pack_size": 4096, "pack_size": 8192}}')
    assert read_settings(str(path), {}).config.batch_bytes == 4096
    assert caplog.messages == [f"file {path}: 'pack_size' is given twice; the first counts"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not valid JSON"),
        ('{"init-param": ', "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ("[1]", "has no table 'init-param'"),
        ('{"pack_size": 1}', "has no table 'init-param'"),
        ('{"init-param": [1]}', "has no table 'init-param'"),
        (b"\xff", "is not valid JSON"),
        ('{"init-param": {"retry_ms": 600000}}', "ack_timeout (10m) is above half of delivery_timeout"),
    ],
)
def test_a_file_that_cannot_be_used(text, problem, tmp_path):
    path = tmp_path / "c.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        read_settings(str(path), {})
    assert problem in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_settings(str(tmp_path / "none.json"), {})


def test_every_name_of_the_table_is_answered(read):
    """Whatever the value is, nothing stops the program."""
    names = [
        entry.name
        for entry in (*PRODUCER.aliases, *PRODUCER.refusals)
        if {"C++ 2022", "C++ 2026 and Python"} & {*entry.sdks}
    ]
    assert len(names) > 60
    for name in names:
        for value in (1, "a", True, None, 1.5, [], {}, -1, 10**400):
            read({name: value})
