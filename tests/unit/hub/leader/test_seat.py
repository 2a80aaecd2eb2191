"""One seat, step by step: what it asks of ZooKeeper, when it leads, and when it has ceased to."""

from __future__ import annotations

import pytest

from dataproxy.errors import ConfigError
from dataproxy.hub.leader.commands import Command, End, Kind, Outcome, Seen
from dataproxy.hub.leader.seat import Hub, NotLeaderError, Seat, SeatTimes
from dataproxy.hub.leader.zookeeper import split_target

ME = Hub(1, "h1", 8715)
SESSION_S = 9.0
DONE, REFUSED, UNKNOWN = Outcome(End.DONE), Outcome(End.REFUSED), Outcome(End.UNKNOWN)


def due(seat: Seat, now: float, kind: Kind) -> Command:
    """Return the command that has to be due."""
    command = seat.next_command(now)
    assert command is not None
    assert command.kind is kind
    return command


def nothing_seen(epoch: int = 4, version: int = 0, leader: bytes | None = None) -> Outcome:
    """Return a look that finds no leader."""
    return Outcome(End.DONE, Seen(leader, epoch, version, {1: ME.text("n", 0)}))


def connected(now: float = 0.0) -> Seat:
    """Return a seat whose hub is enrolled."""
    seat = Seat(ME, "n", SeatTimes())
    assert seat.next_command(now) is None
    seat.connected(SESSION_S, now)
    seat.ended(due(seat, now, Kind.ENROL), DONE, now)
    return seat


def leading(now: float = 0.0) -> Seat:
    """Return a seat that leads, with epoch 5, since a run that was sent at ``now``."""
    seat = connected(now)
    seat.ended(due(seat, now, Kind.LOOK), nothing_seen(), now)
    run = due(seat, now, Kind.RUN)
    assert (run.epoch, Hub.read(run.data)) == (4, (ME, "n", 5))
    seat.ended(run, DONE, now + 0.1)
    assert not seat.leads(now + 0.1)  # it has not read yet
    seat.ended(due(seat, now + 0.1, Kind.READ), Outcome(End.DONE, data=b"old", version=7), now + 0.2)
    assert (seat.leads(now + 0.2), seat.epoch, seat.document, seat.leader) == (True, 5, b"old", ME)
    return seat


def test_it_leads_for_two_thirds_of_the_session_after_what_it_sent() -> None:
    seat = leading(100.0)
    assert (seat.leads(105.99), seat.leads(106.0)) == (True, False)
    touch = due(seat, 101.0, Kind.TOUCH)
    seat.ended(touch, DONE, 102.0)
    assert (seat.leads(106.99), seat.leads(107.0)) == (True, False)


def test_an_answer_behind_its_time_does_not_make_it_lead_again() -> None:
    seat = leading(100.0)
    touch = due(seat, 105.5, Kind.TOUCH)
    seat.ended(touch, DONE, 106.5)
    assert not seat.leads(106.5)
    resign = due(seat, 106.5, Kind.RESIGN)
    assert resign.epoch == 5
    seat.ended(resign, DONE, 106.6)
    seat.ended(due(seat, 106.6, Kind.LOOK), nothing_seen(epoch=5), 106.6)
    assert due(seat, 106.6, Kind.RUN).epoch == 5


def test_touches_come_twelve_times_in_a_session() -> None:
    seat = leading(100.0)
    seat.ended(due(seat, 100.2, Kind.TOUCH), DONE, 100.3)
    seat.ended(due(seat, 101.0, Kind.LOOK), nothing_seen(), 101.0)
    assert seat.next_at == pytest.approx(100.3 + SESSION_S / 12)


@pytest.mark.parametrize("how", ["refused", "lost", "end"])
def test_it_ceases_at_once(how: str) -> None:
    seat = leading()
    ticket = seat.write(b"new", 0.3)
    if how == "refused":
        seat.ended(due(seat, 0.3, Kind.TOUCH), REFUSED, 0.4)
    elif how == "lost":
        seat.lost(0.4)
    else:
        seat.end(0.4)
    assert not seat.leads(0.4)
    assert ticket.counted is False
    with pytest.raises(NotLeaderError):
        seat.write(b"newer", 0.5)


def test_a_connection_that_ends_is_no_end_of_leadership() -> None:
    seat = leading()
    seat.suspended(1.0)
    assert seat.leads(5.9)
    assert seat.next_command(2.0) is None
    seat.connected(SESSION_S, 3.0)
    seat.ended(due(seat, 3.0, Kind.TOUCH), DONE, 3.1)
    assert seat.leads(8.9)


