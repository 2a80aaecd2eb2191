"""What happens in one simulated run, as data: a seed makes a plan, and a part of a plan is a plan."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

__all__ = ["FAULTS", "NETWORK_FAULTS", "Action", "Plan", "make_plan"]

MS = 1000
#: Faults and how often they are chosen.
FAULTS = {
    "reset": 6, "crash": 3, "freeze": 4, "hold": 3, "deaf": 2, "refuse": 3, "disk": 3, "slow_commits": 2, "load": 1,
    "port": 2, "acks": 6, "list": 3, "manager": 1, "clock": 1, "nap": 2, "narrow": 2, "close_session": 1,
    "frames": 2,
}  # fmt: skip
#: Faults of hosts and connections, drawn apart so that the plans of old seeds stay what they were.
NETWORK_FAULTS = ("vanish", "slow", "strange")
RATES = (5, 50, 500)  # bytes in a millisecond
ACK_FAULTS = (
    "drop", "late", "twice", "reorder", "foreign", "near", "elsewhere", "settled", "unknown", "garbage", "slice",
)  # fmt: skip
CODES = (1, 2, 3, 114, 116, 118, 113, 121, 101, 110, 255)


class Action(NamedTuple):
    """One thing that happens at a time (microseconds) of the run."""

    at: int
    kind: str
    args: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A whole run: options of the producer, the hubs, and every action in order."""

    seed: int
    options: dict[str, Any]
    nodes: int
    node_options: dict[str, Any]
    first_list: tuple[int, ...]
    close_after: float | None  # close begins at this share of the actions' time, None: after calm
    lazy: float  # how often a thread wakes late
    actions: tuple[Action, ...]
    guilty: float = 0.0  # share of messages that every hub refuses for their content

    def part(self, actions: tuple[Action, ...]) -> Plan:
        """Return the plan with these actions alone."""
        return replace(self, actions=actions)

    @property
    def faults(self) -> int:
        """Return the number of faults."""
        return sum(action.kind in FAULTS or action.kind in NETWORK_FAULTS for action in self.actions)


def make_plan(seed: int) -> Plan:
    """Return the plan of one seed."""
    rng = random.Random(seed)
    nodes = rng.choice((1, 2, 3, 3, 4))
    options = {**_options(rng, seed), **_dialect(random.Random(seed ^ 0x7E5))}
    actions: list[Action] = []
    at = 0
    for _ in range(rng.randint(4, 40)):
        at += rng.choice((0, 0, 0, 10, 300, 1000, 5000, 30_000))
        actions.append(_send(rng, at, options))
    options["ack"] = _ack(random.Random(seed ^ 0xAC4), options)
    span = at + 50_000
    for _ in range(rng.choice((0, 1, 1, 2))):
        actions.append(Action(rng.randrange(span), "flush"))
    for kind in rng.choices(list(FAULTS), list(FAULTS.values()), k=rng.choice((0, 2, 4, 8, 12, 16))):
        actions.append(_fault(rng, kind, rng.randrange(span), nodes))
    actions += _connection_faults(random.Random(seed ^ 0x11F0), span, nodes)
    actions += _unknown_groups(random.Random(seed ^ 0x1150), span, nodes, options)
    actions.sort(key=lambda action: action.at)
    return Plan(
        seed=seed,
        options=options,
        nodes=nodes,
        node_options=_node_options(rng),
        first_list=tuple(sorted(rng.sample(range(nodes), rng.randint(1, nodes)))),
        close_after=rng.random() if rng.random() < 0.2 else None,
        lazy=rng.choice((0.0, 0.1, 0.5)),
        actions=tuple(actions),
        guilty=random.Random(seed ^ 0x6111).choice((0.0, 0.0, 0.0, 0.02, 0.2, 0.7)),
    )


