"""Options of the consumer: layers, topics, rules, names of other clients, and names that belong to another part."""

import copy
import json
import logging
import pickle
from collections import OrderedDict
from types import MappingProxyType

import pytest

from dataproxy.config import (
    CONSUMER,
    PRODUCER,
    ConsumerConfig,
    load_consumer_config,
    load_hub_config,
    load_producer_config,
    spark_options,
)
from dataproxy.config.loader import prefixed
from dataproxy.errors import ConfigError

TARGET = "tubemq://m:8715"


def load(**options):
    return load_consumer_config(TARGET, "g", ["t"], env={}, **options)


def topics_of(given):
    return dict(load_consumer_config(TARGET, "g", given, env={}).topics)


def test_layers(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text(
        '[consumer]\ntarget = "tubemq://f"\ngroup = "f"\nstart = "end"\n[consumer.topics]\na = []\nb = ["x"]\n'
    )
    env = {
        "DATAPROXY_CONSUMER_GROUP": "e",
        "DATAPROXY_CONSUMER_START": "latest",
        "DATAPROXY_CONSUMER_CALL_TIMEOUT": "4s",
        "DATAPROXY_CALL_TIMEOUT": "9s",
    }
    config = load_consumer_config(file=path, env=env, start="earliest")
    assert isinstance(config, ConsumerConfig)
    assert (config.target, config.group, config.start, config.call_timeout) == ("tubemq://f", "e", "earliest", 4.0)
    assert dict(config.topics) == {"a": (), "b": ("x",)}
    assert [config.origin(name) for name in ("target", "group", "start", "not_found_wait")] == [
        f"file {path}",
        "environment variable DATAPROXY_CONSUMER_GROUP",
        "argument",
        "default",
    ]


def test_one_file_for_all_parts(tmp_path):
    path = tmp_path / "all.json"
    path.write_text(json.dumps({"producer": {"linger": 1}, "consumer": {"topics": {"a": None}}, "hub": {"port": 5}}))
    assert load_consumer_config(TARGET, "g", file=path, env={}).topics == (("a", ()),)
    assert load_producer_config("tcp://h", file=path, env={}).linger == 1.0
    assert load_hub_config(file=path, env={}).port == 5


def test_the_environment_of_one_part_is_not_that_of_another(monkeypatch):
    monkeypatch.setenv("DATAPROXY_CONSUMER_TARGET", TARGET)
    monkeypatch.setenv("DATAPROXY_CONSUMER_GRUOP", "g")
    monkeypatch.setenv("DATAPROXY_TARGET", "tcp://h")
    assert load_producer_config().target == "tcp://h"
    assert load_hub_config().store == ""
    with pytest.raises(ConfigError, match="DATAPROXY_CONSUMER_GRUOP; did you mean DATAPROXY_CONSUMER_GROUP"):
        load_consumer_config()
    monkeypatch.delenv("DATAPROXY_CONSUMER_GRUOP")
    config = load_consumer_config(group="g", topics="t")
    assert config.origin("target") == "environment variable DATAPROXY_CONSUMER_TARGET"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {},
            "there is no target; give e.g. target='tubemq://master1:8715,master2:8715', or set DATAPROXY_CONSUMER_TAR",
        ),
        ({"target": TARGET}, "there is no group; give e.g. group='my_group', or set DATAPROXY_CONSUMER_GROUP"),
        ({"target": TARGET, "group": "g"}, "there are no topics; give e.g. topics=['orders'], or set DATAPROXY_CONSUM"),
        ({"target": TARGET, "group": "g", "topics": []}, "there are no topics"),
    ],
)
def test_what_a_consumer_cannot_do_without(given, message):
    with pytest.raises(ConfigError) as caught:
        load_consumer_config(**given, env={})
    assert str(caught.value).startswith(message)
    assert load_consumer_config(**given, env={}, complete=False).start == "earliest"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a", {"a": ()}),
        (" a , b=x + y ,, c ", {"a": (), "b": ("x", "y"), "c": ()}),
        (["a", "b=x+y"], {"a": (), "b": ("x", "y")}),
        (("a", "a", "b=x", "b=x+x"), {"a": (), "b": ("x",)}),
        ({"a": None, "b": [], "c": ("x", "y"), "d": "x+y"}, {"a": (), "b": (), "c": ("x", "y"), "d": ("x", "y")}),
        ({"a": {"z", "y"}, "b": frozenset({"x"})}, {"a": ("y", "z"), "b": ("x",)}),
        (MappingProxyType(OrderedDict(b=["x-1.2", "日本"], a=[])), {"b": ("x-1.2", "日本"), "a": ()}),
        ({"t" * 64: [f"i{number}" for number in range(500)]}, {"t" * 64: tuple(f"i{number}" for number in range(500))}),
    ],
)
def test_topics(given, expected):
    assert topics_of(given) == expected


