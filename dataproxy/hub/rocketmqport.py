"""What a hub needs to listen as RocketMQ: the listener's core, and the thread that answers calls of control."""

from __future__ import annotations

import ipaddress
import secrets
from typing import TYPE_CHECKING, Final

from dataproxy._core.server.rocketmq.core import RemotingCore
from dataproxy._core.server.tubemq.core import RegistrationsCore
from dataproxy.hub.listeners import bracketed

if TYPE_CHECKING:
    from dataproxy._core.server.core import HubCore
    from dataproxy._core.server.store.core import StoreCore
    from dataproxy.config import HubConfig
    from dataproxy.hub.overview.events import Events
    from dataproxy.hub.rocketmq.service import Service

__all__ = ["make_remoting", "make_rocketmq", "second_port"]

_MOST_CALLS: Final = 4096  # that are not answered
_MOST_BYTES: Final = 64 << 20  # of them
_REGISTRATION_BYTES: Final = 64 << 20  # for offsets of groups
_LIMIT_US: Final = 35_000_000  # of members at the broker of TubeMQ, which is not there
_WAIT_US: Final = 2_000_000
_SECOND: Final = 2  # so far below the port is the one that older clients use, too


def make_remoting(config: HubConfig) -> RemotingCore | None:
    """Return the core of the listener, None for a hub that does not listen as RocketMQ."""
    return None if config.rocketmq_port < 0 else RemotingCore(_MOST_CALLS, _MOST_BYTES)


def second_port(config: HubConfig) -> int:
    """Return the port of the "VIP channel", -1 without one."""
    return config.rocketmq_port - _SECOND if config.rocketmq_vip else -1


def make_rocketmq(
    core: HubCore,
    remoting: RemotingCore,
    store: StoreCore,
    config: HubConfig,
    host: str,
    registrations: RegistrationsCore | None,
    events: Events,
) -> Service:
    """Return the service of an open core.  ``host``: the numeric address that the hub listens on.

    ``registrations``: where TubeMQ's groups have their offsets; None: TubeMQ has no port.

    A hub on all addresses tells each client the one that it came to, unless the option ``node_ip`` names one.
    """
    from dataproxy.hub.rocketmq.service import Service, Settings

    if registrations is None:
        registrations = RegistrationsCore(secrets.token_bytes(16), _LIMIT_US, _REGISTRATION_BYTES)
        registrations.attach(store, _WAIT_US)
    remoting.attach(store, registrations)
    is_named = not config.origin("node_ip").startswith("default")
    is_open = ipaddress.ip_address(host).is_unspecified
    address = f"{bracketed(config.node_ip)}:{core.ports[core.rocketmq]}" if is_open and is_named else ""
    settings = Settings(address, config.topics, config.partitions)
    service = Service(core, remoting, store, settings, told=events.add)
    service.clients.told = events.client
    return service
