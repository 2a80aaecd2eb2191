"""Plans with one healthy proxy beside others that are frozen, gone, or slow: what messages then have a right to."""

from __future__ import annotations

import random
from typing import Any

from tests.sim.plan import MS, Action, Plan

__all__ = ["after_a_standstill", "beside_a_dead_one", "over_a_slow_link"]

_NODE = {
    "read_idle": 60.0, "reply_bytes": 65536, "queue_bytes": 1 << 20, "commit_bytes": 1 << 20, "partitions": 1,
    "compress_entries": False, "dedupe_ids": 0,
}  # fmt: skip


def _send(at: int, many: int, size: int) -> Action:
    return Action(at, "nowait", (many, size, "s0", "", None, None, False))


def _plan(seed: int, options: dict[str, Any], nodes: int, actions: list[Action]) -> Plan:
    options = {"buffer_bytes": 1 << 24, "on_full": "raise", **options}
    return Plan(
        seed=seed, options=options, nodes=nodes, node_options=_NODE, first_list=tuple(range(nodes)), close_after=None,
        lazy=0.0, actions=tuple(sorted(actions, key=lambda action: action.at)),
    )  # fmt: skip


def beside_a_dead_one(seed: int) -> Plan:
    """Draw a legal pair of timeouts, or leave the defaults; one proxy freezes or vanishes while messages come.

    Pauses are short and times not below a second: else they would measure the pauses, and what the network takes.
    """
    rng = random.Random(seed)
    delivery = 120 ** rng.random()
    options: dict[str, Any] = {
        "delivery_timeout": delivery,
        "retry_backoff": 0.001,
        "reconnect_backoff": 0.001,
        "reconnect_backoff_max": 0.01,
        "executors": rng.choice((1, 2)),
        "connections": rng.choice((0, 1, 2, 4)),
        "batch_messages": rng.choice((1, 5, 65535)),
        "heartbeat": rng.choice(("off", "binary", "binary")),
        "ordering": rng.choice(("none", "none", "key")),
    }
    if rng.random() < 0.6:
        options["ack_timeout"] = delivery * rng.choice((0.1, 0.3, 0.5, rng.uniform(0.1, 0.5)))
    if rng.random() < 0.3:
        most = delivery - 1.5 * options["ack_timeout"] if "ack_timeout" in options else delivery / 4
        options["linger"] = min(60.0, most * rng.choice((0.5, 1.0)))
    span = int(delivery * 1e6)
    began = rng.randrange(20 * MS, span // 2)
    kind = rng.choice(("freeze", "freeze", "vanish"))
    actions = [Action(began, kind, (rng.randrange(2), 3 * span))]
    for _ in range(60):
        actions.append(_send(rng.randrange(span), rng.choice((1, 2)), rng.choice((0, 400, 900))))
    actions.append(Action(int(2.2 * span), "flush"))
    return _plan(seed, options, 2, actions)


def over_a_slow_link(seed: int) -> Plan:
    """Send over one slow connection for many times what an answer may take."""
    rng = random.Random(seed)
    ack = rng.choice((50, 100, 400))
    rate = rng.choice((10, 50, 200))
    sends = 15 * ack * rate // 2000 + 1
    options = {
        "delivery_timeout": 3600.0, "ack_timeout": ack / 1000, "linger": 0.0, "executors": 1, "connections": 1,
        "batch_messages": rng.choice((1, 5)), "heartbeat": rng.choice(("off", "binary")),
        "heartbeat_interval": ack / 1000, "heartbeat_retries": 1,
    }  # fmt: skip
    actions = [Action(0, "slow", (0, rate, 3_600_000_000))]
    actions += [_send(50 * MS, 5, 300) for _ in range(sends)]
    actions.append(Action(50 * MS + 40 * ack * MS, "flush"))
    return _plan(seed, options, 1, actions)


def after_a_standstill(seed: int) -> Plan:
    """Let the producer's threads stand still for longer than an answer may take, with an answer at each connection.

    There are more connections than one round of an executor reads from.
    """
    rng = random.Random(seed)
    ack = rng.choice((500, 1000, 5000))
    options = {
        "delivery_timeout": 3600.0, "ack_timeout": ack / 1000, "linger": 0.0, "executors": 1, "connections": 150,
        "batch_messages": 1, "heartbeat": rng.choice(("off", "binary")), "heartbeat_interval": ack / 4000,
        "heartbeat_retries": 1,
    }  # fmt: skip
    began = 100 * MS + rng.randrange(ack * MS)
    actions = [_send(began, 300, 10), Action(began + 1 * MS, "nap", (2 * ack * MS,))]
    actions.append(Action(began + 4 * ack * MS, "flush"))
    return _plan(seed, options, 1, actions)
