"""Producers of TubeMQ without servers: options, attributes, clusters, proofs."""

from __future__ import annotations

import time
from typing import Any

import pytest

from dataproxy.config import load_producer_config
from dataproxy.errors import ConfigError
from dataproxy.masters.target import parse_target
from dataproxy.producer.discovery.targets import parse_target as parse_proxies
from dataproxy.producer.tubemq.attributes import attribute_text, check_topic, item_text
from dataproxy.producer.tubemq.layout import Layout, Places
from dataproxy.producer.tubemq.session import MasterSession, proof_size
from dataproxy.types import ResolvedEndpoint
from dataproxy.wire.tubemq.texts import Broker, Topic

MASTERS = "tubemq://m1,m2:18715"
ADMISSION = (5, b"")


def load(target: Any = MASTERS, **options: Any) -> Any:
    return load_producer_config(target, env={}, **options)


def places(*topics: str, brokers: int = 2) -> Places:
    return Places(
        {i: Broker(i, f"10.0.0.{i}", 8123) for i in range(1, brokers + 1)},
        {topic.name: topic for topic in map(Topic.read, topics)},
    )


def address(broker: Broker) -> list[ResolvedEndpoint]:
    return [ResolvedEndpoint(broker.host, broker.port, 2, broker.host, f"{broker.host}:{broker.port}")]


def test_defaults_follow_the_target():
    config = load()
    assert (config.discovery_interval, config.key_buckets, config.max_frame_bytes) == (10.0, 128, 20 << 20)
    config = load(discovery_interval=25, key_buckets=4, max_frame_bytes="64KiB")
    assert (config.discovery_interval, config.key_buckets, config.max_frame_bytes) == (25.0, 4, 64 << 10)
    config = load("tcp://h:1")
    assert (config.discovery_interval, config.key_buckets, config.max_frame_bytes) == (120.0, 16, 512 << 10)


@pytest.mark.parametrize(
    "options",
    [
        {"group_id": "g"}, {"group_ids": ["g"]}, {"protocol": "http"}, {"protocol": "v1"}, {"message_type": 5},
        {"joined_lines": True}, {"compression": "snappy"}, {"trace_address": "10.0.0.1"}, {"exact_time": True},
        {"attribute_escape": "percent"}, {"ack": "sink"}, {"ack": "none"}, {"start": "connect"},
        {"manager_secret_id": "i", "manager_secret_key": "k"}, {"manager_secret_file": "/f"},
        {"manager_header_file": "/f"}, {"manager_tenant": "t"}, {"cache_dir": "/d"},
    ],
)  # fmt: skip
def test_options_of_proxies_are_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        load(**options)
    assert next(iter(options)) in str(caught.value)
    assert "no meaning" in str(caught.value)
    assert load("http://manager:1", **{"group_id": "g", **options}) if "http" not in options.values() else True


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"user": "u"}, "password"), ({"password": "p"}, "user"), ({"user": "a b", "password": "p"}, "blanks"),
        ({"tls_ca": "/f"}, "tubemqs://"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit_together(options: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        load(**options)


def test_a_user_is_for_masters_alone():
    with pytest.raises(ConfigError, match="only TubeMQ"):
        load("tcp://h:1", user="u", password="p")
    assert load(user="u", password="p").user == "u"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["tubemq://a:1", "tubemq://b:2"], "tubemq://a:1,b:2"), (["tubemq://a:1,b:2"], "tubemq://a:1,b:2"),
        (["tubemqs://a:1", "tubemqs://b:2"], "tubemqs://a:1,b:2"),
    ],
)  # fmt: skip
def test_targets_may_be_lists(given: list[str], text: str) -> None:
    assert load(given).target == text


def test_lists_of_two_kinds_are_refused():
    with pytest.raises(ConfigError, match="mixes"):
        load(["tubemq://a:1", "tcp://b:2"])
    with pytest.raises(ConfigError, match="dataproxy topics"):
        parse_proxies("tubemq://a:1")


def test_attributes_are_written_with_the_filter_item_first():
    assert attribute_text({"b": "2", "$msgTime$": "202501020304", "a": "1", "$msgType$": "x"}) == (
        "$msgType$=x,$msgTime$=202501020304,a=1,b=2"
    )
    assert item_text(None, None, ()) == (-1, b"")
    when = time.time_ns() // 1_000_000
    assert item_text(None, when, ())[0] == when
    assert item_text({"$msgTime$": "202501020304"}, when, ())[1] == b"$msgTime$=202501020304"
    assert item_text(None, when, ("$msgTime$",))[1] == b""


@pytest.mark.parametrize("name", ["a", "orders", "A_b-9", "x" * 64])
def test_names_of_topics(name: str) -> None:
    assert check_topic(name) == name


def test_topics_with_the_same_places_share_a_cluster():
    layout = Layout(0)
    found = places("a#1:2:1,2:2:1#", "b#2:2:1,1:2:1#", "c#1:3:1#", brokers=2)
    picture = layout.draw(["a", "b", "c", "gone"], found, address, ADMISSION)
    first, second, third, none = picture.groups or ()
    assert first == second != third
    assert none == -1
    assert picture.fixed == (-1,) * 4
    by_number = {cluster.number: cluster for cluster in picture.clusters}
    assert by_number[first].layouts == {"10.0.0.1:8123": (1, 2), "10.0.0.2:8123": (1, 2)}
    assert by_number[third].layouts == {"10.0.0.1:8123": (1, 3)}
    assert layout.draw(["a", "b", "c", "gone"], found, address, ADMISSION) == picture


def test_a_changed_layout_is_another_cluster_for_ever():
    layout = Layout(0)
    numbers = [
        (layout.draw(["a"], places(text), address, ADMISSION).groups or ())[0]
        for text in ("a#1:1:1#", "a#1:2:1#", "a#1:1:1#", "a#1:1:2#")
    ]
    assert len(set(numbers)) == 4


def test_a_broker_that_nobody_names_is_left_out():
    picture = Layout(2).draw(["a"], places("a#1:1:1,7:5:1#"), address, ADMISSION)
    assert [list(cluster.layouts or ()) for cluster in picture.clusters] == [["10.0.0.1:8123"]] * 2
    assert picture.fixed == (-1, 0, 0)
    nothing = Layout(2).draw(["a"], places("a#7:5:1#"), address, ADMISSION)
    assert (nothing.groups, nothing.fixed) == ((-1, -1, -1), (-1, -1, -1))


def test_buckets_of_keys_belong_to_partitions_in_turn():
    layout = Layout(5)
    picture = layout.draw(["a", "b"], places("a#1:1:2,2:1:1#", "b#1:1:2,2:1:1#"), address, ADMISSION)
    groups, fixed = picture.groups or (), picture.fixed or ()
    assert layout.step == 6
    assert len(groups) == len(fixed) == 12
    assert fixed[:6] == (-1, 0, 10_000, 0, 0, 10_000) == fixed[6:]
    assert groups[1] == groups[2] == groups[4] != groups[3]
    assert groups[0] not in groups[1:6]
    assert groups[:6] == groups[6:]


def test_the_proof_of_a_user_always_has_the_same_length():
    config = load(user="me", password="s3cret")
    session = MasterSession(config, parse_target(config.target), "name", None)
    proofs = {len(session.admission[1]) for _ in range(200)}
    assert proofs == {proof_size("me")}
    user, stamp, nonce, signature = session.admission[1].decode().split(" ")
    assert (user, len(stamp), len(nonce), len(signature)) == ("me", 13, 10, 30)
    assert MasterSession(load(), parse_target(MASTERS), "name", None).admission == (-2, b"")
    assert proof_size("") == 0
