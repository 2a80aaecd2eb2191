"""The fields of each code's header as a record; the bodies of some codes are in `bodies` and `queues`.

Fields travel as texts.  `read_header` turns them into what they should be, and names the first that is missing or is
something else; `header_fields` turns a record into fields.  What a record does not know is left aside: clients add
fields of their own.  SEND and PULL (10, 11, 310, 320) are not here: compiled code reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import NODEFAULT, Meta, Struct
from msgspec.inspect import BoolType, IntType, type_info
from msgspec.structs import fields as fields_of

from dataproxy.errors import RemoteProtocolError
from dataproxy.wire.rocketmq.codes import Code, code_name

__all__ = [
    "ANSWERS",
    "REQUESTS",
    "BrokerNamed",
    "ConsumeDirectly",
    "ConsumerOf",
    "CreateTopic",
    "EndTransaction",
    "FilterServer",
    "GroupQueue",
    "Header",
    "MessageAt",
    "Offset",
    "ProducerOf",
    "Pull",
    "Pulled",
    "PushState",
    "PushStateOf",
    "Pushed",
    "PushedReply",
    "Queried",
    "QueryMessage",
    "ResetOffset",
    "RouteOf",
    "RunningInfoOf",
    "SearchOffset",
    "SendBack",
    "Stamp",
    "StatsOf",
    "StatusOf",
    "TopicQueue",
    "TransactionCheck",
    "Unregister",
    "UpdateOffset",
    "header_fields",
    "read_header",
]

_SHOWN: Final = 60
Int = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Long = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class Header(Struct, frozen=True, rename="camel"):
    """Fields of a header; a field without a default has to be there."""


class Unregister(Header, frozen=True):
    """35: a client leaves a producer group, a consumer group, or both."""

    client_id: str = msgspec.field(name="clientID")
    producer_group: str = ""
    consumer_group: str = ""


class ConsumerOf(Header, frozen=True):
    """38, 40 and 203: a consumer group."""

    consumer_group: str


class ProducerOf(Header, frozen=True):
    """204: a producer group."""

    producer_group: str


class TransactionCheck(Header, frozen=True):
    """39: a server asks a producer for the end of a transaction."""

    tran_state_table_offset: Long
    commit_log_offset: Long
    msg_id: str = ""
    transaction_id: str = ""
    offset_msg_id: str = ""
    bname: str = ""


class EndTransaction(Header, frozen=True, kw_only=True):
    """37: 8 commits, 12 rolls back, 0 is unknown."""

    producer_group: str
    tran_state_table_offset: Long
    commit_log_offset: Long
    commit_or_rollback: Int
    from_transaction_check: bool = False
    msg_id: str
    transaction_id: str = ""
    bname: str = ""


class ResetOffset(Header, frozen=True):
    """220 and 222: the offsets of a group are set to a time in ms; -1 is the end."""

    topic: str
    group: str
    timestamp: Long
    is_force: bool


class StatusOf(Header, frozen=True):
    """221 and 223: which offsets the members of a group have; ``client_addr`` is a client's id, empty for all."""

    topic: str
    group: str
    client_addr: str = ""


class FilterServer(Header, frozen=True):
    """301: the address of a filter server."""

    filter_server_addr: str


class RunningInfoOf(Header, frozen=True):
    """307: what a client is doing."""

    consumer_group: str
    client_id: str
    jstack_enable: bool = False


class ConsumeDirectly(Header, frozen=True):
    """309: a client shall consume this message."""

    consumer_group: str
    client_id: str = ""
    msg_id: str = ""
    broker_name: str = ""


class Pushed(Header, frozen=True, kw_only=True):
    """352: messages are pushed, stored ones back to back in the body; offset and id are those of the first.

    What follows ``topic`` is a hub's own: the group, what of the queue this is about (from ``begin_offset`` to before
    ``next_offset``, with nothing else in it that the group wants), and where the queue ends.  ``session``: frames of
    one number follow each other without a gap; another number begins anew, where the group goes on.
    """

    queue_offset: Long
    message_id: str = ""
    queue_id: Int
    topic: str
    consumer_group: str = ""
    session: Long = -1
    begin_offset: Long = -1
    next_offset: Long = -1
    max_offset: Long = -1


class PushStateOf(Header, frozen=True):
    """353 as a client asks: which push sessions its connection has in a group."""

    consumer_group: str


