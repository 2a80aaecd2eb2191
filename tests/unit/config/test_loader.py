"""Layers, origins, ranges, rules and secrets."""

import copy
import json
import logging
import pickle

import pytest

from dataproxy.config import (
    CONSUMER,
    HUB,
    PRODUCER,
    ConsumerConfig,
    HubConfig,
    ProducerConfig,
    load_hub_config,
    load_producer_config,
)
from dataproxy.errors import ConfigError

TARGET = "tcp://h:1"


def load(**options):
    return load_producer_config(TARGET, env={}, **options)


@pytest.mark.parametrize(("table", "kind"), [(PRODUCER, ProducerConfig), (CONSUMER, ConsumerConfig), (HUB, HubConfig)])
def test_class_and_table_agree(table, kind):
    names = [name for name in kind.__annotations__ if name != "table"]
    assert names == [option.name for option in table.options]
    types = {
        "text": "str",
        "secret": "Secret",
        "target": "str",
        "masters": "str",
        "topics": "tuple[tuple[str, tuple[str, ...]], ...]",
        "bool": "bool",
        "int": "int",
        "duration": "float",
        "size": "int",
        "names": "tuple[str, ...]",
        "offsets": "tuple[tuple[str, int], ...]",
    }
    for option in table.options:
        expected = types.get(option.kind) or f"Literal{list(option.choices)!r}"
        assert kind.__annotations__[option.name] == expected


@pytest.mark.parametrize("table", [PRODUCER, CONSUMER, HUB])
def test_tables_are_sound(table):
    assert len(table.by_name) == len(table.options)
    foreign = [entry.name for entry in (*table.aliases, *table.refusals)]
    assert len({name.lower() for name in foreign}) == len(foreign)
    assert not {name.lower() for name in foreign} & set(table.by_name)
    for option in table.options:
        assert option.doc.endswith(".")
        assert option.parse(option.default) == option.default
        assert option.secret or option.parse(option.format(option.default)) == option.default
        assert (option.low is None) == (option.high is None) == (option.kind not in ("int", "duration", "size"))
        if option.low is not None:
            assert option.low <= option.default <= option.high


def test_defaults():
    config = load_producer_config(TARGET, env={})
    for option in PRODUCER.options[1:]:
        assert getattr(config, option.name) == option.default
        assert config.origin(option.name) == "default"
    assert load_hub_config(env={}).as_dict() == {option.name: option.default for option in HUB.options}


