"""Records of bodies: heartbeats, connections, routes, configurations of groups, states of clients.

`read` takes what clients of all languages write: enums by name or by number, numbers as texts, lists that are null or
missing.  It raises RemoteProtocolError, whose text names the place.  `write` returns JSON.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Self, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import force_setattr

from dataproxy.wire.rocketmq.dialect import read_body, write_body

__all__ = [
    "BrokerData",
    "ClientCheck",
    "ClusterInfo",
    "Connection",
    "ConsumeFrom",
    "ConsumeResult",
    "ConsumeType",
    "ConsumerConnections",
    "ConsumerData",
    "ConsumerIds",
    "Heartbeat",
    "MessageModel",
    "ProducerConnections",
    "ProducerData",
    "ProducerInfo",
    "ProducerTable",
    "PushSession",
    "PushSessions",
    "QueueData",
    "Route",
    "RunningInfo",
    "Subscription",
    "SubscriptionGroup",
]

_Int = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
_Long = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_E = TypeVar("_E", bound=Enum)


class ConsumeType(Enum):
    """How a group gets messages, in the order of the numbers that clients of C++ write."""

    PULL = "CONSUME_ACTIVELY"
    PUSH = "CONSUME_PASSIVELY"  #: pulled by the client's library
    SERVER_PUSH = "CONSUME_PUSH"


class MessageModel(Enum):
    """Whether each member gets all messages, or a share."""

    BROADCASTING = "BROADCASTING"
    CLUSTERING = "CLUSTERING"


class ConsumeFrom(Enum):
    """Where a group without offsets begins."""

    LAST = "CONSUME_FROM_LAST_OFFSET"
    LAST_AND_MIN_AT_FIRST = "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST"
    MIN = "CONSUME_FROM_MIN_OFFSET"
    MAX = "CONSUME_FROM_MAX_OFFSET"
    FIRST = "CONSUME_FROM_FIRST_OFFSET"
    TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


def _settle(record: Struct, name: str, kind: type[_E]) -> None:
    """Put a member of an enum where its number is."""
    value = getattr(record, name)
    if isinstance(value, int):
        members = list(kind)
        if not 0 <= value < len(members):
            raise ValueError(f"{name} is {value}; expected 0 to {len(members) - 1}, or a name")
        force_setattr(record, name, members[value])


def _fill(record: Struct, *names: str) -> None:
    """Put an empty tuple where null is."""
    for name in names:
        if getattr(record, name) is None:
            force_setattr(record, name, ())


class _Body(Struct, frozen=True, rename="camel"):
    @classmethod
    def read(cls, body: bytes) -> Self:
        """Read a body; raises RemoteProtocolError."""
        return read_body(cls, body)

    def write(self) -> bytes:
        """Return the body."""
        return write_body(self)


class Subscription(_Body, frozen=True):
    """What a group wants of a topic."""

    topic: str
    sub_string: str = "*"
    tags_set: tuple[str, ...] | None = ()
    code_set: tuple[_Int, ...] | None = ()  #: Java's hashes of the tags
    sub_version: _Long = 0
    expression_type: str | None = "TAG"
    class_filter_mode: bool = False
    #: Of a member that a hub pushes to (`ConsumeType.SERVER_PUSH`): the queues that it has ...
    queue_id_set: tuple[_Int, ...] | UnsetType | None = UNSET
    #: ... and by their numbers the offsets at which to begin, where no offset of its group is kept.
    queue_offset_table: dict[_Int, _Long] | UnsetType | None = UNSET

    @property
    def pushed_queues(self) -> tuple[int, ...]:
        """Return the queues that a hub is to push."""
        return self.queue_id_set if isinstance(self.queue_id_set, tuple) else ()

    @property
    def begins(self) -> dict[int, int]:
        """Return where to begin in queues of which no offset is kept."""
        return self.queue_offset_table if isinstance(self.queue_offset_table, dict) else {}

    def __post_init__(self) -> None:
        _fill(self, "tags_set", "code_set")
        if not self.expression_type:
            force_setattr(self, "expression_type", "TAG")


class ProducerData(_Body, frozen=True):
    """A producer group of a client."""

    group_name: str


class ConsumerData(_Body, frozen=True):
    """A consumer group of a client."""

    group_name: str
    consume_type: ConsumeType | _Int
    message_model: MessageModel | _Int
    consume_from_where: ConsumeFrom | _Int
    subscription_data_set: tuple[Subscription, ...] | None = ()
    unit_mode: bool = False

    def __post_init__(self) -> None:
        _settle(self, "consume_type", ConsumeType)
        _settle(self, "message_model", MessageModel)
        _settle(self, "consume_from_where", ConsumeFrom)
        _fill(self, "subscription_data_set")


class Heartbeat(_Body, frozen=True):
    """34: who a client is, and what it produces and consumes."""

    client_id: str = msgspec.field(name="clientID")
    producer_data_set: tuple[ProducerData, ...] | None = ()
    consumer_data_set: tuple[ConsumerData, ...] | None = ()

    def __post_init__(self) -> None:
        _fill(self, "producer_data_set", "consumer_data_set")


class ClientCheck(_Body, frozen=True):
    """46: whether a subscription could be made."""

    client_id: str
    group: str
    subscription_data: Subscription


class ConsumerIds(_Body, frozen=True):
    """Answer to 38: the members of a group."""

    consumer_id_list: tuple[str, ...]


class Connection(_Body, frozen=True):
    """A client that is connected."""

    client_addr: str
    client_id: str
    language: str | None
    version: _Int


class ProducerConnections(_Body, frozen=True):
    """Answer to 204."""

    connection_set: tuple[Connection, ...]


class ConsumerConnections(_Body, frozen=True):
    """Answer to 203."""

    connection_set: tuple[Connection, ...]
    subscription_table: dict[str, Subscription]
    consume_type: ConsumeType | _Int
    message_model: MessageModel | _Int
    consume_from_where: ConsumeFrom | _Int

    def __post_init__(self) -> None:
        _settle(self, "consume_type", ConsumeType)
        _settle(self, "message_model", MessageModel)
        _settle(self, "consume_from_where", ConsumeFrom)


class SubscriptionGroup(_Body, frozen=True):
    """200: the configuration of a consumer group."""

    group_name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    retry_queue_nums: _Int = 1
    retry_max_times: _Int = 16
    broker_id: _Long = 0
    which_broker_when_consume_slowly: _Long = 1
    notify_consumer_ids_changed_enable: bool = True


class QueueData(_Body, frozen=True):
    """The queues of a topic at a broker; of ``perm`` 4 is read and 2 write."""

    broker_name: str
    read_queue_nums: _Int
    write_queue_nums: _Int
    perm: _Int
    topic_sys_flag: _Int = 0


class BrokerData(_Body, frozen=True):
    """A broker's addresses, host:port, by its numbers; 0 is the master."""

    cluster: str
    broker_name: str
    broker_addrs: dict[_Long, str]


