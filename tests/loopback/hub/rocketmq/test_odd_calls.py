"""Calls of every code with nothing, with odd fields and with odd bodies: each is answered, and nobody else suffers."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from dataproxy.hub import Hub
from dataproxy.wire.rocketmq.codes import Code
from dataproxy.wire.rocketmq.headers import REQUESTS, Pull
from dataproxy.wire.rocketmq.messages import SendHeader
from tests.native import probe_rocketmq as wire
from tests.support.remoting import Remote

ODD = [
    "", "0", "-1", "1", "99999999999999999999", "-9223372036854775808", "9223372036854775807", "2147483647", "x", "é",
    "T", "%RETRY%g", "SCHEDULE_TOPIC_XXXX", "TBW102", "a b", "x" * 300, "true", "\x01\x02", "a@b", "||", "*",
]  # fmt: skip
BODIES = [
    b"", b"{}", b"[]", b"null", b"\xff", b'{"a":', b"{{}:1}", b'{"clientID":null}', b'{"mqSet":[{}]}', b"[" * 999,
    b'{"clientId":"c","consumerGroup":"g","mqSet":[{"brokerName":"dataproxy","queueId":-1,"topic":"T"}]}',
    b'{"groupName":"g","retryMaxTimes":-7}', b'{"clientID":"c","consumerDataSet":[{"groupName":""}]}',
]  # fmt: skip
CALLS = 40


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    with Hub(rocketmq_port=0) as hub, Remote(hub.rocketmq_port) as remote:
        remote.send("T", b"m")
        yield hub


def names_of(code: int) -> list[str]:
    """Return names of the fields of a request."""
    kind = {Code.PULL_MESSAGE: Pull, Code.SEND_MESSAGE: SendHeader}.get(code) or REQUESTS.get(code)
    if code in (Code.SEND_MESSAGE_V2, Code.SEND_BATCH_MESSAGE):
        return list("abcdefghijklm")
    return [] if kind is None else list(kind.__struct_encode_fields__)


@pytest.mark.parametrize("code", list(Code))
def test_every_code_with_whatever_is_answered(hub: Hub, code: Code, caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(int(code))
    with Remote(hub.rocketmq_port) as remote:
        for _ in range(CALLS):
            given = {name: chance.choice(ODD) for name in names_of(code) if chance.random() < 0.9}
            number = remote.request(code, chance.choice(BODIES), **given)
            remote.request(code, chance.choice(BODIES), oneway=True, **given)
            if code == Code.PULL_MESSAGE:
                continue  # it may wait
            assert wire.read(remote.answer(number))["opaque"] == number
        assert remote.send("T", b"m")["code"] == 0
        assert not [number for number in remote.answers if number % 2 == 0 and code != Code.PULL_MESSAGE]
    assert not [one for one in caplog.records if one.exc_info], caplog.text
