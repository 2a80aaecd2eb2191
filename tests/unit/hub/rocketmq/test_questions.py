"""Questions to clients: asked together, answered in time or not at all, and what failed is said."""

from __future__ import annotations

from typing import Any

import pytest

from dataproxy.hub.rocketmq.clients.actions import Ask, Reply
from dataproxy.wire.rocketmq.codes import Answer, Code
from dataproxy.wire.rocketmq.headers import StatusOf
from dataproxy.wire.rocketmq.queues import Queue, read_member_offsets, write_own_offsets
from tests.support.rocketclients import BROKER, RocketHub, refusal

STRAY = "not set any response code"  # of clients that answer with success


def three(versions: tuple[int, int, int] = (409, 409, 409)) -> RocketHub:
    """Return a hub with three members of the group "g"."""
    hub = RocketHub()
    for connection, version in enumerate(versions, 1):
        hub.peer(connection, version=version)
        hub.beat(connection, f"c{connection}", {"g": ["t"]})
    hub.told()
    return hub


def offsets(n: int) -> dict[Queue, int]:
    """Return what a member says of its offsets."""
    return {Queue(BROKER, n, "t"): 10 * n}


def ask(hub: RocketHub, client: str = "", group: str = "g") -> list[Any]:
    """Ask for the offsets of members, and return the requests to them."""
    hub.registry.ask_status("call", StatusOf("t", group, client), hub.now)
    return hub.actions(Ask)


def test_all_members_are_asked_at_once_and_their_offsets_come_together() -> None:
    """RocketMQ asks one after another: so many dead clients, so many times five seconds."""
    hub = three()
    asked = ask(hub)
    assert [(one.connection, one.code) for one in asked] == [
        (one, Code.GET_CONSUMER_STATUS_FROM_CLIENT) for one in (1, 2, 3)
    ]
    assert len({one.number for one in asked}) == 3
    for one in asked:
        assert hub.actions() == []
        hub.registry.answered(one.connection, one.number, 0, STRAY, write_own_offsets(offsets(one.connection)))
    (reply,) = hub.actions(Reply)
    assert isinstance(reply, Reply)
    assert (reply.call, reply.code, reply.remark) == ("call", Answer.SUCCESS, "")
    assert read_member_offsets(reply.body) == {f"c{one}": offsets(one) for one in (1, 2, 3)}


def test_who_fails_is_named_in_the_answer_and_the_rest_is_there_after_five_seconds() -> None:
    """RocketMQ skips who fails in silence."""
    hub = three((409, 27, 409))
    first, last = ask(hub)
    hub.registry.answered(1, first.number, 0, "", write_own_offsets(offsets(1)))
    hub.wait(4.9)
    assert hub.actions() == []
    hub.wait(0.2)
    (reply,) = hub.actions(Reply)
    assert isinstance(reply, Reply)
    assert reply.code == Answer.SUCCESS
    assert read_member_offsets(reply.body) == {"c1": offsets(1)}
    assert "2 of 3 members" in reply.remark
    assert "'c2' (its version is 27" in reply.remark
    assert "'c3' (it has not answered in time)" in reply.remark
    assert not hub.registry.answered(3, last.number, 0, "", write_own_offsets(offsets(3)))
    assert hub.actions() == []


def test_an_old_member_does_not_end_the_question() -> None:
    """RocketMQ stops at the first member that is too old, with an error for all."""
    hub = three((27, 409, 409))
    for one in ask(hub):
        hub.registry.answered(one.connection, one.number, 0, "", write_own_offsets(offsets(one.connection)))
    (reply,) = hub.actions(Reply)
    assert isinstance(reply, Reply)
    assert set(read_member_offsets(reply.body)) == {"c2", "c3"}


def test_a_question_without_any_answer_is_a_failure() -> None:
    hub = three((27, 27, 27))
    assert ask(hub) == []
    hub.registry.ask_status("call", StatusOf("t", "g"), hub.now)
    assert [one.code for one in hub.actions(Reply)] == [Answer.SYSTEM_ERROR]


@pytest.mark.parametrize("client", ["", "c9"])
def test_an_unknown_group_or_client_is_not_on_line(client: str) -> None:
    """RocketMQ takes a null for the group before it says that nobody is on line."""
    hub = RocketHub()
    if client:
        hub = three()
    error = refusal(lambda: hub.registry.ask_status("call", StatusOf("t", "g", client), hub.now))
    assert error.code == Answer.CONSUMER_NOT_ONLINE
    assert client in error.remark