class PushState(Header, frozen=True, kw_only=True):
    """353 as a hub tells, one-way: a push session is ``paused``, ``resumed``, or ``evicted``.

    ``messages``, ``bytes`` and ``age_millis`` are what it has not acknowledged; ``commit_offset`` is where it goes on.
    """

    consumer_group: str
    topic: str
    queue_id: Int
    state: str
    messages: Int = 0
    bytes: Long = 0
    age_millis: Long = 0
    commit_offset: Long = -1


class PushedReply(Header, frozen=True, kw_only=True):
    """326: a reply for a client that waits for it, as a message; ``born_host`` and ``store_host`` are host:port."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int
    queue_id: Int
    sys_flag: Int
    born_timestamp: Long
    flag: Int
    properties: str = ""
    reconsume_times: Int = 0
    unit_mode: bool = False
    born_host: str = ""
    store_host: str = ""
    store_timestamp: Long


class GroupQueue(Header, frozen=True):
    """14: the offset that a group has confirmed of a queue."""

    consumer_group: str
    topic: str
    queue_id: Int
    bname: str = ""


class UpdateOffset(Header, frozen=True):
    """15: a group confirms a queue up to this offset."""

    consumer_group: str
    topic: str
    queue_id: Int
    commit_offset: Long
    bname: str = ""


class CreateTopic(Header, frozen=True):
    """17: a topic is made or changed."""

    topic: str
    default_topic: str
    read_queue_nums: Int
    write_queue_nums: Int
    perm: Int
    topic_filter_type: str
    topic_sys_flag: Int = 0
    order: bool = False


class TopicQueue(Header, frozen=True):
    """30 to 32: a queue of a topic."""

    topic: str
    queue_id: Int
    bname: str = ""


class SearchOffset(Header, frozen=True):
    """29: the offset of a queue at a time in ms."""

    topic: str
    queue_id: Int
    timestamp: Long
    bname: str = ""


class MessageAt(Header, frozen=True):
    """33: a message by its physical offset."""

    offset: Long


class SendBack(Header, frozen=True):
    """36: a consumer wants a message again later."""

    offset: Long
    group: str
    delay_level: Int
    origin_msg_id: str = ""
    origin_topic: str = ""
    unit_mode: bool = False
    max_reconsume_times: Int = -1
    bname: str = ""


class RouteOf(Header, frozen=True):
    """105: which brokers have a topic."""

    topic: str
    accept_standard_json_only: bool = False


class Pull(Header, frozen=True):
    """11: messages of a queue from an offset on; compiled code reads it, except where a control thread answers."""

    consumer_group: str
    topic: str
    queue_id: Int
    queue_offset: Long
    max_msg_nums: Int
    sys_flag: Int
    commit_offset: Long = 0
    suspend_timeout_millis: Long = 0
    subscription: str = ""
    sub_version: Long = 0
    expression_type: str = ""


class Pulled(Header, frozen=True):
    """Answer to 11."""

    suggest_which_broker_id: Long
    next_begin_offset: Long
    min_offset: Long
    max_offset: Long


class StatsOf(Header, frozen=True):
    """208: how far a group is, in one topic or in all."""

    consumer_group: str
    topic: str = ""


class QueryMessage(Header, frozen=True):
    """12: messages of a topic by a key and a time in ms."""

    topic: str
    key: str
    max_num: Int
    begin_timestamp: Long
    end_timestamp: Long


class Queried(Header, frozen=True):
    """Answer to 12: up to when, in ms, and up to which physical offset messages were looked at."""

    index_last_update_timestamp: Long
    index_last_update_phyoffset: Long


class Offset(Header, frozen=True):
    """Answer to 14 and 29 to 31."""

    offset: Long


class Stamp(Header, frozen=True):
    """Answer to 32: a time in ms."""

    timestamp: Long


class BrokerNamed(Header, frozen=True):
    """Answer to 301."""

    broker_name: str
    broker_id: Long


#: The records of requests; a code that is not here has no fields, or is compiled code's.
REQUESTS: Final[Mapping[int, type[Header]]] = {
    Code.QUERY_MESSAGE: QueryMessage,
    Code.QUERY_CONSUMER_OFFSET: GroupQueue,
    Code.UPDATE_CONSUMER_OFFSET: UpdateOffset,
    Code.UPDATE_AND_CREATE_TOPIC: CreateTopic,
    Code.SEARCH_OFFSET_BY_TIMESTAMP: SearchOffset,
    Code.GET_MAX_OFFSET: TopicQueue,
    Code.GET_MIN_OFFSET: TopicQueue,
    Code.GET_EARLIEST_MSG_STORETIME: TopicQueue,
    Code.VIEW_MESSAGE_BY_ID: MessageAt,
    Code.UNREGISTER_CLIENT: Unregister,
    Code.CONSUMER_SEND_MSG_BACK: SendBack,
    Code.END_TRANSACTION: EndTransaction,
    Code.GET_CONSUMER_LIST_BY_GROUP: ConsumerOf,
    Code.CHECK_TRANSACTION_STATE: TransactionCheck,
    Code.NOTIFY_CONSUMER_IDS_CHANGED: ConsumerOf,
    Code.GET_ROUTEINFO_BY_TOPIC: RouteOf,
    Code.GET_CONSUMER_CONNECTION_LIST: ConsumerOf,
    Code.GET_PRODUCER_CONNECTION_LIST: ProducerOf,
    Code.RESET_CONSUMER_CLIENT_OFFSET: ResetOffset,
    Code.GET_CONSUMER_STATUS_FROM_CLIENT: StatusOf,
    Code.INVOKE_BROKER_TO_RESET_OFFSET: ResetOffset,
    Code.GET_CONSUME_STATS: StatsOf,
    Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: StatusOf,
    Code.REGISTER_FILTER_SERVER: FilterServer,
    Code.GET_CONSUMER_RUNNING_INFO: RunningInfoOf,
    Code.CONSUME_MESSAGE_DIRECTLY: ConsumeDirectly,
    Code.PUSH_REPLY_MESSAGE_TO_CLIENT: PushedReply,
    Code.SNODE_PUSH_MESSAGE: Pushed,
    Code.PUSH_STATE: PushStateOf,
}

#: The records of successful answers, by the code of their request.
ANSWERS: Final[Mapping[int, type[Header]]] = {
    Code.QUERY_MESSAGE: Queried,
    Code.QUERY_CONSUMER_OFFSET: Offset,
    Code.SEARCH_OFFSET_BY_TIMESTAMP: Offset,
    Code.GET_MAX_OFFSET: Offset,
    Code.GET_MIN_OFFSET: Offset,
    Code.GET_EARLIEST_MSG_STORETIME: Stamp,
    Code.REGISTER_FILTER_SERVER: BrokerNamed,
}

_Record = TypeVar("_Record", bound=Header)


@cache
def _shape(kind: type[Header]) -> tuple[tuple[str, str, Any, Any], ...]:
    """Return (name, name on the wire, type, default) of each field."""
    return tuple((one.name, one.encode_name, type_info(one.type), one.default) for one in fields_of(kind))


def read_header(kind: type[_Record], fields: Mapping[str, str]) -> _Record:
    """Return a record of a header's fields.

    An empty text counts as missing, as with Java's clients, whose binary headers cannot tell the two apart.  A boolean
    is true for ``true`` in letters of any size and false for all else: a client of C++ writes 0 and 1, and to a Java
    broker both are false.  Raises RemoteProtocolError: a field that has to be there is missing, or a number is none.
    """
    values: dict[str, Any] = {}
    for name, word, shape, default in _shape(kind):
        text = fields.get(word, "")
        if not text:
            if default is NODEFAULT:
                raise _wrong(kind, word, "it is missing")
        elif isinstance(shape, BoolType):
            values[name] = text.lower() == "true"
        elif isinstance(shape, IntType):
            values[name] = _number(kind, word, text, shape)
        else:
            values[name] = text
    return kind(**values)


def header_fields(header: Header) -> dict[str, str]:
    """Return a record as the fields of a header; those that have their default are left out."""
    found = {}
    for name, word, _, default in _shape(type(header)):
        value = getattr(header, name)
        if value != default or default is NODEFAULT:
            found[word] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def _number(kind: type[Header], word: str, text: str, shape: IntType) -> int:
    digits = text[1:] if text[0] in "+-" else text
    if digits.isascii() and digits.isdigit() and len(digits) < 20:
        number = int(text)
        if (shape.ge or 0) <= number <= (shape.le or 0):
            return number
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    raise _wrong(kind, word, f"it is {shown!r}; expected a number from {shape.ge} to {shape.le}")


def _wrong(kind: type[Header], word: str, why: str) -> RemoteProtocolError:
    codes = [code_name(code) for code, one in REQUESTS.items() if one is kind]
    of = f" of {' or '.join(codes)}" if codes else ""
    return RemoteProtocolError(f"the field {word!r}{of}: {why}", retriable=False, details={"field": word})