def test_topics_as_text_are_read_back():
    option = CONSUMER.by_name["topics"]
    topics = option.parse({"a": [], "b": ["x", "y"]})
    assert option.format(topics) == "a,b=x+y"
    assert option.parse(option.format(topics)) == option.parse(option.format_items(topics)) == topics


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            5,
            "option topics (argument): 5 is not a list of topics; give e.g. ['orders'], or {'clicks': ['view', 'buy']}",
        ),
        ({"a"}, "option topics (argument): {'a'} is not a list of topics"),
        ([5], "option topics (argument): [5] contains 5, which is not text"),
        ({5: []}, "option topics (argument): {5: []} contains 5, which is not text"),
        ({"a": 5}, "option topics (argument): {'a': 5} has 5 as filter items; give a list of texts"),
        ({"a": [5]}, "option topics (argument): {'a': [5]} has [5] as filter items"),
        ("a,b=", "option topics (argument): 'a,b=' has no filter item behind 'b='; write 'b=item', or only the topic"),
        ("a,a=x", "option topics (argument): 'a,a=x' has the topic 'a' twice, with different filter items; keep one"),
        (["a "], None),
        ([""], "topics: '' is not a name of a topic; it begins with a letter, and has letters, digits, '-' and '_'"),
        ("1a", "topics: '1a' is not a name of a topic"),
        ("a.b", "topics: 'a.b' is not a name of a topic"),
        ("a#b", "topics: 'a#b' is not a name of a topic"),
        ("t" * 65, f"topics: '{'t' * 65}' is not a name of a topic; it begins with a letter, and has letters, digits"),
        ("é", "topics: 'é' is not a name of a topic"),
        ({"a": [""]}, "topics: the filter item '' of 'a' cannot be sent; give 1 to 256 printable characters without"),
        ({"a": ""}, "topics: the filter item '' of 'a' cannot be sent"),
        ("a=x+", "topics: the filter item '' of 'a' cannot be sent"),
        ({"a": ["x y"]}, "topics: the filter item 'x y' of 'a' cannot be sent"),
        ({"a": ["x,y"]}, "topics: the filter item 'x,y' of 'a' cannot be sent"),
        ({"a": ["x+y"]}, "topics: the filter item 'x+y' of 'a' cannot be sent"),
        ({"a": ["\ud800"]}, "topics: the filter item '\\ud800' of 'a' cannot be sent"),
        ({"a": ["x" * 257]}, "topics: the filter item '"),
        ({"a": [f"i{number}" for number in range(501)]}, "topics: 'a' has 501 filter items; at most 500 are possible"),
        ([f"t{number}" for number in range(1025)], "topics has 1025 topics; a member of a group has at most 1024"),
    ],
)
def test_topics_that_are_refused(given, message):
    if message is None:
        assert topics_of(given) == {"a": ()}
        return
    with pytest.raises(ConfigError) as caught:
        topics_of(given)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("given", "target"),
    [
        ("tubemqs://m1:1,m2", "tubemqs://m1:1,m2"),
        (["m1:1", "m2"], "tubemq://m1:1,m2"),
        (("tubemqs://m1:1", "tubemqs://m2"), "tubemqs://m1:1,m2"),
        (["tubemq://m1", "::1"], "tubemq://m1,[::1]"),
        (["tubemq://m1,m2"], "tubemq://m1,m2"),
    ],
)
def test_masters_as_a_list(given, target):
    assert load_consumer_config(given, "g", "t", env={}).target == target


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": 5}, "option target (argument): 5 is of type int; give text, or a list of masters"),
        ({"target": []}, "option target (argument): [] is not a list of masters; give e.g. ['master1:8715', 'master2"),
        ({"target": ["m", "tubemqs://n"]}, "option target (argument): ['m', 'tubemqs://n'] contains masters with and "),
        ({"target": ["m", "http://n"]}, "option target (argument): ['m', 'http://n'] has a scheme that masters do not"),
        ({"group": " "}, "group ' ' is not a name of a group; it begins with a letter, and has letters, digits,"),
        ({"group": "a@b"}, "group 'a@b' is not a name of a group"),
        ({"group": "1"}, "group '1' is not a name of a group"),
        ({"group": "g" * 1025}, "group 'ggg"),
        ({"start": "beginning"}, "option start (argument): 'beginning' is not one of 'earliest', 'latest', 'end'"),
        ({"heartbeat_interval": "61s"}, "option heartbeat_interval (argument): '61s' is too large; allowed is 1s"),
        ({"call_timeout": 2}, "option call_timeout (argument): 2 is too small; allowed is 3s .. 10m"),
        ({"prefetch_bytes": "1KiB"}, "option prefetch_bytes (argument): '1KiB' is too small; allowed is 64KiB .. 1TiB"),
        ({"dns_interval": 9}, "option dns_interval (argument): 9 is too small; allowed is 10s .. 1d"),
        ({"auto_confirm": 1}, "option auto_confirm (argument): 1 is neither true nor false; write true or false"),
        ({"user": "me"}, "user is given without password; give both or none"),
        ({"password": "x"}, "password is given without user; give both or none"),
        ({"user": "a b", "password": "x"}, "user 'a b' is not a name; give 1 to 64 printable characters without blank"),
        ({"user": "a" * 65, "password": "x"}, "user 'aaa"),
        ({"tls_ca": "/ca"}, "tls_ca is given, but connections to tubemq:// have no TLS; write tubemqs:// in target"),
        ({"tls_verify": "none"}, "tls_verify is given, but connections to tubemq:// have no TLS"),
        ({"tls": True, "tls_key": "/k"}, "tls_key is given without tls_certificate; give both or none"),
    ],
)  # fmt: skip
def test_complaints(options, message):
    given = {"target": TARGET, "group": "g", "topics": "t", **options}
    with pytest.raises(ConfigError) as caught:
        load_consumer_config(**given, env={})
    assert str(caught.value).startswith(message)