def test_one_client_is_asked_by_its_id() -> None:
    (one,) = ask(three(), "c2")
    assert one.connection == 2


def test_a_member_whose_connection_ends_has_failed_at_once() -> None:
    hub = three()
    asked = ask(hub)
    for connection in (1, 2, 3):
        hub.close(connection)
    (reply,) = hub.actions(Reply)
    assert isinstance(reply, Reply)
    assert reply.code == Answer.SYSTEM_ERROR
    assert reply.remark.count("its connection ended") == 3
    assert not hub.registry.answered(1, asked[0].number, 0, "", b"")


def test_an_answer_that_cannot_be_read_and_one_with_an_error_are_failures_of_their_members() -> None:
    hub = three()
    first, second, third = ask(hub)
    hub.registry.answered(1, first.number, 0, "", b"{]")
    hub.registry.answered(2, second.number, 1, "no such group", b"")
    hub.registry.answered(3, third.number, 0, "", b'{"messageQueueTable":{},"consumerTable":{}}\n')
    (reply,) = hub.actions(Reply)
    assert isinstance(reply, Reply)
    assert "'c1' (the body is not what it should be" in reply.remark
    assert "'c2' (no such group)" in reply.remark
    assert read_member_offsets(reply.body) == {"c3": {}}


def test_an_answer_of_another_connection_is_nobodys() -> None:
    hub = three()
    first, *_ = ask(hub)
    assert not hub.registry.answered(2, first.number, 0, "", write_own_offsets(offsets(2)))
    assert not hub.registry.answered(1, 12345, 0, "", b"")
    assert hub.registry.answered(1, first.number, 0, "", write_own_offsets(offsets(1)))


def relay(hub: RocketHub, client: str = "c1", group: str = "g") -> Any:
    """Pass a question on, and return the request to the client."""
    fields = {"consumerGroup": group, "clientId": client}
    code = Code.GET_CONSUMER_RUNNING_INFO
    hub.registry.relay("call", code, group, client, fields, b"body", hub.now)
    (asked,) = hub.actions(Ask)
    return asked


def test_a_question_is_passed_on_to_the_newest_connection_and_its_answer_back() -> None:
    hub = three()
    hub.beat(7, "c1", {"g": ["t"]})
    asked = relay(hub)
    assert (asked.connection, asked.code, asked.body) == (7, Code.GET_CONSUMER_RUNNING_INFO, b"body")
    assert asked.header == {"consumerGroup": "g", "clientId": "c1"}
    hub.registry.answered(7, asked.number, 0, STRAY, b"{}")
    assert hub.actions(Reply) == [Reply("call", 0, STRAY, b"{}")]


@pytest.mark.parametrize("way", ["silence", "close"])
def test_a_client_that_does_not_answer_what_was_passed_on(way: str) -> None:
    hub = three()
    relay(hub)
    if way == "close":
        hub.close(1)
    else:
        hub.wait(9.9)
        assert hub.actions(Reply) == []
        hub.wait(0.2)
    (reply,) = hub.actions(Reply)
    assert isinstance(reply, Reply)
    assert reply.code == Answer.CONSUME_MSG_TIMEOUT
    assert "'c1'" in reply.remark


def test_nobody_is_asked_who_is_not_there_or_too_old() -> None:
    hub = three((61, 62, 409))
    for client, group in (("c9", "g"), ("c1", "nobody"), ("c1", "g")):
        error = refusal(lambda client=client, group=group: relay(hub, client, group))
        assert error.code == Answer.SYSTEM_ERROR
        assert client in error.remark
    assert relay(hub, "c2").connection == 2


def test_questions_that_wait_are_bounded() -> None:
    """RocketMQ's queues of callbacks have no bound."""
    hub = RocketHub(questions=4)
    for connection in (1, 2, 3):
        hub.beat(connection, f"c{connection}", {"g": ["t"]})
    ask(hub)
    assert refusal(lambda: ask(hub)).code == Answer.SYSTEM_BUSY
    assert hub.actions() == []
    relay(hub)
    assert refusal(lambda: relay(hub)).code == Answer.SYSTEM_BUSY
    hub.wait(10.0)
    assert len(ask(hub)) == 3