def test_layers(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text('target = "tcp://f:1"\nlinger = "7ms"\nbatch_bytes = "8KiB"\nexecutors = 2\n')
    env = {"DATAPROXY_BATCH_BYTES": "9KiB", "DATAPROXY_EXECUTORS": "3", "DATAPROXY_GROUP_ID": "", "OTHER": "x"}
    config = load_producer_config(file=path, env=env, executors=4, nagle=None)
    assert (config.target, config.linger, config.batch_bytes, config.executors) == ("tcp://f:1", 0.007, 9 << 10, 4)
    assert [config.origin(name) for name in ("linger", "batch_bytes", "executors", "nagle", "group_id")] == [
        f"file {path}",
        "environment variable DATAPROXY_BATCH_BYTES",
        "argument",
        "default",
        "default",
    ]
    with pytest.raises(ConfigError, match="no option 'lingr'"):
        config.origin("lingr")


def test_process_environment(monkeypatch):
    monkeypatch.setenv("DATAPROXY_TARGET", "tcp://e:1")
    monkeypatch.setenv("DATAPROXY_HUB_PORT", "7")
    assert load_producer_config().target == "tcp://e:1"
    assert load_hub_config().port == 7


def test_environment_of_others_is_left_alone():
    env = {
        "DATAPROXY_SERVICE_HOST": "10.0.0.1",
        "DATAPROXY_PORT_46801_TCP_ADDR": "10.0.0.1",
        "DATAPROXY_HUB_PORT": "1",
        "DATAPROXY_ONLY": "base",
    }
    assert load_producer_config(TARGET, env=env) == load_producer_config(TARGET, env={})


def test_mistyped_environment_is_refused():
    with pytest.raises(ConfigError, match="DATAPROXY_LINGR; did you mean DATAPROXY_LINGER") as caught:
        load_producer_config(TARGET, env={"DATAPROXY_LINGR": "1s"})
    assert caught.value.code == "UNKNOWN_OPTION"


def test_no_target():
    with pytest.raises(ConfigError, match=r"there is no target; give e.g. 'tcp://"):
        load_producer_config(env={})
    assert load_producer_config(env={}, require_target=False).target == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"executors": 65}, "option executors (argument): 65 is too large; allowed is 1 .. 64"),
        ({"executors": "two"}, "option executors (argument): 'two' is not a whole number; allowed is 1 .. 64"),
        ({"executors": True}, "option executors (argument): True is not a whole number; allowed is 1 .. 64"),
        ({"executors": 1.5}, "option executors (argument): 1.5 is not a whole number; allowed is 1 .. 64"),
        ({"linger": "61s"}, "option linger (argument): '61s' is too large; allowed is 0s .. 1m"),
        ({"linger": -1}, "option linger (argument): -1 is too small; allowed is 0s .. 1m"),
        ({"buffer_bytes": 5}, "option buffer_bytes (argument): 5 is too small; allowed is 1KiB .. 1TiB"),
        ({"heartbeat": "on"}, "option heartbeat (argument): 'on' is not one of 'binary', 'message', 'off'"),
        ({"message_type": 4}, "option message_type (argument): 4 is not one of 7, 6, 5, 3, 2"),
        ({"message_type": True}, "option message_type (argument): True is not one of 7, 6, 5, 3, 2"),
        ({"nagle": "perhaps"}, "option nagle (argument): 'perhaps' is neither true nor false; write true or false"),
        ({"nagle": 1}, "option nagle (argument): 1 is neither true nor false; write true or false"),
        ({"group_id": 5}, "option group_id (argument): 5 is of type int; give text"),
        ({"group_id": "a\0b"}, "option group_id (argument): 'a\\x00b' contains a NUL character; remove it"),
        ({"batch_bytes": "1MiB"}, "batch_bytes (1MiB) plus 1024 bytes of overhead is above max_frame_bytes (512KiB);"),
        ({"batch_bytes": "8KiB", "buffer_bytes": "4KiB"}, "batch_bytes (8KiB) is above buffer_bytes (4KiB); lower"),
        ({"ack_timeout": 9, "delivery_timeout": 8}, "ack_timeout (9s) is above half of delivery_timeout (8s), so"),
        ({"ack_timeout": 5, "delivery_timeout": 9}, "ack_timeout (5s) is above half of delivery_timeout (9s), so"),
        ({"ack_timeout": 200}, "ack_timeout (200s) is above half of delivery_timeout (2m), so a frame"),
        ({"linger": 7, "ack_timeout": 2, "delivery_timeout": 8}, "linger (7s) is above delivery_timeout (8s) less one"),
        ({"linger": 9, "delivery_timeout": 8}, "linger (9s) is above delivery_timeout (8s); lower linger"),
        ({"retry_backoff": 9, "retry_backoff_max": 8}, "retry_backoff (9s) is above retry_backoff_max (8s)"),
        ({"reconnect_backoff": 9, "reconnect_backoff_max": 8}, "reconnect_backoff (9s) is above reconnect_backoff"),
        ({"heartbeat_interval": "170s", "heartbeat_retries": 100}, "heartbeat_retries (100) times heartbeat_interval"),
        ({"manager_secret_id": "me"}, "manager_secret_id is given without manager_secret_key; give both or none"),
    ],
)  # fmt: skip
def test_complaints(options, message):
    with pytest.raises(ConfigError) as caught:
        load(**options)
    assert str(caught.value).startswith(message)


def test_defaults_give_way():
    config = load(delivery_timeout=2, buffer_bytes="8KiB", retry_backoff="7s", max_frame_bytes="4KiB")
    assert (config.ack_timeout, config.batch_bytes, config.retry_backoff_max) == (0.665, 3 << 10, 7.0)
    assert config.origin("ack_timeout") == "default, changed to fit delivery_timeout"
    assert config.origin("batch_bytes") == "default, changed to fit max_frame_bytes"
    wider = config.replace(delivery_timeout=60)
    assert wider.ack_timeout == 10.0
    assert wider.batch_bytes == 3 << 10
    assert config.delivery_timeout == 2.0
    assert load(retry_backoff_max=0).retry_backoff == 0.0
    assert load(heartbeat="off", heartbeat_interval="170s", heartbeat_retries=100).heartbeat == "off"


@pytest.mark.parametrize("delivery", [0.01, 0.02, 0.05, 0.3, 1, 2.5, 10, 20, 25, 30, 30.004, 60, 120, 7 * 86400])
def test_default_timeouts_leave_time_for_two_more_attempts(delivery):
    config = load(delivery_timeout=delivery)
    assert config.linger == min(0.005, delivery / 10)
    assert config.linger + 3 * config.ack_timeout <= delivery + 1e-9
    assert config.ack_timeout == 10.0 or config.linger + 3 * (config.ack_timeout + 0.001) >= delivery
    assert config.ack_timeout >= 0.003
    assert config.connect_timeout == min(5.0, config.ack_timeout)


