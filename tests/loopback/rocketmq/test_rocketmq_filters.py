"""Filters of `dataproxy.Consumer` at a hub that pushes: tags, and expressions of SQL92, which name their kind."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Final

import pytest

from dataproxy import Consumer
from dataproxy.config import load_consumer_config
from dataproxy.errors import ConfigError, GroupRefusedError
from dataproxy.hub import Hub
from dataproxy.rocketmq import Producer, PullConsumer, PushConsumer, Sql
from tests.support.rocketpacks import consume, drain
from tests.support.waiting import SECONDS, eventually

_NUMBERS: Final = itertools.count()  # of groups


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    """Return a hub with messages 0 to 5, of which the last three have the tag ``n>2``."""
    with Hub(rocketmq_port=0) as hub:
        with Producer(hub.rocketmq_target, "p") as producer:
            for n in range(6):
                tag = "n>2" if n > 2 else "few"
                producer.send("T", b"%d" % n, tag=tag, queue=0, properties={"n": str(n)}).result(SECONDS)
        yield hub


@pytest.mark.parametrize(
    ("wanted", "first"),
    [
        ({"T": ["sql:n>1"]}, 2), ({"T": "sql:n>=+2"}, 2), ({"T": Sql("n>1")}, 2), ({"T": [Sql("n > 3")]}, 4),
        ("T=sql:n=5", 5), ({"T": ["tag:n>2"]}, 3), ({"T": ["few", "tag:n>2"]}, 0), ("T=tag:n>2", 3),
    ],
    ids=str,
)  # fmt: skip
def test_a_filter_is_what_it_says_it_is(hub: Hub, wanted: Any, first: int) -> None:
    with consume(hub, group=f"g{next(_NUMBERS)}", topics=wanted) as consumer:
        assert drain(consumer, 6 - first) == [b"%d" % n for n in range(first, 6)]


@pytest.mark.parametrize("item", ["n>2", "n=2", "n<>2", "(n)", "a='x'"])
def test_a_filter_that_may_be_either_is_refused_with_the_way_out(item: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Consumer("rocketmq://127.0.0.1:1", group="g", topics={"T": ["few", item]})
    assert caught.value.code == "AMBIGUOUS_FILTER"
    assert f"{item!r} of 'T' may be a tag, and an expression of SQL92" in caught.value.message
    assert all(repr(f"{kind}:{item}") in caught.value.hint for kind in ("sql", "tag"))
    with pytest.raises(ConfigError) as caught:
        PullConsumer("rocketmq://127.0.0.1:1", "g", {"T": item})
    assert caught.value.code == "AMBIGUOUS_FILTER"


@pytest.mark.parametrize(
    ("items", "text"),
    [
        (["sql:n>2", "few"], "an expression of SQL92 stands alone"), (["sql: "], "the expression for topic 'T' is"),
        (["tag:"], "'tag:' of 'T' is not a tag"), (["tag:a b"], "'tag:a b' of 'T' is not a tag"),
        (["n > 2"], "'n > 2' of 'T' may be a tag, and an expression"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_filter_is_refused(items: list[str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        Consumer("rocketmq://127.0.0.1:1", group="g", topics={"T": items})


def test_a_kind_is_kept_by_the_configuration() -> None:
    config = load_consumer_config("rocketmq://127.0.0.1:1", "g", {"T": Sql("n>1"), "U": ["a", "tag:b=c"]})
    assert dict(config.topics) == {"T": ("sql:n>1",), "U": ("a", "tag:b=c")}


@pytest.mark.parametrize("topics", [{"T": Sql("n>")}, {"T": "sql:n>"}], ids=["Sql", "text"])
def test_an_expression_that_cannot_be_read_is_told_by_the_consumer_that_asks_for_it(hub: Hub, topics: Any) -> None:
    with consume(hub, topics=topics) as consumer:
        with pytest.raises(GroupRefusedError, match="the filter 'n>': at character 2 there is the end") as caught:
            consumer.wait_ready(SECONDS)
        assert caught.value.code == "BAD_FILTER" and "expression" in str(caught.value.hint)
        with pytest.raises(GroupRefusedError):
            consumer.poll()
        assert "the filter 'n>'" in consumer.stats().trouble


def test_a_listener_to_which_a_hub_pushes_says_what_is_wrong_with_its_expression(hub: Hub) -> None:
    with PushConsumer(hub.rocketmq_target, "g", {"T": Sql("n>")}, print, push=True) as consumer:
        assert eventually(lambda: "the filter 'n>'" in consumer.trouble)


def test_an_expression_that_cannot_be_read_is_in_the_trouble_of_who_pulls(hub: Hub) -> None:
    said = "topic 'T', expression 'n>': the filter 'n>': at character 2 there is the end"
    with PushConsumer(hub.rocketmq_target, f"g{next(_NUMBERS)}", {"T": Sql("n>")}, print) as consumer:
        assert eventually(lambda: consumer.trouble)
        assert consumer.trouble.startswith(said) and consumer.trouble.count("expression") == 1  # of four queues
    with PullConsumer(hub.rocketmq_target, f"g{next(_NUMBERS)}", {"T": "sql:n>"}) as puller:
        assert eventually(lambda: puller.trouble)
        assert puller.trouble.startswith(said)
    assert puller.trouble == ""