class Route(_Body, frozen=True):
    """Answer to 105: the brokers of a topic."""

    queue_datas: tuple[QueueData, ...]
    broker_datas: tuple[BrokerData, ...]
    filter_server_table: dict[str, list[str]] | None = msgspec.field(default_factory=dict)
    order_topic_conf: str | None = None


class ClusterInfo(_Body, frozen=True):
    """Answer to 106: all brokers."""

    broker_addr_table: dict[str, BrokerData]
    cluster_addr_table: dict[str, list[str]]


class RunningInfo(_Body, frozen=True):
    """Answer to 307: what a client is doing; ``mq_table`` has the texts of queues for keys."""

    properties: dict[str, str] | None = None
    subscription_set: tuple[Subscription, ...] | None = ()
    mq_table: dict[str, dict[str, Any]] | None = None
    status_table: dict[str, dict[str, Any]] | None = None
    jstack: str | None = None


class ConsumeResult(_Body, frozen=True):
    """Answer to 309."""

    consume_result: str
    order: bool = False
    auto_commit: bool = True
    spent_time_mills: _Long = 0
    remark: str | None = None


class PushSession(_Body, frozen=True):
    """A push session: acknowledged to before ``commit_offset``, pushed to before ``next_offset``."""

    topic: str
    queue_id: _Int
    commit_offset: _Long
    next_offset: _Long
    messages: _Int = 0  #: that are not acknowledged
    bytes: _Long = 0
    state: str = ""


class PushSessions(_Body, frozen=True):
    """Answer to 353: the push sessions of a connection in a group, and what each may have without acknowledgement."""

    sessions: tuple[PushSession, ...]
    max_messages: _Int = 0
    max_bytes: _Long = 0


class ProducerInfo(_Body, frozen=True):
    """A producer that is connected."""

    client_id: str
    remote_ip: str = msgspec.field(name="remoteIP")
    language: str | None
    version: _Int
    last_update_timestamp: _Long


class ProducerTable(_Body, frozen=True):
    """Answer to 328: all producers, by their groups."""

    data: dict[str, tuple[ProducerInfo, ...]]