def test_tls_options_are_those_of_the_producer():
    config = load_consumer_config("tubemqs://m", "g", "t", env={}, tls_ca="/ca", tls_verify="chain")
    assert (config.tls_ca, config.tls_verify, config.tls) == ("/ca", "chain", False)
    assert load(tls=True, tls_ca="/ca").tls_ca == "/ca"


def test_configurations_are_frozen_values():
    config = load_consumer_config(TARGET, "g", {"a": ["x"], "b": []}, env={})
    with pytest.raises(AttributeError, match=r"replace\(group=...\)"):
        config.group = "h"
    for twin in (pickle.loads(pickle.dumps(config)), copy.copy(config), config.replace(topics="a=x,b")):
        assert twin == config
        assert hash(twin) == hash(config)
    assert config.replace(topics="a").topics == (("a", ()),)
    assert repr(config) == f"ConsumerConfig(target={TARGET!r}, group='g', topics='a=x,b')"


def test_the_password_never_shows():
    secret = "s3cr3t-word"
    config = load(user="me", password=secret)
    assert config.password.reveal() == secret
    assert load(user="me", password=lambda: secret).password.reveal() == secret
    assert secret not in repr(config) + str(list(config.shown()))
    for options in (
        {"password": secret},
        {"user": "me", "password": secret + "\0"},
        {"user": "me", "passwrod": secret},
        {"usrName": "me", "usrPassWord": secret, "password": "other"},
        {"target": f"tubemq://me:{secret}@m", "tls_key": "/k"},
    ):
        with pytest.raises(ConfigError) as caught:
            load_consumer_config(**{"target": TARGET, "group": "g", "topics": "t", **options}, env={})
        assert secret not in str(caught.value) + repr(caught.value) + str(caught.value.details)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"group_id": "g"},
            "there is no option 'group_id' of the consumer: it is one of the producer; the nearest one",
        ),
        ({"linger": 1}, "argument: there is no option 'linger' of the consumer: it is one of the producer; CONFIG"),
        ({"port": 1}, "there is no option 'port' of the consumer: it is one of the hub"),
        ({"max_frame_bytes": 1}, "it is one of the producer and the hub"),
        ({"prefetch_byte": 1}, "there is no option 'prefetch_byte', did you mean 'prefetch_bytes'?"),
        ({"rpcTimeoutM": 1}, "there is no option 'rpcTimeoutM', did you mean 'rpcTimeoutMs'?"),
        ({"xyzzy": 1}, "there is no option 'xyzzy'; CONFIGURATION.md lists every option"),
    ],
)
def test_names_that_are_no_options_of_a_consumer(given, message):
    with pytest.raises(ConfigError) as caught:
        load(**given)
    assert message in str(caught.value)
    assert caught.value.code == "UNKNOWN_OPTION"


