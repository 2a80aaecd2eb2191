"""Consumers whose application chooses their partitions."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any

import pytest

from dataproxy import AsyncConsumer, Consumer
from dataproxy.errors import (
    ClosedError,
    ConfigError,
    ConfirmError,
    ForkedError,
    GroupRefusedError,
    LocalProtocolError,
    SeekError,
    TransportError,
)
from tests.support.consumers import Opener, balanced, drain, next_pack, quick_members
from tests.support.tubeserver import TubeServer
from tests.support.waiting import SECONDS, eventually

INDEX = 28
KEYS = [f"1:three:{i}" for i in range(3)]
REGISTER = "RegisterRequestC2B"
HEARTBEAT = "HeartRequestC2MV2"


def choosing(opened: Opener, topics: Any = "three", **options: Any) -> Consumer:
    """Return a consumer that chooses, whose group it is alone."""
    return opened(topics, balance="client", **options)


def reads(consumer: Consumer, *keys: str) -> bool:
    return eventually(lambda: consumer.assignment() == list(keys))


def test_nothing_is_read_before_it_is_chosen(tube: TubeServer, opened: Opener) -> None:
    for i in range(3):
        tube.put("three", b"%d" % i, partition=i)
    consumer = choosing(opened)
    assert consumer.available(SECONDS) == KEYS
    assert (consumer.assignment(), consumer.poll(0.05)) == ([], None)
    consumer.assign([KEYS[1]])
    assert drain(consumer, 1) == [b"1"]
    assert consumer.assignment() == [KEYS[1]]
    assert consumer.poll(0.05) is None


def test_another_choice_takes_the_place_of_the_one_before(tube: TubeServer, opened: Opener) -> None:
    told: list[tuple[Any, ...]] = []
    consumer = choosing(
        opened, on_assigned=lambda key: told.append((key,)), on_revoked=lambda key, lost: told.append((key, lost))
    )
    consumer.assign(KEYS[:2])
    assert reads(consumer, *KEYS[:2])
    consumer.assign({KEYS[1]: None, KEYS[2]: "latest"})
    assert reads(consumer, *KEYS[1:])
    assert eventually(lambda: tube.owner("g", "three", 0) is None and len(told) == 4)
    assert (KEYS[0], False) in told
    assert (KEYS[1], False) not in told
    consumer.assign([])
    assert reads(consumer)
    assert eventually(lambda: [tube.owner("g", "three", i) for i in range(3)] == [None] * 3)


def test_the_master_is_told(tube: TubeServer, opened: Opener) -> None:
    consumer = choosing(opened)
    consumer.assign([KEYS[0], KEYS[2]])
    assert eventually(lambda: tube.reported("g", consumer.client) == ("three#1:0,1:2",))
    assert tube.members("g") == [consumer.client]
    consumer.close()
    assert tube.members("g") == []


def test_partitions_begin_where_they_are_wanted(tube: TubeServer, opened: Opener) -> None:
    tube.settings.pack_bytes = 1
    for i in range(6):
        tube.put("one", b"%d" % i)
    consumer = choosing(opened, "one")
    consumer.assign({"1:one:0": 4 * INDEX})
    assert drain(consumer, 1) == [b"4"]
    consumer.assign({"1:one:0": "earliest"})
    assert drain(consumer, 1) == [b"0"]
    consumer.assign(["1:one:0"])  # it goes on
    assert drain(consumer, 1) == [b"1"]
    consumer.assign({"1:one:0": 1000 * INDEX})
    assert eventually(lambda: consumer.position() == {"1:one:0": 6 * INDEX})
    tube.put("one", b"new")
    assert drain(consumer, 1) == [b"new"]
    consumer.close()
    again = choosing(opened, "one", start="latest")
    again.assign(["1:one:0"])
    tube.put("one", b"newer")
    assert drain(again, 1) == [b"newer"]  # at the group's stored offset


def test_seek_pause_and_confirm_work_as_elsewhere(tube: TubeServer, opened: Opener) -> None:
    tube.settings.pack_bytes = 1
    for i in range(6):
        tube.put("one", b"%d" % i)
    consumer = choosing(opened, "one")
    consumer.assign(["1:one:0"])
    assert drain(consumer, 2) == [b"0", b"1"]
    out = next_pack(consumer)
    consumer.pause()
    assert consumer.seek("1:one:0", 5 * INDEX) == 5 * INDEX
    with pytest.raises(ConfirmError):
        out.confirm()
    assert consumer.position() == {"1:one:0": 5 * INDEX}
    consumer.resume()
    assert drain(consumer, 1) == [b"5"]
    with pytest.raises(SeekError):
        consumer.seek("1:one:0", 7 * INDEX)
    assert balanced(consumer.stats().packs)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (["1:three:9"], "there is no partition '1:three:9'"),
        (["1:three:0", "2:three:0"], "there is no partition '2:three:0'"),
        (["1:one:0"], "there is no partition '1:one:0'"),
        ({"1:three:0": 27}, "offset 27 is not a multiple of 28"),
        ({"1:three:0": -28}, "offset -28 is below 0"),
        ({"1:three:0": "end"}, "offset 'end' is not a whole number"),
        ("1:three:0", "'1:three:0' are no partitions"),
        (None, "None are no partitions"),
        ([5], "5 is not the key of a partition"),
        ([b"1:three:0"], "is not the key of a partition"),
    ],
)
def test_what_cannot_be_chosen_changes_nothing(opened: Opener, wrong: Any, text: str) -> None:
    consumer = choosing(opened)
    consumer.assign([KEYS[1]])
    assert reads(consumer, KEYS[1])
    with pytest.raises(ConfigError) as caught:
        consumer.assign(wrong)
    assert text in str(caught.value)
    assert consumer.assignment() == [KEYS[1]]


def test_members_divide_partitions_themselves(tube: TubeServer, opened: Opener) -> None:
    for i in range(3):
        tube.put("three", b"%d" % i, partition=i)
    members = [choosing(opened, members=2, node=node) for node in range(2)]
    for node, member in enumerate(members):
        member.assign([key for i, key in enumerate(member.available()) if i % 2 == node])
    assert sorted(drain(members[0], 2)) == [b"0", b"2"]
    assert drain(members[1], 1) == [b"1"]


def test_two_members_with_one_number(tube: TubeServer, opened: Opener) -> None:
    first = choosing(opened, members=2, node=1)
    first.wait_ready(SECONDS)
    second = choosing(opened, members=2, node=1)
    with pytest.raises(GroupRefusedError, match="another member has this number") as caught:
        second.wait_ready(SECONDS)
    assert caught.value.details["code"] == 430
    with pytest.raises(GroupRefusedError):
        second.assign(KEYS)
    first.close()
    second.close()


def test_a_partition_that_another_member_has_comes_when_it_is_free(
    tube: TubeServer, opened: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    first = choosing(opened, members=2, node=0, register_retries=1)
    first.assign([KEYS[0]])
    assert reads(first, KEYS[0])
    with caplog.at_level("WARNING", logger="dataproxy.consumer"):
        second = choosing(opened, members=2, node=1, register_retries=1)
        second.assign(KEYS[:2])
        assert reads(second, KEYS[1])
        assert eventually(lambda: any("another consumer of the group has it" in text for text in caplog.messages))
    assert first.assignment() == [KEYS[0]]
    first.assign([])
    assert reads(second, *KEYS[:2])


def test_a_broker_that_comes_back_is_registered_again(tube: TubeServer, opened: Opener) -> None:
    told: list[tuple[str, bool]] = []
    consumer = choosing(opened, on_revoked=lambda key, lost: told.append((key, lost)))
    consumer.assign(KEYS)
    assert reads(consumer, *KEYS)
    tube.stop_broker()
    for i in range(3):
        tube.put("three", b"%d" % i, partition=i)
    tube.start_broker()
    assert sorted(drain(consumer, 3, distinct=True)) == [b"0", b"1", b"2"]
    assert {lost for _, lost in told} <= {True}


def test_a_master_that_forgets_costs_nothing(tube: TubeServer, opened: Opener) -> None:
    told: list[Any] = []
    consumer = choosing(opened, on_revoked=lambda *what: told.append(what))
    consumer.assign(KEYS)
    assert reads(consumer, *KEYS)
    tube.stop_master()
    tube.start_master()
    assert eventually(lambda: tube.members("g") == [consumer.client])
    assert eventually(lambda: tube.reported("g", consumer.client) == ("three#1:0,1:1,1:2",))
    assert (consumer.assignment(), told) == (KEYS, [])


def test_the_other_balance_cannot_choose(tube: TubeServer, opened: Opener) -> None:
    consumer = opened()
    for call in (consumer.available, lambda: consumer.assign(["1:one:0"])):
        with pytest.raises(LocalProtocolError, match="the master chooses"):
            call()
    assert eventually(lambda: consumer.assignment() == ["1:one:0"])
    other = choosing(opened, "one")
    with pytest.raises(GroupRefusedError) as caught:
        other.wait_ready(SECONDS)
    assert caught.value.details["code"] == 424


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"node": 1}, "node (1) is given without balance='client'"),
        ({"members": 2}, "members (2) is given without session or balance='client'"),
        ({"balance": "client", "node": 1}, "node (1) has to be below members (1)"),
        ({"balance": "client", "session": "s"}, "session does not go with balance 'client'"),
        ({"balance": "me"}, "option balance"),
    ],
)
def test_options_that_cannot_be(opened: Opener, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        opened(**options)
    assert text in str(caught.value)


def test_no_master(tube: TubeServer, opened: Opener) -> None:
    tube.stop_master()
    consumer = choosing(opened)
    with pytest.raises(TransportError) as caught:
        consumer.available(0.2)
    assert caught.value.code == "NO_MASTER"
    tube.start_master()
    assert consumer.available(SECONDS) == KEYS


def test_a_master_that_does_not_say_what_there_is(tube: TubeServer, opened: Opener) -> None:
    tube.on("GetPartMetaRequestC2M", ("code", 500, "no"), times=None)
    consumer = choosing(opened)
    consumer.wait_ready(SECONDS)
    with pytest.raises(TransportError, match="which partitions there are"):
        consumer.assign(KEYS, 0.2)


def test_after_close_and_in_a_child(tube: TubeServer, opened: Opener) -> None:
    consumer = choosing(opened)
    consumer.assign(KEYS)
    assert reads(consumer, *KEYS)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            consumer.assign([])
        except ForkedError:
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    consumer.close()
    assert [tube.owner("g", "three", i) for i in range(3)] == [None] * 3
    with pytest.raises(ClosedError):
        consumer.assign([])
    with pytest.raises(ClosedError):
        consumer.available()


def test_threads_that_choose_at_once(tube: TubeServer, opened: Opener) -> None:
    consumer = choosing(opened)
    consumer.available(SECONDS)
    begin = threading.Barrier(3)

    def choose(key: str) -> None:
        begin.wait(SECONDS)
        for _ in range(20):
            consumer.assign([key])

    threads = [threading.Thread(target=choose, args=(key,)) for key in KEYS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    consumer.assign([KEYS[0]])
    assert reads(consumer, KEYS[0])
    assert eventually(lambda: [tube.owner("g", "three", i) for i in (1, 2)] == [None] * 2)
    tube.put("three", b"x")
    assert drain(consumer, 1) == [b"x"]


def test_in_a_loop(tube: TubeServer) -> None:
    for i in range(3):
        tube.put("three", b"%d" % i, partition=i)

    async def main() -> list[bytes]:
        options: dict[str, Any] = {"balance": "client", "not_found_wait": 0.02}
        async with AsyncConsumer(tube.target, group="g", topics=["three"], **options) as consumer:
            assert await consumer.available() == KEYS
            with pytest.raises(ConfigError):
                await consumer.assign(["1:three:7"])
            await consumer.assign({KEYS[2]: "earliest"})
            pack = await consumer.poll(SECONDS)
            assert pack is not None
            await pack.confirm()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(consumer.assign([]), 0)
            return list(pack.bodies())

    with quick_members():
        assert asyncio.run(main()) == [b"2"]
