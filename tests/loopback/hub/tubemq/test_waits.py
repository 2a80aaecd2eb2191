"""Requests that find nothing wait for messages, and hold up nobody."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dataproxy.hub import Hub
from tests.support.rawclient import INDEX, Connection, Reader, Sender, bodies
from tests.support.waiting import eventually

Raw = Callable[[Hub], Connection]
GET = "GetMessageRequestC2B"


@pytest.fixture
def hub(start_hub: Callable[..., Hub]) -> Hub:
    return start_hub(tubemq_port=0, partitions=3, threads=2)


@pytest.fixture
def sender(hub: Hub, raw: Raw) -> Sender:
    connection = raw(hub)
    return Sender(connection, connection, "demo")


def waiting(hub: Hub) -> int:
    service = hub._tubemq
    assert service is not None
    return service.registrations.counts()["waiting"]


def begun(hub: Hub, connection: Connection, partition: int = 0, **more: object) -> tuple[Reader, int]:
    """Return a reader and the number of its request that waits; the first one finds nothing at once."""
    one = Reader(connection, "demo", "g", partition)
    assert one.register(0, **more).errCode == 200
    before = waiting(hub)
    assert one.get()["errCode"] == 404
    serial = connection.post_data(GET, **one.fields())
    assert eventually(lambda: waiting(hub) == before + 1)
    return one, serial


def test_a_message_ends_a_wait(hub: Hub, raw: Raw, sender: Sender) -> None:
    connection = raw(hub)
    _, serial = begun(hub, connection)
    sender.send(0, b"now")
    answer = connection.answer_data(serial, GET)
    assert (bodies(answer), answer["currOffset"], answer["maxOffset"]) == ([b"now"], 0, INDEX)
    assert waiting(hub) == 0


def test_other_calls_of_the_connection_go_on(hub: Hub, raw: Raw, sender: Sender) -> None:
    connection = raw(hub)
    one, serial = begun(hub, connection)
    assert connection.ask("HeartBeatRequestC2B", readStatus=0, **one.heartbeat()).errCode == 200
    assert one.commit()["errCode"] == 200
    assert waiting(hub) == 1
    sender.send(0, b"now")
    assert bodies(connection.answer_data(serial, GET)) == [b"now"]


@pytest.mark.usefixtures("sender")
def test_a_wait_ends_in_time(hub: Hub, raw: Raw) -> None:
    connection = raw(hub)
    _, serial = begun(hub, connection)
    hub._core.advance_clock(5.0)
    assert connection.answer_data(serial, GET)["errCode"] == 404
    assert waiting(hub) == 0


def test_messages_that_do_not_match_end_no_wait(hub: Hub, raw: Raw, sender: Sender) -> None:
    connection = raw(hub)
    one, serial = begun(hub, connection, filterCondStr=["b"])
    sender.send(0, b"of a", attribute=b"$msgType$=a", msgType=b"a")
    service = hub._tubemq
    assert service is not None
    assert eventually(lambda: service.registrations.found()[0][4] == INDEX)
    assert waiting(hub) == 1
    sender.send(0, b"of b", attribute=b"$msgType$=b", msgType=b"b")
    answer = connection.answer_data(serial, GET)
    assert (bodies(answer), answer["currOffset"]) == ([b"of b"], INDEX)
    assert one.commit()["currOffset"] == 2 * INDEX


def test_a_request_that_waits_takes_nothing_from_one_that_came_after_it(hub: Hub, raw: Raw, sender: Sender) -> None:
    """Its connection may be broken: who has lost it asks again by another, and confirms what that one gave."""
    first = raw(hub)
    sender.send(0, b"old")
    lost, serial = begun_behind(hub, first)
    service = hub._tubemq
    assert service is not None
    assert service.registrations.reset(b"g", b"demo", 0, 0)
    again = Reader(raw(hub), "demo", "g", 0)
    again.become(lost.client, 0)
    assert bodies(again.get()) == [b"old"]
    sender.send(0, b"new")
    assert first.answer_data(serial, GET)["errCode"] == 404
    assert again.commit()["currOffset"] == INDEX
    assert bodies(again.get()) == [b"new"]


def test_a_request_that_waits_is_told_that_its_client_has_lost_the_partition(
    hub: Hub, raw: Raw, sender: Sender
) -> None:
    """It gives nothing of what came for the new owner, and says that there is another one."""
    first = raw(hub)
    lost, serial = begun(hub, first)
    again = Reader(raw(hub), "demo", "g", 0)
    again.become(lost.client, 0)
    assert again.unregister().errCode == 200
    other = Reader(raw(hub), "demo", "g", 0)
    assert other.register(0).errCode == 200
    sender.send(0, b"for the other")
    assert first.answer_data(serial, GET)["errCode"] == 412
    assert bodies(other.get()) == [b"for the other"]


def begun_behind(hub: Hub, connection: Connection) -> tuple[Reader, int]:
    """Return a reader that has confirmed the only message, and the number of its request that waits for the next."""
    one = Reader(connection, "demo", "g", 0)
    assert one.register(0).errCode == 200
    assert len(bodies(one.get())) == 1
    assert one.commit()["currOffset"] == INDEX
    assert one.get()["errCode"] == 404
    serial = connection.post_data(GET, **one.fields())
    assert eventually(lambda: waiting(hub) == 1)
    return one, serial


@pytest.mark.usefixtures("sender")
def test_a_request_of_many_bytes_does_not_wait(hub: Hub, raw: Raw) -> None:
    connection = raw(hub)
    one, _ = begun(hub, connection)
    unknown = b"\xfa\x3e" + b"\x88\x27" + bytes(5000)  # field 999 with 5,000 bytes
    other = connection.post_data(GET, unknown, **one.fields())
    assert connection.answer_data(other, GET)["errCode"] == 404
    assert waiting(hub) == 1


@pytest.mark.usefixtures("sender")
def test_a_closed_connection_waits_for_nothing(hub: Hub, raw: Raw) -> None:
    connection = raw(hub)
    for partition in range(3):
        begun(hub, connection, partition)
    assert waiting(hub) == 3
    connection.close()
    assert eventually(lambda: waiting(hub) == 0)


@pytest.mark.usefixtures("sender")
def test_a_hub_that_closes_answers_those_that_wait(hub: Hub, raw: Raw) -> None:
    connection = raw(hub)
    _, serial = begun(hub, connection)
    hub.close()
    assert connection.answer_data(serial, GET)["errCode"] == 404


def test_a_client_with_one_thread_is_not_kept_from_its_other_partitions(hub: Hub, raw: Raw, sender: Sender) -> None:
    """It waits for partition 1, and asks for partition 0 only when that wait is over."""
    connection = raw(hub)
    other = Reader(connection, "demo", "g", 0)
    assert other.register().errCode == 200
    assert other.get()["errCode"] == 404
    _, serial = begun(hub, connection, 1)
    sender.send(0, b"elsewhere")
    assert connection.answer_data(serial, GET)["errCode"] == 404
    assert bodies(other.get()) == [b"elsewhere"]


@pytest.mark.usefixtures("sender")
def test_a_connection_has_a_bound_of_requests_that_wait(hub: Hub, raw: Raw) -> None:
    connection = raw(hub)
    one, first = begun(hub, connection)
    serials = [connection.post_data(GET, **one.fields()) for _ in range(1030)]
    assert [connection.answer_data(serial, GET)["errCode"] for serial in serials[1023:]] == [404] * 7
    assert waiting(hub) == 1024
    hub._core.advance_clock(5.0)
    assert {connection.answer_data(serial, GET)["errCode"] for serial in [first, *serials[:1023]]} == {404}