@pytest.mark.parametrize(
    ("load_other", "given", "message"),
    [
        (load_producer_config, {"prefetch_bytes": 1}, "'prefetch_bytes' of the producer: it is one of the consumer"),
        (
            load_producer_config,
            {"group": "g"},
            "it is one of the consumer; the nearest one of the producer is 'group_id'",
        ),
        (load_producer_config, {"topics": "t"}, "'topics' of the producer: it is one of the consumer and the hub"),
        (load_hub_config, {"auto_confirm": True}, "'auto_confirm' of the hub: it is one of the consumer"),
        (load_hub_config, {"linger": 1}, "'linger' of the hub: it is one of the producer"),
    ],
)
def test_options_of_a_consumer_given_to_another_part(load_other, given, message):
    with pytest.raises(ConfigError) as caught:
        load_other(env={}, **given)
    assert message in str(caught.value)
    assert caught.value.code == "UNKNOWN_OPTION"


def test_secrets_of_another_part_are_left_where_they_are():
    env = {"DATAPROXY_CONSUMER_PASSWORD": "x", "DATAPROXY_HUB_TOKEN": "y", "DATAPROXY_LINGER": "1", "HOME": "/"}
    assert prefixed(PRODUCER, env) == {"DATAPROXY_LINGER": "1"}
    assert list(map(repr, prefixed(CONSUMER, env).values())) == ["Secret('***')"]