def _connection_faults(rng: random.Random, span: int, nodes: int) -> list[Action]:
    found = []
    for _ in range(rng.choice((0, 0, 1, 2))):
        at, node, lasts = rng.randrange(span), rng.randrange(nodes), rng.choice((2, 100, 600, 3000)) * MS
        if rng.random() < 0.5:
            found.append(Action(at, "vanish", (node, lasts)))
        else:
            found.append(Action(at, "slow", (node, rng.choice(RATES), lasts)))
    return found


def _unknown_groups(rng: random.Random, span: int, nodes: int, options: dict[str, Any]) -> list[Action]:
    """Draw times in which proxies do not know the groups, and how long the producer waits for that."""
    options["unknown_group_timeout"] = rng.choice((60.0, 60.0, 60.0, 0.5, 0.02, 0.0))
    found = []
    for _ in range(rng.choice((0, 0, 0, 1, 3))):
        which = range(nodes) if rng.random() < 0.5 else (rng.randrange(nodes),)
        at, lasts = rng.randrange(span), rng.choice((20, 100, 600, 3000)) * MS
        found += [Action(at, "strange", (node, lasts)) for node in which]
    return found


def _options(rng: random.Random, seed: int) -> dict[str, Any]:
    pick = rng.choice
    delivery = pick((0.05, 0.3, 2.0, 2.0, 5.0))
    options: dict[str, Any] = {
        "executors": pick((1, 1, 1, 2)),
        "connections": pick((0, 1, 2, 3, 4)),
        "linger": pick((0.0, 0.001, 0.005, 0.02)),
        "batch_bytes": pick((200, 600, 1000, 4000)),
        "batch_messages": pick((1, 3, 10, 65535)),
        "buffer_bytes": pick((4096, 6000, 16000, 1 << 20, 1 << 20)),
        "buffer_messages": pick((0, 0, 0, 5, 30)),
        "on_full": pick(("block", "raise", "drop_newest", "drop_oldest")),
        "max_open_packs": pick((1, 2, 16)),
        "delivery_timeout": delivery,
        "ack_timeout": min(delivery / 2, pick((0.02, 0.1, 0.5))),
        "connect_timeout": pick((0.01, 0.08)),
        "retry_backoff": pick((0.0, 0.001, 0.01)),
        "retry_backoff_max": pick((0.01, 0.1)),
        "reconnect_backoff": pick((0.0, 0.001, 0.01)),
        "reconnect_backoff_max": pick((0.01, 0.2)),
        "retry_budget": pick((0, 20, 20, 1000)),
        "heartbeat": pick(("off", "binary", "binary", "message")),
        "heartbeat_interval": pick((0.03, 0.2, 30.0)),
        "heartbeat_retries": rng.randint(1, 3),
        "compression": pick(("none", "none", "snappy")),
        "compression_min_bytes": 64,
        "message_type": pick((7, 7, 7, 7, 5, 3)),
        "pack_seconds": pick((1, 1, 60)),
        "ordering": pick(("none", "key")),
        "key_buckets": pick((1, 2, 16)),
    }
    if options["on_full"] == "block":
        options["max_block"] = 0.0  # nobody else could move the clock meanwhile
    options["max_frame_bytes"] = pick((2048, 4096, 1 << 19))
    options.update(_balance(random.Random(f"balance {seed}")))
    most = min(options["buffer_bytes"], options["max_frame_bytes"] - 1024)
    options["batch_bytes"] = min(options["batch_bytes"], most)
    options["linger"] = min(options["linger"], delivery - 1.5 * options["ack_timeout"])
    return options


def _dialect(rng: random.Random) -> dict[str, Any]:
    """Return options of the layouts and protocols that few use, for some seeds."""
    return rng.choice(
        (
            *({},) * 8,
            {"message_type": 6},
            {"message_type": 2},
            {"message_type": 7, "joined_lines": True, "compression": "none"},
            {"message_type": 7, "trace_address": "10.0.0.1"},
            {"protocol": "v1", "compression": "none"},
            {"protocol": "v1", "trace_address": "10.0.0.1", "compression": "none"},
            {"protocol": "http", "message_type": 3, "compression": "none", "max_frame_bytes": 1 << 19},
            {"protocol": "http", "message_type": 3, "compression": "none", "max_frame_bytes": 8192},
        )
    )


