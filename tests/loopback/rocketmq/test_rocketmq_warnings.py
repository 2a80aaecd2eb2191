"""What the log says of servers that cannot be reached: equal warnings come once in a while, not at each try."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from dataproxy import Consumer
from dataproxy.rocketmq.network.client import Client
from tests.support.pushserver import claimed, pushing
from tests.support.rocketserver import RocketServer
from tests.support.waiting import SECONDS, eventually


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything be tried again at once, and no ten seconds go by."""
    for name in ("rocketmq.group.member._AGAIN_S", "consumer.pushed.engine._AGAIN_S", "rocketmq.group.member._COMMIT_S",
                 "rocketmq.network.connections._REFUSED_S"):  # fmt: skip
        monkeypatch.setattr(f"dataproxy.{name}", 0.01)
    monkeypatch.setattr("dataproxy.logs._REPEAT_SECONDS", 1e6)


def warnings(caplog: pytest.LogCaptureFixture) -> Counter[str]:
    return Counter(one.getMessage() for one in caplog.records if one.levelname == "WARNING")


def test_a_hub_that_cannot_be_reached_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[str] = []
    real = Client.find

    def find(self: Client, topic: str, **given: Any) -> None:
        tries.append(topic)
        real(self, topic, **given)

    monkeypatch.setattr(Client, "find", find)
    with RocketServer({"T": 1}) as server:
        target = server.target
    with Consumer(target, group="g", topics=["T"], close_timeout=1):
        assert eventually(lambda: len(tries) > 20)
        said = warnings(caplog)
    [text] = said
    assert said[text] == 1 and f"no connection to {target.removeprefix('rocketmq://')}: Connection refused" in text


def test_a_broker_that_goes_away_is_told_once_for_each_thing_that_it_holds_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pushing(RocketServer({"T": 2})) as here, pushing(RocketServer({"T": 2})) as there:
        here.others["a"] = f"127.0.0.1:{there.port}"
        with Consumer(here.target, group="g", topics=["T"], release_wait=0, close_timeout=1) as consumer:
            consumer.wait_ready(SECONDS)
            assert eventually(lambda: claimed(here) == claimed(there) == {0, 1})
            there.__exit__()
            consumer.pause()  # what the other one does not hear is said to it again and again
            engine, begun = consumer._core, len(here.requests(38))
            for n in range(begun + 1, begun + 21):
                engine._client.keeper.soon(engine._member.rebalance)  # type: ignore[union-attr]
                assert eventually(lambda n=n: len(here.requests(38)) >= n)  # type: ignore[misc]
            said = warnings(caplog)
    assert said and set(said.values()) == {1}
