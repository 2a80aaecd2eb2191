"""Reading the sink's options, and what tasks get of them."""

import pickle

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict

from dataproxy.config import PRODUCER
from dataproxy.errors import ConfigError
from dataproxy.spark.planning.following import KnownProxies
from dataproxy.spark.planning.options import read_options
from dataproxy.spark.reporting.outlets import Outlets

TARGET = {"target": "tcp://127.0.0.1:46801", "groupId": "g", "streamId": "s"}


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    import os

    for name in list(os.environ):
        if name.startswith("DATAPROXY_"):
            monkeypatch.delenv(name)


def read(**options):
    return read_options(CaseInsensitiveDict({**TARGET, **options}))


@pytest.mark.parametrize("spell", [str, str.lower, str.upper, str.title])
def test_names_have_no_case(spell):
    options = {**TARGET, "batchBytes": "1KiB", "linger": "7ms", "connectCheck": "off", "nullValue": "skip"}
    settings = read_options(CaseInsensitiveDict({spell(name): value for name, value in options.items()}))
    assert settings.config.batch_bytes == 1024
    assert settings.config.linger == 0.007
    assert settings.config.null_value == "skip"
    assert settings.config.group_id == "g"
    assert settings.stream_id == "s"
    assert settings.connect_check == "off"


def test_the_prefix_is_allowed_for_the_sinks_own_options_too():
    options = {f"dataproxy.{name}": value for name, value in TARGET.items()}
    settings = read_options(CaseInsensitiveDict({**options, "DataProxy.badRecords": "skip", "dataproxy.format": "csv"}))
    assert (settings.stream_id, settings.bad_records, settings.body.form) == ("s", "skip", "csv")


def test_the_sinks_own_defaults():
    settings = read(deliveryTimeout="33s")
    assert settings.config.connections == 1
    assert settings.config.max_block == 34.0
    assert settings.connect_check == "warn"
    assert settings.outlets == Outlets() == Outlets("", "", True)


def test_explicit_choices_win_over_the_sinks_defaults():
    settings = read(connections="3", maxBlock="2s")
    assert (settings.config.connections, settings.config.max_block) == (3, 2.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"targte": "x"}, ["'targte'", "'target'"]),
        ({"steamId": "x"}, ["'steamid'", "'streamId'"]),
        ({"reportfle": "x"}, ["'reportfle'", "'reportFile'"]),
        ({"qqqqq": "x"}, ["'qqqqq'"]),
        ({"target": "tubemq://h:1"}, ["'tubemq://h:1' names masters of TubeMQ"]),
        ({"path": "/data"}, ["'/data'", "call save() or start() without one"]),
        ({"onFull": "raise"}, ["onFull", "'raise'", "back-pressure"]),
        (
            {"emptyValue": "send"},
            ["emptyValue", "'send'", "'fail', 'skip'", "a message needs a body", "placeholder"],
        ),
        ({"nullValue": "Send"}, ["nullValue", "a message needs a body", "an attribute that marks it"]),
        ({"connectCheck": "maybe"}, ["connectCheck", "'maybe'", "'warn', 'fail', 'off'"]),
        ({"batchBytes": "12 parsecs"}, ["batchBytes", "'12 parsecs'"]),
        ({"executors": "65"}, ["executors", "65"]),
        ({"reportFile": "/tmp"}, ["reportFile", "'/tmp' is a folder"]),
        ({"reportFile": "/etc/hosts/x.json"}, ["reportFile", "its folder cannot be written"]),
        ({"separator": "|"}, ["separator has no effect on format=raw", "csv or kv"]),
        (
            {"format": "raw", "dataproxy.bodyColumns": "a"},
            ["bodyColumns has no effect on format=raw", "csv or kv or json"],
        ),
        ({"format": "json", "NULLTEXT": "-"}, ["nullText has no effect on format=json", "csv or kv"]),
        ({"format": "csv", "kvSeparator": "="}, ["kvSeparator has no effect on format=csv", "format to kv"]),
        ({"columns": "dt", "columnPrefix": "_"}, ["columns and columnPrefix", "keep one"]),
        ({"auth_key": "hush"}, ["'auth_key'", "managerSecretKey"]),
        ({"dataproxy.authId": "hush"}, ["'auth_id'", "managerSecretId"]),
        ({"badRecords": "skip", "dataproxy.badRecords": "fail"}, ["'badrecords' and 'dataproxy.badrecords' both set"]),
        ({"reportFile": "/no/such/folder/x.json"}, ["reportFile", "/no/such/folder"]),
        ({"reportCallback": "json"}, ["reportCallback='json'", "module:function"]),
        ({"reportCallback": "no_such_module:f"}, ["reportCallback='no_such_module:f'", "No module named"]),
        ({"reportCallback": "json:none"}, ["reportCallback='json:none'", "module:function"]),
    ],
)
def test_bad_options_are_refused_by_name(options, words):
    with pytest.raises(ConfigError) as caught:
        read(**options)
    for word in words:
        assert word in str(caught.value)