def _ack(rng: random.Random, options: dict[str, Any]) -> str:
    """Return the answer that frames ask for; without any there is no order by key; other protocols have one kind."""
    if options.get("protocol", "tcp") != "tcp":
        return "source"
    unordered = ("none", "none") if options["ordering"] == "none" else ()
    return rng.choice(("source",) * 6 + ("sink", "sink", *unordered))


def _balance(rng: random.Random) -> dict[str, Any]:
    """Return how many proxies are in use and stand by, drawn apart so that old seeds keep their other options."""
    return {
        "active_proxies": rng.choice((0, 0, 1, 2)),
        "standby_proxies": rng.choice((0, 1, 2)),
        "eject_outliers": rng.random() < 0.8,
    }


def _node_options(rng: random.Random) -> dict[str, Any]:
    return {
        "read_idle": rng.choice((0.5, 60.0, 60.0)),
        "reply_bytes": rng.choice((200, 65536)),
        "queue_bytes": rng.choice((2000, 1 << 20, 1 << 20)),
        "commit_bytes": rng.choice((1, 3000, 1 << 20)),
        "partitions": rng.choice((1, 1, 2)),
        "compress_entries": rng.random() < 0.3,
        "dedupe_ids": rng.choice((0, 0, 1 << 20)),
    }


def _send(rng: random.Random, at: int, options: dict[str, Any]) -> Action:
    many = rng.choice((1, 1, 1, 1, 2, 5, 20))
    size = rng.choice((0, 0, 60, 150, 400, 900))
    stream = rng.choice(("s0", "s0", "s0", "s1"))
    kind = rng.choice(("send", "send", "send", "batch", "nowait"))
    key = rng.choice(("", "k0", "k0", "k1", "k2", "k3")) if options["ordering"] == "key" else ""
    when = rng.choice((None, None, None, rng.randrange(4) * 700))
    attrs = None
    v1 = options.get("protocol") == "v1"
    single = options["message_type"] == 7 and not options.get("joined_lines") and not v1  # items have their own ids
    own_id = single and kind != "batch" and rng.random() < 0.1
    if single or (options["message_type"] == 6 and not v1):
        attrs = rng.choice((None, None, None, None, {"a": "1"}, {"b": "xy"}))
    return Action(at, kind, (many, size, stream, key, when, attrs, own_id))


def _fault(rng: random.Random, kind: str, at: int, nodes: int) -> Action:
    node = rng.randrange(nodes)
    span = rng.choice((2, 20, 100, 600)) * MS
    chance = rng.choice((0.05, 0.3, 1.0))
    args: tuple[Any, ...] = {
        "reset": (node, rng.random(), rng.random() < 0.5),
        "crash": (node, span),
        "freeze": (node, span),
        "hold": (node, span, rng.randrange(3)),
        "deaf": (node, rng.random()),
        "refuse": (node, rng.choice(CODES), span),
        "disk": (node, rng.randint(1, 3), rng.random() < 0.5),
        "slow_commits": (node, rng.choice((1, 10, 80)) * MS, span),
        "load": (node, rng.choice((0, 50, 65534, None))),
        "port": (node, rng.choice(("refuse", "silent")), span),
        "acks": (node, rng.choice(ACK_FAULTS), chance, span),
        "list": (tuple(sorted(rng.sample(range(nodes), rng.randint(1, nodes)))),),
        "manager": (rng.choice(("down", "slow")), span),
        "clock": (rng.choice((-3_600_000, -5000, 5000, 86_400_000, 315_360_000_000)),),
        "nap": (rng.choice((1, 5, 50)) * MS,),
        "narrow": (node, rng.choice((1, 10, 100, 1000)), span),
        "close_session": (node,),
        "frames": (rng.choice((0, 2048, 2600, 5000)),),
    }[kind]
    return Action(at, kind, args)
