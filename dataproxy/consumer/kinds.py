"""What a consumer is made of, by the kind of its target: TubeMQ's masters, or a hub that pushes RocketMQ's queues."""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from dataproxy._version import __version__
from dataproxy.config import is_rocketmq
from dataproxy.masters.target import parse_target
from dataproxy.process.threads import start_quiet
from dataproxy.trust.files import server_trust
from dataproxy.wire.tubemq.texts import BROKER_PORT, BROKER_TLS_PORT

if TYPE_CHECKING:
    import threading

    from dataproxy._core.consumer.core import ConsumerCore
    from dataproxy.config import ConsumerConfig
    from dataproxy.consumer.driver import Driver
    from dataproxy.consumer.group.asking import MemberOptions
    from dataproxy.consumer.pushed.engine import PushedEngine
    from dataproxy.consumer.state import ConsumerState
    from dataproxy.masters.target import Target
    from dataproxy.trust.watched import Trust

__all__ = ["Parts", "make_parts"]

_STARTS: Final = {"earliest": 0, "latest": 1, "end": 2}

_numbers = iter(range(1, 1 << 62))


class Parts(NamedTuple):
    """The parts of a consumer.

    ``core`` has packs, ``driver`` the membership; ``bodies`` are those of the threads that are to be started, by name,
    and ``threads`` those that run.
    """

    client: str
    core: ConsumerCore | PushedEngine
    driver: Driver | PushedEngine
    trust: Trust | None
    bodies: tuple[tuple[str, Callable[[], None]], ...]
    threads: tuple[threading.Thread, ...]


def make_parts(config: ConsumerConfig, state: ConsumerState, *, awaited: bool) -> Parts:
    """Return the parts of a consumer.  ``awaited``: by an event loop.  Raises ConfigError, InvalidMessageError."""
    if not is_rocketmq(config.target):
        return _of_tubemq(config, state, awaited)
    from dataproxy.consumer.pushed.engine import PushedEngine  # which a consumer of TubeMQ does not load

    engine = PushedEngine(config, state, awaited=awaited)
    return Parts(engine.client_id, engine, engine, None, (), engine.threads)


def _of_tubemq(config: ConsumerConfig, state: ConsumerState, awaited: bool) -> Parts:
    servers = parse_target(config.target, config.tls)
    from dataproxy._core.consumer.core import ConsumerCore
    from dataproxy.consumer.driver import Driver  # with the group's part it needs the package protobuf
    from dataproxy.consumer.group.chooser import Chooser
    from dataproxy.consumer.group.member import Member
    from dataproxy.consumer.names import Names

    trust = server_trust(config) if servers.tls else None
    host = _own_address()
    client = _client_id(config.group, host)
    core = ConsumerCore(
        client.encode(), config.group.encode(), call=config.call_timeout, connect=config.connect_timeout,
        confirm=config.confirm_timeout, nothing=config.not_found_wait, prefetch_bytes=config.prefetch_bytes,
        tls=None if trust is None else trust.contexts, awaited=awaited,
    )  # fmt: skip
    kind = Chooser if config.balance == "client" else Member
    member = kind(_member_options(config, servers, client, host), random.Random())
    names = Names(config.dns_interval, start_quiet, core.wake)
    driver = Driver(core, member, names, state, dict(config.topics), config.tls_server_name)
    bodies = (("dataproxy-consume", core.loop_body()), ("dataproxy-member", driver.run))
    return Parts(client, core, driver, trust, bodies, ())


def _own_address() -> str:
    """Return the address that this machine uses towards others; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # of the net that documents use
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def _client_id(group: str, host: str) -> str:
    """Return an id that nobody else has: masters sort the members of a group by it."""
    return f"{group}_{host}-{os.getpid()}-{time.time_ns() // 1000000}-{next(_numbers)}-Python-{__version__}"


def _member_options(config: ConsumerConfig, target: Target, client: str, host: str) -> MemberOptions:
    from dataproxy.consumer.group.asking import MemberOptions

    return MemberOptions(
        masters=target.masters,
        broker_port=BROKER_TLS_PORT if target.tls else BROKER_PORT,
        client=client,
        group=config.group,
        topics=dict(config.topics),
        host=host,
        user=config.user,
        password=config.password.reveal(),
        first_read=_STARTS[config.start],
        heartbeat_s=config.heartbeat_interval,
        slow_s=config.master_retry_max,
        confirm_wait_s=config.release_wait,
        register_rounds=config.register_retries,
        register_pause_s=config.register_retry_wait,
        timeout_s=config.call_timeout,
        offsets=dict(config.offsets),
        bound=bool(config.session),
        session=config.session,
        members=config.members,
        larger_wins=config.larger_offset,
        node=config.node,
    )