def test_a_write_without_an_answer_is_looked_for() -> None:
    seat = leading()
    ticket = seat.write(b"new", 0.3)
    seat.ended(due(seat, 0.3, Kind.TOUCH), DONE, 0.3)
    write = due(seat, 0.3, Kind.WRITE)
    assert (write.epoch, write.version, write.data) == (5, 7, b"new")
    seat.ended(write, UNKNOWN, 0.4)
    seat.ended(due(seat, 0.4, Kind.READ), Outcome(End.DONE, data=b"old", version=7), 0.4)
    again = due(seat, 0.4, Kind.WRITE)
    assert again.version == 7
    seat.ended(again, REFUSED, 0.5)  # the first one has come late
    seat.ended(due(seat, 0.5, Kind.TOUCH), DONE, 0.5)
    seat.ended(due(seat, 0.5, Kind.READ), Outcome(End.DONE, data=b"new", version=8), 0.5)
    assert (ticket.counted, seat.document, seat.version) == (True, b"new", 8)
    seat.write(b"next", 0.6)
    assert seat.proposed == b"next"
    assert due(seat, 0.6, Kind.WRITE).version == 8


def test_a_foreign_document_ends_the_leadership() -> None:
    seat = leading()
    ticket = seat.write(b"new", 0.3)
    seat.ended(due(seat, 0.3, Kind.TOUCH), DONE, 0.3)
    seat.ended(due(seat, 0.3, Kind.WRITE), UNKNOWN, 0.4)
    seat.ended(due(seat, 0.4, Kind.READ), Outcome(End.DONE, data=b"foreign", version=8), 0.4)
    assert (ticket.counted, seat.leads(0.4)) == (False, False)


def test_a_run_without_an_answer_is_given_back() -> None:
    seat = connected()
    seat.ended(due(seat, 0.0, Kind.LOOK), nothing_seen(), 0.0)
    run = due(seat, 0.0, Kind.RUN)
    assert seat.next_command(1.9) is None
    seat.ended(due(seat, 2.0, Kind.LOOK), nothing_seen(epoch=5, leader=run.data), 2.0)
    seat.ended(run, DONE, 2.0)  # too late to count
    assert due(seat, 2.0, Kind.RESIGN).epoch == 5
    assert not seat.leads(2.0)


def test_a_standby_knows_how_old_its_view_is() -> None:
    other = Hub(2, "h2", 8715)
    seat = connected()
    seat.ended(due(seat, 0.0, Kind.LOOK), nothing_seen(version=3, leader=other.text("m", 4)), 0.1)
    seat.ended(due(seat, 0.1, Kind.READ), Outcome(End.DONE, data=b"d", version=3), 0.2)
    assert (seat.leader, seat.document, seat.hubs) == (other, b"d", {1: ME})
    assert (seat.is_fresh(3.1), seat.is_fresh(3.2)) == (True, False)
    assert seat.next_command(1.0) is None
    seat.noticed(1.0)
    seat.ended(due(seat, 1.0, Kind.LOOK), nothing_seen(version=3, leader=b"no text of a hub"), 1.1)
    assert (seat.is_fresh(3.9), seat.leader) == (True, None)
    assert seat.next_command(1.2) is None  # somebody leads


def test_the_number_of_another_hub_is_told_and_asked_for_again(caplog: pytest.LogCaptureFixture) -> None:
    seat = Seat(ME, "n", SeatTimes())
    seat.connected(SESSION_S, 0.0)
    seat.ended(due(seat, 0.0, Kind.ENROL), REFUSED, 0.0)
    assert "another hub of the cluster has the broker id 1" in caplog.text
    seat.ended(due(seat, 0.0, Kind.LOOK), nothing_seen(leader=b"x"), 0.0)
    for now, end in enumerate((REFUSED, UNKNOWN, REFUSED, DONE), 1):
        seat.ended(due(seat, float(now), Kind.ENROL), end, float(now))
    assert caplog.text.count("another hub of the cluster") == 1
    assert "set tubemq_broker" in caplog.text


def test_it_is_out_when_its_node_is_deleted() -> None:
    seat = leading()
    seat.end(0.3)
    assert not seat.is_out
    seat.ended(due(seat, 0.3, Kind.RESIGN), DONE, 0.4)
    assert seat.is_out
    assert seat.next_command(9.0) is None


def test_targets() -> None:
    assert split_target(" zk1:2181,zk2:2181/a/b/ ") == ("zk1:2181,zk2:2181", "/a/b")
    for text in ("zk1:2181", "/a", "zk1/a", "zk1:x/a", "zk1:0/a", "zk1:2181/", "zk1:2181//a", "zk1:2181/../a", ":1/a"):
        with pytest.raises(ConfigError, match="tubemq_cluster="):
            split_target(text)
