"""Confirms and rollbacks that come late, twice, or for what is another's."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest

from dataproxy.errors import ClosedError, DataProxyError
from tests.support.consumers import COMMIT, GET, Opener, balanced, drain, next_pack
from tests.support.tubeserver import TubeServer
from tests.support.waiting import eventually


@pytest.fixture
def filled(tube: TubeServer) -> TubeServer:
    tube.settings.pack_bytes = 1
    for i in range(3):
        tube.put("one", b"%d" % i)
    return tube


def code_of(call: Callable[[], Any]) -> Any:
    """Return the code of the error that a call raises."""
    with pytest.raises(DataProxyError) as caught:
        call()
    return caught.value.code


@pytest.mark.usefixtures("filled")
def test_a_pack_that_is_out_for_too_long_comes_again(opened: Opener) -> None:
    consumer = opened(confirm_timeout=1)
    pack = next_pack(consumer)
    again = next_pack(consumer)
    assert (pack.outcome, pack.bodies(), again.bodies()) == ("expired", [b"0"], [b"0"])
    for method in (pack.confirm, pack.rollback, lambda: pack.confirm(wait=False)):
        assert code_of(method) == "CONFIRM_LATE"
    again.confirm()
    assert sorted(drain(consumer, 2)) == [b"1", b"2"]
    packs = consumer.stats().packs
    assert (packs.expired, packs.confirmed) == (1, 3)


@pytest.mark.usefixtures("filled")
def test_time_counts_from_when_the_application_has_it(opened: Opener) -> None:
    consumer = opened(confirm_timeout=1)
    assert eventually(lambda: consumer.stats().packs.held == 1)
    assert not threading.Event().wait(1.2)  # longer than confirm_timeout: the time itself is under test
    next_pack(consumer).confirm()
    assert consumer.stats().packs.expired == 0


@pytest.mark.usefixtures("filled")
def test_a_pack_ends_once(opened: Opener) -> None:
    consumer = opened()
    pack = next_pack(consumer)
    pack.confirm()
    assert [code_of(method) for method in (pack.confirm, pack.rollback)] == ["CONFIRMED_TWICE"] * 2
    pack = next_pack(consumer)
    pack.rollback()
    assert [code_of(method) for method in (pack.confirm, pack.rollback)] == ["CONFIRMED_TWICE"] * 2
    assert drain(consumer, 2) == [b"1", b"2"]


@pytest.mark.usefixtures("filled")
def test_of_many_threads_one_ends_a_pack(opened: Opener) -> None:
    consumer = opened()
    pack = next_pack(consumer)
    start = threading.Barrier(8)
    codes = []

    def end(number: int) -> None:
        start.wait()
        try:
            (pack.confirm if number % 2 else pack.rollback)()
        except DataProxyError as error:
            codes.append(error.code)

    threads = [threading.Thread(target=end, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == ["CONFIRMED_TWICE"] * 7
    assert eventually(lambda: pack.outcome != "held")
    assert balanced(consumer.stats().packs)


def test_a_confirm_that_is_not_waited_for(filled: TubeServer, opened: Opener) -> None:
    go = threading.Event()
    filled.on(COMMIT, ("hold", go))
    consumer = opened()
    pack = next_pack(consumer)
    pack.confirm(wait=False)
    assert eventually(lambda: filled.held == 1)
    assert pack.outcome == "held"
    assert code_of(pack.confirm) == "CONFIRMED_TWICE"
    go.set()
    assert eventually(lambda: pack.outcome == "confirmed")
    filled.on(COMMIT, ("code", 500, "no"), worked=True)
    pack = next_pack(consumer)
    consumer.confirm(pack, wait=False)
    assert eventually(lambda: pack.outcome == "expired")
    assert pack.code == 500
    assert drain(consumer, 1) == [b"2"]


@pytest.mark.usefixtures("filled")
def test_a_pack_belongs_to_its_consumer(opened: Opener) -> None:
    consumer, other = opened(), opened(group="other")
    pack, others = next_pack(consumer), next_pack(other)
    for wrong in (others, None, 5, "x", [pack], pack[0], pack.to_arrow()):
        for method in (consumer.confirm, consumer.rollback):
            assert code_of(lambda method=method, wrong=wrong: method(wrong)) == "LOCAL_PROTOCOL"
    pack.confirm()
    others.confirm()
    assert (pack.outcome, others.outcome) == ("confirmed", "confirmed")


def test_a_confirm_of_a_partition_that_the_broker_gave_to_another(filled: TubeServer, opened: Opener) -> None:
    consumer = opened()
    pack = next_pack(consumer)
    filled.on(COMMIT, ("code", 401, "another's"))
    assert code_of(pack.confirm) == "CONFIRM_REFUSED"
    assert drain(consumer, 3) == [b"0", b"1", b"2"]
    assert consumer.stats().packs.expired == 1


def test_a_confirm_after_the_broker_forgot_the_reader(filled: TubeServer, opened: Opener) -> None:
    consumer = opened()
    pack = next_pack(consumer)
    filled.stop_broker()
    filled.start_broker()
    assert code_of(pack.confirm) in ("CONFIRM_REFUSED", "CONFIRM_UNANSWERED", "CONFIRM_REVOKED")
    assert drain(consumer, 3) == [b"0", b"1", b"2"]


# --- the end of a consumer


def test_packs_are_confirmed_while_the_consumer_closes(filled: TubeServer, opened: Opener) -> None:
    consumer = opened(release_wait=30)
    pack = next_pack(consumer)
    thread = threading.Thread(target=consumer.close)
    thread.start()
    assert eventually(lambda: not consumer.assignment())
    assert code_of(consumer.poll) == "CLOSED"
    pack.confirm()
    thread.join(30)
    assert not thread.is_alive()
    assert filled.confirmed("g", "one", 0) == 28
    assert filled.owner("g", "one", 0) is None


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("timeout", [0, 30])
def test_a_pack_of_a_closed_consumer(opened: Opener, timeout: float) -> None:
    consumer = opened()
    pack = next_pack(consumer)
    record = pack[0]
    consumer.close(timeout)
    assert eventually(lambda: pack.outcome == "expired")
    assert code_of(pack.confirm) == "CONFIRM_REVOKED"
    assert code_of(pack.rollback) == "CONFIRM_REVOKED"
    assert (record.body, pack.bodies(), len(pack.to_arrow())) == (b"0", [b"0"], 1)
    with pytest.raises(ClosedError):
        consumer.poll(0)
    assert balanced(consumer.stats().packs)


# --- packs as objects


@pytest.mark.usefixtures("filled")
def test_records_outlive_their_pack_and_consumer(opened: Opener) -> None:
    consumer = opened()
    record = next_pack(consumer)[0]
    consumer.close()
    opened.opened.clear()
    del consumer
    gc.collect()
    assert (record.body, record.topic, record.index) == (b"0", "one", 0)
    assert "1:one:0" in repr(record)


@pytest.mark.usefixtures("filled")
def test_packs_are_not_copied(opened: Opener) -> None:
    consumer = opened()
    pack = next_pack(consumer)
    for thing in (pack, pack[0], pack.to_arrow(), consumer):
        for do in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError):
                do(thing)
    for kind in (type(pack), type(pack[0])):
        with pytest.raises(TypeError):
            kind()
    with pytest.raises(TypeError):
        type(pack.to_arrow())(None)


@pytest.mark.usefixtures("filled")
def test_a_pack_is_a_sequence(opened: Opener) -> None:
    pack = next_pack(opened())
    for index in (1, -2, 1 << 40, -(1 << 40), 1 << 100):
        with pytest.raises(IndexError):
            pack[index]
    for index in ("0", 0.0, None):
        with pytest.raises(TypeError):
            pack[index]
    assert (pack[True - 1].body, pack[:: 1 << 100][0].body, pack[5:], pack[0] in list(pack)) == (b"0", b"0", [], False)
    for name in ("topic", "partition", "outcome", "offset", "done"):
        with pytest.raises(AttributeError):
            setattr(pack, name, "x")
    assert {name for name in dir(pack) if not name.startswith("_")} == {
        "bodies", "code", "confirm", "done", "max_offset", "nbytes", "offset", "outcome", "partition", "rollback",
        "to_arrow", "topic",
    }  # fmt: skip
    assert {name for name in dir(pack[0]) if not name.startswith("_")} == {
        "attributes", "body", "id", "index", "partition", "topic",
    }  # fmt: skip


def test_a_stopped_broker_holds_nobody_up(filled: TubeServer, opened: Opener) -> None:
    consumer = opened()
    pack = next_pack(consumer)
    filled.stop_broker()
    assert code_of(pack.confirm) in ("CONFIRM_UNANSWERED", "CONFIRM_REVOKED")
    assert consumer.poll(0.01) is None
    assert [call.method for call in filled.calls].count(GET) >= 1
