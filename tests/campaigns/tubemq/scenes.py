"""What is done to groups at TubeMQ's own servers; each scene returns what it saw, and what was wrong."""

from __future__ import annotations

import time
import urllib.parse
from typing import Any, NamedTuple

from dataproxy import Consumer, GroupRefusedError
from tests.campaigns.tubemq.crew import Crew, eventually
from tests.campaigns.tubemq.feed import Feed
from tests.support.tubekit import Servers

__all__ = ["SCENES", "TOPICS", "Seen"]

TOPICS = "crowd:6 master:3 broker:3 flow:1 rights:1"
_BALANCE_S, _HEARTBEAT_S = 5.0, 1.0  # of the kit's master, and of our members
_MEMBER_LIMIT_S, _LOCK_LIMIT_S = 30.0, 35.0  # within which the kit's master, and its broker, miss a member
#: Within which all partitions are held again after a member came or left in order, and after one was killed.
_ORDERLY_S = _BALANCE_S + 2 * _HEARTBEAT_S + 1.0
_KILLED_S = _ORDERLY_S + max(_MEMBER_LIMIT_S, _LOCK_LIMIT_S)
_LONG_S = 300.0


class Seen(NamedTuple):
    """The figures of a scene, and its violations."""

    facts: dict[str, Any]
    problems: list[str]


def _target(servers: Servers) -> str:
    return f"tubemq://127.0.0.1:{servers.master}"


def _group(name: str) -> str:
    return f"{name}_{time.time_ns()}"


def _late(facts: dict[str, Any], limits: dict[str, float]) -> list[str]:
    return [
        f"{name}: {facts[name]:.1f} s, allowed are {most:.1f} s" for name, most in limits.items() if facts[name] > most
    ]


