"""Groups at TubeMQ's own servers for minutes: members that come, go and are killed, servers that end and come back."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.interop.tubemq.conftest import Servers
from tests.interop.tubemq.long.load import Load, Team

TOPIC, PARTITIONS = "group", 6
MESSAGES = 200_000
SECONDS = 180
pytestmark = pytest.mark.timeout(1200)

_STORED_S = 6.5  # between two times at which a broker stores offsets, and a bit


@pytest.fixture
def team(tubemq: Servers, tmp_path: Path) -> Team:
    return Team(tubemq, f"team_{time.time_ns()}", TOPIC, tmp_path)


def until_sent(load: Load, n: int) -> None:
    """Wait until so many messages were acknowledged."""
    deadline = time.monotonic() + 600
    while len(load.sent) < n:
        assert time.monotonic() < deadline, len(load.sent)
        time.sleep(0.05)


def end(load: Load, team: Team) -> int:
    """Stop the load, see that nothing is missing, let all leave; return how many messages came twice."""
    load.stop()
    team.wait_for(load.sent, SECONDS)
    for one in team.processes:
        if one.poll() is None:
            team.leave(one)
    return len(load.sent)


def test_members_that_join_leave_and_are_killed(tubemq: Servers, team: Team) -> None:
    with team:
        members = [team.join() for _ in range(3)]
        load = Load(tubemq, TOPIC, PARTITIONS)
        until_sent(load, MESSAGES // 5)
        team.join()
        until_sent(load, 2 * MESSAGES // 5)
        team.leave(members[0])
        until_sent(load, 3 * MESSAGES // 5)
        members[1].kill()
        until_sent(load, 4 * MESSAGES // 5)
        team.join()
        until_sent(load, MESSAGES)
        assert end(load, team) >= MESSAGES
        print(f"{len(load.sent)} messages, {team.check_again()} came again unconfirmed")


def test_a_master_that_is_killed_and_comes_back(tubemq: Servers, team: Team) -> None:
    with team:
        team.join()
        team.join()
        load = Load(tubemq, TOPIC, PARTITIONS, pause_s=0.002)
        until_sent(load, 1000)
        team.wait_for(set(load.sent), SECONDS)
        tubemq.run("kill", "tubemq-master")
        time.sleep(7)
        during = len(load.sent)
        until_sent(load, during + 500)
        team.wait_for(set(load.sent), SECONDS)  # brokers go on without a master
        tubemq.run("start", "tubemq-master")
        team.join()
        time.sleep(20)
        end(load, team)
        assert team.check_again() == 0


def test_a_broker_that_is_down_for_45_seconds(tubemq: Servers, team: Team) -> None:
    with team:
        team.join()
        team.join()
        load = Load(tubemq, TOPIC, PARTITIONS, pause_s=0.002)
        until_sent(load, 1000)
        team.wait_for(set(load.sent), SECONDS)
        stopped = time.monotonic()
        tubemq.run("stop", "tubemq-broker")
        time.sleep(45)
        tubemq.run("start", "tubemq-broker")
        until_sent(load, len(load.sent) + 1000)
        end(load, team)
        print(f"{team.check_again(lambda at: at > stopped - _STORED_S)} of {len(load.sent)} came again")