def test_options_of_a_consumer_given_to_spark_and_in_files(tmp_path):
    with pytest.raises(ConfigError, match="it is one of the consumer"):
        spark_options({"auto_confirm": "true"})
    path = tmp_path / "p.toml"
    path.write_text("auto_confirm = true\n")
    with pytest.raises(ConfigError, match=f"file {path}: there is no option 'auto_confirm' of the producer"):
        load_producer_config("tcp://h", file=path, env={})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"masterAddrInfo": "m1:8715,m2:8715"}, {"target": "tubemq://m1:8715,m2:8715"}),
        ({"masterAddrInfo": "tubemqs://m"}, {"target": "tubemqs://m"}),
        ({"masterAddrInfo": ["m1", "m2"]}, {"target": "tubemq://m1,m2"}),
        ({"consumerGroup": "h"}, {"group": "h"}),
        ({"groupName": "h"}, {"group": "h"}),
        ({"consumePosition": -1}, {"start": "earliest"}),
        ({"consumePosition": "CONSUMER_FROM_LATEST_OFFSET"}, {"start": "latest"}),
        ({"consumePosition": "kComsumeFromMaxOffsetAlways"}, {"start": "end"}),
        ({"consumeModel": "1"}, {"start": "end"}),
        ({"rpcTimeoutMs": 15000}, {"call_timeout": 15.0}),
        ({"rpcReadTimeoutMs": 15000}, {"call_timeout": 15.0}),
        ({"heartbeatPeriodMs": 13000}, {"heartbeat_interval": 13.0}),
        ({"heartbeatPeriodAfterFail": 30000}, {"master_retry_max": 30.0}),
        ({"heartbeatPeriodAftFailMs": 30000}, {"master_retry_max": 30.0}),
        ({"msgNotFoundWaitPeriodMs": 200}, {"not_found_wait": 0.2}),
        ({"pullRebConfirmWaitPeriodMs": 4000}, {"release_wait": 4.0}),
        ({"waitPeriodIfConfirmWaitRebalanceMs": 4000}, {"release_wait": 4.0}),
        ({"pullProtectConfirmTimeoutMs": 90000}, {"confirm_timeout": 90.0}),
        ({"maxConfirmWaitPeriodMs": 90000}, {"confirm_timeout": 90.0}),
        ({"shutDownRebalanceWaitPeriodMs": 5000}, {"close_timeout": 5.0}),
        ({"shutdownRebWaitPeriodMs": 5000}, {"close_timeout": 5.0}),
        ({"needAuthentic": True, "usrName": "me", "usrPassWord": "x"}, {"user": "me", "password": "x"}),
        ({"needAuthentic": False, "usrName": "me", "usrPassWord": "x"}, {"user": "", "password": ""}),
        ({"pullConfirmInLocal": False, "pullRebConfirmTimeoutRollBack": True}, {"start": "earliest"}),
        ({"rollbackIfConfirmTimeout": True}, {"start": "earliest"}),
    ],
)
def test_names_of_tubemq_that_are_honoured(given, expected):
    own = {"target": TARGET, "group": "g", "topics": "t"}
    config = load_consumer_config(**{name: own[name] for name in own if name not in expected}, env={}, **given)
    assert {name: getattr(config, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pushFetchThreadCnt": 4}, "'pushFetchThreadCnt' has no counterpart here: there are no listeners"),
        ({"maxRegisterRetryTimes": 4}, "has no counterpart here: masters are asked until one answers"),
        ({"trustStorePath": "/x.jks"}, "has no counterpart here: PEM files are read"),
        ({"consumePosition": 2}, "'consumePosition': 2 is not a position; give -1, 0 or 1"),
        ({"pullConfirmInLocal": True}, "has no counterpart: a confirm is told to the broker"),
        ({"rollbackIfConfirmTimeout": False}, "has no counterpart: a pack without a confirm is always delivered again"),
        ({"rpcTimeoutMs": 1000}, "option call_timeout (argument): 1.0 is too small; allowed is 3s .. 10m"),
        ({"consumerGroup": "h"}, "'group' and 'consumerGroup' both set group, to different values; keep one"),
        ({"usrName": "me", "usrPassWord": 5}, "option password (argument): the given value is of type int"),
    ],
)
def test_names_of_tubemq_that_are_refused(given, message):
    with pytest.raises(ConfigError) as caught:
        load(**given)
    assert message in str(caught.value)


def test_a_file_of_another_client_is_read_with_warnings(tmp_path, caplog):
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"consumerGroup": "h", "consumePosition": 0, "pushFetchThreadCnt": 4}))
    with caplog.at_level(logging.WARNING, logger="dataproxy.config"):
        config = load_consumer_config(TARGET, topics="t", file=path, env={})
    assert (config.group, config.start) == ("h", "latest")
    assert len(caplog.messages) == 3
    assert "it is left out" in caplog.text


def test_every_name_of_tubemq_says_where_it_comes_from():
    names = [entry.name.lower() for entry in (*CONSUMER.aliases, *CONSUMER.refusals)]
    assert sorted(set(names)) == sorted(names)
    for entry in (*CONSUMER.aliases, *CONSUMER.refusals):
        assert entry.sdks
        assert set(entry.sdks) <= {"TubeMQ Java", "TubeMQ C++"}
    for alias in CONSUMER.aliases:
        given = [set(alias.convert(value)) for value in ("1", "false", "true") if converts(alias, value)]
        assert given
        assert set().union(*given) <= set(CONSUMER.by_name)


def converts(alias, value):
    try:
        alias.convert(value)
    except ValueError:
        return False
    return True