def test_options_of_the_kafka_sink_are_told_where_to_look():
    with pytest.raises(
        ConfigError,
        match=r"there is no option 'kafka.acks': every message is .*docs/spark.md lists the counterparts of",
    ):
        read(**{"kafka.acks": "all"})


def test_a_missing_target_is_refused():
    with pytest.raises(ConfigError, match="no target"):
        read_options({"groupId": "g"})


@pytest.mark.parametrize("key", ["hush-hush", "env:KEY", "file:/nowhere/key"])
def test_the_managers_key_goes_to_tasks_with_its_id_or_not_at_all(key):
    settings = read(target="http://manager:8083", managerSecretId="me", managerSecretKey=key)
    config = settings.for_tasks(KnownProxies("tcp://10.0.0.1:46801")).config()
    assert (config.target, config.manager_secret_id, bool(config.manager_secret_key)) == (
        "tcp://10.0.0.1:46801",
        "",
        False,
    )


def test_tasks_get_the_found_proxies_and_no_secret():
    settings = read(target="http://manager:8083", managerSecretId="me", managerSecretKey="hush-hush", linger="9ms")
    tasks = settings.for_tasks(KnownProxies("tcp://10.0.0.1:46801"))
    assert b"hush-hush" not in pickle.dumps(tasks)
    assert "hush-hush" not in repr(settings)
    config = pickle.loads(pickle.dumps(tasks)).config()
    assert (config.target, config.linger, config.group_id) == ("tcp://10.0.0.1:46801", 0.009, "g")


def test_the_executors_environment_plays_no_part(monkeypatch):
    tasks = read().for_tasks(KnownProxies("tcp://10.0.0.1:46801"))
    monkeypatch.setenv("DATAPROXY_TARGET", "tcp://elsewhere:1")
    monkeypatch.setenv("DATAPROXY_LINGER", "3s")
    assert tasks.config().target == "tcp://10.0.0.1:46801"
    assert tasks.config().linger == 1.0


def test_linger_leaves_time_for_the_delivery():
    assert read(deliveryTimeout="500ms").for_tasks(KnownProxies("tcp://h:1")).config().linger == 0.125


def test_a_linger_of_the_users_own_holds(monkeypatch):
    assert read(linger="5ms").for_tasks(KnownProxies("tcp://h:1")).config().linger == 0.005
    monkeypatch.setenv("DATAPROXY_LINGER", "3s")
    assert read().for_tasks(KnownProxies("tcp://h:1")).config().linger == 3.0


def test_equal_options_share_a_producer():
    one, other = read().for_tasks(KnownProxies("tcp://h:1")), read().for_tasks(KnownProxies("tcp://h:1"))
    assert one == other
    assert hash(one) == hash(other)
    assert read(linger="1ms").for_tasks(KnownProxies("tcp://h:1")) != one


@pytest.mark.parametrize("target", ["http://me:s3cret@h:1", "http://h/?s3cret", "me:s3cret@h", "tcp://h#s3cret"])
@pytest.mark.parametrize("name", ["target", "dataproxy.target", "TARGET"])
def test_a_secret_in_the_target_is_refused_and_not_shown(name, target):
    with pytest.raises(ConfigError) as caught:
        read_options({name: target, "groupId": "g", "streamId": "s"})
    assert "Spark shows the value of the option 'target' in plans" in str(caught.value)
    assert "s3cret" not in f"{caught.value} {caught.value!r} {caught.value.details}"


def test_a_data_time_keeps_its_milliseconds_where_messages_have_attributes():
    assert read().config.exact_time
    assert not read(messageType="3").config.exact_time
    assert not read(exactTime="false").config.exact_time


def test_errors_have_the_names_of_sparks_options():
    with pytest.raises(ConfigError) as caught:
        read(ackTimeout="5m", deliveryTimeout="1m")
    assert "ackTimeout" in str(caught.value)
    for name in PRODUCER.by_name:
        assert "_" not in name or name not in str(caught.value)
