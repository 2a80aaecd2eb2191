"""What a hub needs to listen as TubeMQ: the queue of calls, and the thread that answers them."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final

from dataproxy._core.server.tubemq.callcore import CallsCore
from dataproxy.errors import ConfigError, HubError
from dataproxy.logs import logger

if TYPE_CHECKING:
    from dataproxy._core.server.core import HubCore
    from dataproxy._core.server.store.core import StoreCore
    from dataproxy.config import HubConfig
    from dataproxy.hub.leader.cluster import Cluster
    from dataproxy.hub.overview.events import Events
    from dataproxy.hub.tubemq.service import Service
    from dataproxy.hub.zookeeper.offsets import OffsetKeeper

__all__ = ["make_calls", "make_cluster", "make_service", "message_bytes", "open_offsets", "partition_count"]

_log: Final = logger("hub.tubemq")
_MOST_CALLS: Final = 4096  # that are not answered
_MOST_BYTES: Final = 32 << 20  # of them
_LEAST_MESSAGE: Final = 1 << 20  # what TubeMQ's clients take for granted
_BROKER_S: Final = 10.0  # without a heartbeat, until a hub is off line for the others of its cluster
_TAKEOVER_S: Final = 15.0  # in which a new leader divides nothing: members come back with their next heartbeats
_MOST_MESSAGE: Final = 20 << 20  # what they can be told


def make_calls(config: HubConfig) -> CallsCore | None:
    """Return the queue of calls, None for a hub that does not listen as TubeMQ.

    Raises HubError without the package that its messages need.
    """
    if config.tubemq_port < 0:
        return None
    try:
        import dataproxy.wire.tubemq.messages  # noqa: F401 - before anything is open
    except ImportError as error:
        raise HubError(
            f"the port of TubeMQ needs a package that is not installed: {error.name}",
            hint="pip install 'dataproxy-sdk[hub,tubemq]'",
        ) from error
    return CallsCore(_MOST_CALLS, _MOST_BYTES)


def message_bytes(config: HubConfig) -> int:
    """Return the bytes of the largest message of TubeMQ's producers, without attributes."""
    return min(max(config.max_frame_bytes, _LEAST_MESSAGE), _MOST_MESSAGE)


def partition_count(store: StoreCore, config: HubConfig) -> int:
    """Return how many partitions a topic can have: those of the option, or more that were stored with another one."""
    return max([config.partitions, *(partition + 1 for _, partition, *_ in store.logs())])


def make_cluster(core: HubCore, config: HubConfig, host: str) -> Cluster | None:
    """Return the hub's membership of a cluster, which is still to be started; None for a hub alone.

    Raises ConfigError for a hub on all addresses without ``node_ip``.
    """
    if not config.tubemq_cluster:
        return None
    from dataproxy.hub.leader.cluster import Cluster
    from dataproxy.hub.leader.seat import Hub
    from dataproxy.hub.leader.zookeeper import split_target

    servers, path = split_target(config.tubemq_cluster)
    if ipaddress.ip_address(host).is_unspecified and config.origin("node_ip").startswith("default"):
        raise ConfigError(
            f"a hub of a cluster on {host} would name itself {config.node_ip} to the other hubs and to clients",
            hint="set node_ip to an address that they reach, or host to it",
        )
    hub = Hub(config.tubemq_broker, *_address(core, config, host))
    if hub.host == "localhost" or hub.host.startswith("127.") or hub.host == "::1":
        _log.warning(
            "this hub of a cluster is reached at %s, which hubs and clients on other machines cannot", hub.host
        )
    return Cluster(servers, path, hub, session_s=config.tubemq_session)


def make_service(
    core: HubCore,
    calls: CallsCore,
    store: StoreCore,
    config: HubConfig,
    host: str,
    cluster: Cluster | None,
    events: Events,
) -> Service:
    """Return the service of an open core.  ``host``: the numeric address that the hub listens on."""
    from dataproxy.hub.tubemq.cluster.limits import MasterLimits
    from dataproxy.hub.tubemq.service import Service

    service = Service(
        core,
        calls,
        store,
        _address(core, config, host),
        users={config.secret_id: config.secret_key.reveal()} if config.secret_id else {},
        allowed=config.topics,
        partitions=config.partitions,
        max_body=message_bytes(config),
        broker_id=config.tubemq_broker,
        limits=None if cluster is None else MasterLimits(broker_s=_BROKER_S, first_balance_s=_TAKEOVER_S),
        cluster=cluster,
        told=events.add,
    )
    service.clients.told = events.client
    if cluster is not None:
        cluster.on_change(service.wake)
    return service


def _address(core: HubCore, config: HubConfig, host: str) -> tuple[str, int]:
    """Return where clients reach the port of TubeMQ."""
    return config.node_ip if ipaddress.ip_address(host).is_unspecified else host, core.ports[core.tubemq]


def open_offsets(service: Service, config: HubConfig) -> OffsetKeeper | None:
    """Return what keeps offsets of groups at ZooKeeper, started, with those that are there taken; None without servers.

    To be called before clients come.  Raises HubError if no server answers, or the package is missing; ConfigError.
    """
    if not config.tubemq_zookeeper:
        return None
    from dataproxy.hub.zookeeper.nodes import Nodes
    from dataproxy.hub.zookeeper.offsets import OffsetKeeper
    from dataproxy.hub.zookeeper.servers import Servers

    nodes = Nodes(config.tubemq_zookeeper_root, service.parts.broker)
    keeper = OffsetKeeper(Servers(config.tubemq_zookeeper), nodes, service.registrations)
    try:
        keeper.start()
    except BaseException:
        keeper.stop(0.0)
        raise
    return keeper
