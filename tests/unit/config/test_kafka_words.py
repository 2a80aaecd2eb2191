"""Options that users of Kafka's clients try first: each is answered with the name here and its unit."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

import dataproxy
from dataproxy.config import CONSUMER, PRODUCER, OptionTable, load_consumer_config, load_producer_config, spark_options
from dataproxy.config.tables.kafka import KAFKA_READ_WORDS, KAFKA_WORDS
from dataproxy.errors import ConfigError
from dataproxy.producer.discovery.targets import parse_target

ROOT = Path(__file__).parents[3]
NAMES = [name for word in KAFKA_WORDS for name in word.names]
READ_NAMES = [name for word in KAFKA_READ_WORDS for name in word.names]
FIRST = {
    "bootstrap_servers": "here it is target: target='tcp://host1:46801,host2:46801'",
    "linger_ms": "here it is linger, in seconds: linger=0.005",
    "linger.ms": "here it is linger, in seconds: linger=0.005",
    "retries": "retries have no number here: a message is sent again until delivery_timeout (seconds) has passed",
    "buffer_memory": "here it is buffer_bytes, in bytes: buffer_bytes=67108864",
    "batch_size": "here it is batch_bytes, in bytes: batch_bytes=262144",
    "acks": "every message is acknowledged here (ack='source'): leave it out; ack='none' for those that ask for none",
    "max_in_flight_requests_per_connection": "buffer_bytes limits what is in flight here",
    "compression_type": "here it is compression, 'snappy' or 'none': compression='snappy'",
    "request_timeout_ms": "here it is ack_timeout, in seconds: ack_timeout=10",
    "delivery_timeout_ms": "here it is delivery_timeout, in seconds: delivery_timeout=120",
    "message.timeout.ms": "here it is delivery_timeout, in seconds: delivery_timeout=120",
    "max_block_ms": "here it is max_block, in seconds: max_block=60",
    "client_id": "a producer has no name here",
    "enable_idempotence": "every message has an id here",
    "key_serializer": "a key is bytes or text here: send(..., key='k'), with ordering='key'",
    "value_serializer": "a body is bytes here: encode it before send",
    "queue.buffering.max.messages": "here it is buffer_messages, in messages: buffer_messages=100000",
}


@pytest.mark.parametrize(("name", "words"), FIRST.items())
def test_each_name_is_answered(name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"there is no option {name!r}: {words}")) as caught:
        load_producer_config("tcp://h", env={}, **{name: 5})
    assert caught.value.code == "UNKNOWN_OPTION"


@pytest.mark.parametrize("kind", [dataproxy.Producer, dataproxy.AsyncProducer])
def test_producers_answer(kind: type) -> None:
    with pytest.raises(ConfigError, match="here it is linger, in seconds"):
        kind("tcp://h", group_id="g", linger_ms=5)


@pytest.mark.parametrize("name", NAMES)
def test_every_spelling_is_answered(name: str) -> None:
    assert name not in PRODUCER.by_name
    assert name not in PRODUCER.by_alias
    assert name not in PRODUCER.by_refusal
    words = PRODUCER.answer(name)
    assert words
    assert [PRODUCER.answer(other) for other in (name.replace("_", "."), name.upper(), f"kafka.{name}")] == [words] * 3


@pytest.mark.parametrize("table", [PRODUCER, CONSUMER], ids=lambda table: table.section)
def test_examples_are_options_with_values_that_are_taken(table: OptionTable) -> None:
    for name in [name for word in table.words for name in word.names]:
        for option, value in re.findall(r"(\w+)=('[^']*'|[\d.]+|False|True)", table.answer(name)):
            if option in table.by_name:
                assert table.by_name[option].parse(value.strip("'")) is not None
            else:
                assert option in ("key", "dedupe", "timeout")


@pytest.mark.parametrize("table", [PRODUCER, CONSUMER], ids=lambda table: table.section)
def test_no_name_is_answered_twice(table: OptionTable) -> None:
    assert len(table.by_word) == len([name for word in table.words for name in word.names])


@pytest.mark.parametrize("name", READ_NAMES)
def test_consumers_answer_every_spelling(name: str) -> None:
    assert not {name} & (CONSUMER.by_name.keys() | CONSUMER.by_alias.keys() | CONSUMER.by_refusal.keys())
    words = CONSUMER.answer(name)
    for other in (name, name.replace("_", "."), name.upper()):
        with pytest.raises(ConfigError, match=re.escape(f"there is no option {other!r}: {words}")):
            load_consumer_config("tubemq://h", "g", "t", env={}, **{other: 5})


def test_the_answer_has_the_names_of_the_place_that_asked() -> None:
    with pytest.raises(ConfigError, match=r"'kafka\.batch\.size': here it is batchBytes, in bytes: batchBytes=262144"):
        spark_options({"kafka.batch.size": "5"})
    words = r"DATAPROXY_LINGER_MS: here it is DATAPROXY_LINGER, in seconds: DATAPROXY_LINGER=0\.005"
    with pytest.raises(ConfigError, match=words):
        load_producer_config("tcp://h", env={"DATAPROXY_LINGER_MS": "5"})
    assert load_producer_config("tcp://h", env={"DATAPROXY_ACKS_OF_OURS": "5", "DATAPROXY_RETRIES": "5"})


def test_the_page_of_configuration_has_every_name() -> None:
    page = (ROOT / "CONFIGURATION.md").read_text()
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \| .* \|$", page.partition("## Names of Kafka's clients")[2], re.MULTILINE)
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row)] == [*NAMES, *READ_NAMES]


@pytest.mark.parametrize("name", sorted(option.name for option in PRODUCER.options if option.kind == "duration"))
def test_a_timedelta_is_a_duration(name: str) -> None:
    option = PRODUCER.by_name[name]
    assert option.parse(timedelta(seconds=option.default)) == option.default
    with pytest.raises(ConfigError, match="is too small"):
        option.parse(timedelta(seconds=-1))


@pytest.mark.parametrize(
    ("given", "target"),
    [
        (["h1:1", "h2"], "tcp://h1:1,h2"),
        (("tcp://h1:1", "[::1]:2"), "tcp://h1:1,[::1]:2"),
        (["h1:1,h2:2"], "tcp://h1:1,h2:2"),
        (["::1"], "tcp://[::1]"),
        (["tcp://2001:db8::1", "fe80::2", "[::1]", "h:1"], "tcp://[2001:db8::1],[fe80::2],[::1],h:1"),
        (["http://m:8083"], "http://m:8083"),
        (["http://m:8083", "http://n:8083"], "http://m:8083,http://n:8083"),
    ],
)
def test_a_list_of_proxies_is_a_target(given: object, target: str) -> None:
    config = load_producer_config(given, env={})  # type: ignore[arg-type]
    assert config.target == target
    parse_target(config.target)
    assert config.replace(target=given) == config
    assert load_producer_config(env={}, proxies=given).target == target


@pytest.mark.parametrize("given", [[], [""], ["h", 5], ["http://m:1", "tcp://n:1"], {"bootstrap.servers": "h"}, 5])
def test_what_is_no_list_of_proxies_is_refused(given: object) -> None:
    with pytest.raises(ConfigError, match="option target"):
        load_producer_config(given, env={})  # type: ignore[arg-type]


def test_calls_that_the_page_for_kafka_users_names_are_there() -> None:
    page = (ROOT / "docs" / "kafka.md").read_text()
    named = re.findall(r"`(Producer|AsyncProducer|Delivery|Delivered)\.(\w+)`", page)
    assert len(named) > 10
    assert not [f"{kind}.{name}" for kind, name in named if not hasattr(getattr(dataproxy, kind), name)]
    for name in re.findall(
        r"`(\w+Error|FlushTimeout)`", page.replace("`BufferError`", "").replace("`KafkaTimeoutError`", "")
    ):
        assert issubclass(getattr(dataproxy, name), dataproxy.DataProxyError)