def members(servers: Servers, messages: int) -> Seen:
    """Three members under load; a fourth joins, one leaves, one is killed: nothing is missing, little comes twice."""
    facts: dict[str, Any] = {}
    with Crew(_target(servers), "crowd", _group("members")) as crew:
        for _ in range(3):
            crew.join()
        eventually(lambda: crew.settled(6), 60, "three members share six partitions")
        with Feed(servers, "crowd", messages, "c", window=500) as feed:
            eventually(lambda: len(feed.sent) > messages // 20, 120, "the first messages are sent")
            crew.join()
            facts["joined_s"] = eventually(lambda: crew.settled(6), _LONG_S, "a fourth member has its share")
            crew.leave(crew.here[0])
            facts["left_s"] = eventually(lambda: crew.settled(6), _LONG_S, "the share of a member that left is read")
            crew.kill(crew.here[0])
            facts["killed_s"] = eventually(lambda: crew.settled(6), _LONG_S, "the share of a killed member is read")
            sent = feed.wait()
        eventually(lambda: sent <= crew.counts().keys(), _LONG_S, "all messages are seen")
        for one in list(crew.here):
            crew.leave(one)
        seen = crew.counts()
        facts |= {"messages": len(sent), "seen": len(seen), "twice": sum(seen.values()) - len(seen)}
        problems = crew.problems(sent)
    if len(sent) < messages:
        problems.append(f"only {len(sent)} of {messages} messages were sent")
    limits = {"joined_s": _ORDERLY_S, "left_s": _ORDERLY_S, "killed_s": _KILLED_S}
    return Seen(facts, problems + _late(facts, limits))


def _through(servers: Servers, topic: str, service: str, how: str, pause_s: float, count: int) -> Seen:
    """A server goes away under messages, and comes back: nothing is missing."""
    facts: dict[str, Any] = {}
    with Crew(_target(servers), topic, _group(topic)) as crew:
        for _ in range(2):
            crew.join()
        eventually(lambda: crew.settled(3), 60, "two members share three partitions")
        with Feed(servers, topic, count, topic[0], pause=100) as feed:
            eventually(lambda: len(crew.counts()) > count // 10, 120, "the first messages are seen")
            servers.run(how, service)
            gone = time.monotonic()
            time.sleep(pause_s)
            servers.run("start", service)
            facts["away_s"] = time.monotonic() - gone
            sent = feed.wait()
        eventually(lambda: sent <= crew.counts().keys(), _LONG_S, "all messages are seen")
        eventually(lambda: crew.settled(3), 60, "both members share the partitions")
        for one in list(crew.here):
            crew.leave(one)
        seen = crew.counts()
        facts |= {"messages": len(sent), "seen": len(seen), "twice": sum(seen.values()) - len(seen)}
        return Seen(facts, crew.problems(sent))


def master(servers: Servers, messages: int) -> Seen:
    """The master is killed, and is back after seven seconds."""
    return _through(servers, "master", "tubemq-master", "kill", 7.0, max(messages // 800, 100))


def broker(servers: Servers, messages: int) -> Seen:
    """The broker ends, and is back after 45 s and the time it takes to start."""
    return _through(servers, "broker", "tubemq-broker", "stop", 45.0, max(messages // 800, 100))


def _change(servers: Servers, method: str, **fields: str) -> None:
    words = {"createUser": "campaign", "modifyUser": "campaign", "confModAuthToken": "abc", **fields}
    answer = servers.run("tube-api", method, urllib.parse.urlencode(words))
    if '"result":true' not in answer or '"success":false' in answer:
        raise RuntimeError(f"{method}: {answer.strip() or 'no answer'}")


def flow(servers: Servers, messages: int) -> Seen:
    """A rule of the group, set while it reads: a pack in two seconds from the next minute on, until it is removed."""
    group, pause_s, watched_s = _group("flow"), 2.0, 20.0
    rule = '[{"type":0,"rule":[{"start":"00:00","end":"24:00","dltInM":21,"limitInM":0,"freqInMs":2000}]}]'
    _change(servers, "admin_add_group_resctrl_info", groupName=group, flowCtrlEnable="true", flowCtrlInfo=rule)
    with Feed(servers, "flow", max(messages // 5, 20_000), "f", size=1000, window=500) as feed:
        sent = feed.wait()
    facts: dict[str, Any] = {"messages": len(sent)}
    with Consumer(_target(servers), group=group, topics=["flow"], heartbeat_interval=1) as consumer:
        seen: set[str] = set()

        def read(until: float) -> int:
            packs = 0
            while time.monotonic() < until and len(seen) < len(sent):
                pack = consumer.poll(0.2)
                if pack is not None:
                    seen.update(body.decode() for body in pack.bodies())
                    pack.confirm()
                    packs += 1
            return packs

        eventually(lambda: read(time.monotonic() + 0.3) > 0, 60, "the first pack")
        facts["packs_under_the_rule"] = read(time.monotonic() + watched_s)
        facts["seen_under_the_rule"] = len(seen)
        _change(servers, "admin_delete_group_resctrl_info", groupName=group)
        began = time.monotonic()
        read(began + 120)
        facts["rest_s"] = time.monotonic() - began
    problems = [] if seen == sent else [f"{len(sent - seen)} messages are missing"]
    most = watched_s / pause_s + 2
    if not 1 <= facts["packs_under_the_rule"] <= most:
        problems.append(f"{facts['packs_under_the_rule']} packs in {watched_s:g} s, allowed are 1 to {most:g}")
    return Seen(facts, problems)


def rights(servers: Servers, messages: int) -> Seen:
    """A topic under control refuses a group, and takes it once it has its right."""
    del messages
    group, problems = _group("rights"), []
    facts: dict[str, Any] = {}
    _change(servers, "admin_update_topic_control_info", topicName="rights", enableAuthControl="true")
    with Consumer(_target(servers), group=group, topics=["rights"], heartbeat_interval=1) as consumer:
        try:
            consumer.wait_ready(30)
        except GroupRefusedError as error:
            facts["refused_with"] = error.details["code"]
        else:
            problems.append("a group without a right was taken")
        words = {"topicName": "rights", "groupName": group, "consumeEnable": "true", "filterEnable": "false"}
        _change(servers, "admin_add_group_csmctrl_info", **words)

        def ready() -> bool:
            try:
                consumer.wait_ready(1)
            except GroupRefusedError:
                time.sleep(0.2)
                return False
            return bool(consumer.assignment())

        facts["taken_s"] = eventually(ready, 60, "the group is taken, and has the partition")
    return Seen(facts, problems)


#: By name; each takes the servers and the number of messages of the largest scene.
SCENES = {scene.__name__: scene for scene in (members, master, broker, flow, rights)}