def test_linger_that_was_chosen_counts_in_the_default_ack_timeout():
    assert load(delivery_timeout=10, linger=4).ack_timeout == 2.0
    assert load(delivery_timeout=120, linger=60).ack_timeout == 10.0
    assert load(delivery_timeout=10, linger=9).ack_timeout == 0.333


def test_an_ack_timeout_that_was_chosen_may_be_half():
    config = load(delivery_timeout=1, ack_timeout=0.5)
    assert (config.ack_timeout, config.linger) == (0.5, 0.005)


def test_configurations_are_frozen_values():
    config = load(linger=1)
    with pytest.raises(AttributeError, match=r"replace\(linger=...\)"):
        config.linger = 2.0
    with pytest.raises(AttributeError):
        del config.linger
    for twin in (pickle.loads(pickle.dumps(config)), copy.copy(config), load(linger="1000ms")):
        assert twin == config
        assert hash(twin) == hash(config)
        assert twin.origin("linger") == "argument"
    assert config != load(linger=2)
    assert config != load_hub_config(env={})


def test_secrets_never_show():
    secret = "s3cr3t-word"
    config = load(manager_secret_id="someone", manager_secret_key=secret)
    assert config.manager_secret_key == secret
    shown = repr(config) + str(config) + str(list(config.shown()))
    assert secret not in shown
    assert "someone" not in shown
    assert "***" in shown
    wrong = [
        {"manager_secret_key": secret + "\0"},
        {"manager_secret_key": [secret]},
        {"manager_secret_kye": secret},
        {"auth_key": secret},
        {"manager_secret_key": secret, "auth_key": secret + "2"},
    ]
    for options in wrong:
        with pytest.raises(ConfigError) as caught:
            load(**options)
        assert secret not in str(caught.value) + repr(caught.value) + str(caught.value.details)


def test_files(tmp_path):
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"producer": {"linger": 1}, "hub": {"port": 5}}))
    assert load(file=path).linger == 1.0
    assert load_hub_config(file=path, env={}).port == 5
    path.write_text('{"linger": 1, "linger": 2}')
    with pytest.raises(ConfigError, match="'linger' is given twice"):
        load(file=path)
    path.write_text("[1]")
    with pytest.raises(ConfigError, match="has a JSON list at its top; write an object"):
        load(file=path)
    path.write_text("{")
    with pytest.raises(ConfigError, match=r"is not valid JSON: .* \(line 1, column 2\)"):
        load(file=path)
    path.write_text("[" * 100_000)
    with pytest.raises(ConfigError, match=r"c.json' cannot be read: .*recursion"):
        load(file=path)
    path.write_text('{"linger": 1' + "0" * 5000 + "}")
    with pytest.raises(ConfigError, match=r"c.json' cannot be read: .*5001 digits"):
        load(file=path)
    path.write_text('{"producer": 3}')
    with pytest.raises(ConfigError, match="'producer' is not a table"):
        load(file=path)
    path.write_text('{"producer": {"linger": 1}, "linger": 2}')
    with pytest.raises(ConfigError, match=r"'linger' stands at the top and in \[producer\]"):
        load(file=path)
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"is not UTF-8: .* at byte 0"):
        load(file=path)
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(file=tmp_path / "none.toml")
    with pytest.raises(ConfigError, match=r"the suffix '.yaml' is unknown; use .toml or .json"):
        load(file="x.yaml")
    bad = tmp_path / "b.toml"
    bad.write_text("a = \n")
    with pytest.raises(ConfigError, match=r"is not valid TOML: .*line 1"):
        load(file=bad)
    bad.write_text("lingr = 1\n")
    with pytest.raises(ConfigError, match=f"file {bad}: there is no option 'lingr', did you mean 'linger'"):
        load(file=bad)


def test_names_option():
    assert load_hub_config(env={}, topics="a, b,,").topics == ("a", "b")
    assert load_hub_config(env={"DATAPROXY_HUB_TOPICS": "c"}).topics == ("c",)
    assert load_hub_config(env={}, topics=["a"]).topics == ("a",)
    for wrong in (5, [5]):
        with pytest.raises(ConfigError, match="option topics"):
            load_hub_config(env={}, topics=wrong)


def test_store_takes_a_path(tmp_path):
    assert load_hub_config(tmp_path, env={}).store == str(tmp_path)


def test_nothing_is_logged_for_native_names(caplog):
    with caplog.at_level(logging.DEBUG, logger="dataproxy"):
        load(linger=1)
    assert not caplog.records
