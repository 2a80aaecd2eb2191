"""Numbers of RocketMQ's remoting and their names: requests, answers, languages, versions, permissions."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

__all__ = [
    "LANGUAGES",
    "LEAST_VERSIONS",
    "VERSION",
    "Answer",
    "Code",
    "answer_name",
    "code_name",
    "shown_version",
    "version_name",
]

#: By their numbers in a binary header.
LANGUAGES: Final = (
    "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST",
)  # fmt: skip

VERSION: Final = 409  #: of a 4.9.8: a client takes it from the answer to its heartbeat for the broker's

#: The version from which on a client takes a request, or a server gives an answer.
LEAST_VERSIONS: Final = {
    "reset offsets, tell offsets": 28,
    "tell its state, consume a message": 62,
    "a limit of retries of its own": 121,
    "filters of SQL": 232,
    "routes in true JSON": 401,
}


class Code(IntEnum):
    """Codes of requests."""

    SEND_MESSAGE = 10
    PULL_MESSAGE = 11
    QUERY_MESSAGE = 12
    QUERY_CONSUMER_OFFSET = 14
    UPDATE_CONSUMER_OFFSET = 15
    UPDATE_AND_CREATE_TOPIC = 17
    SEARCH_OFFSET_BY_TIMESTAMP = 29
    GET_MAX_OFFSET = 30
    GET_MIN_OFFSET = 31
    GET_EARLIEST_MSG_STORETIME = 32
    VIEW_MESSAGE_BY_ID = 33
    HEART_BEAT = 34
    UNREGISTER_CLIENT = 35
    CONSUMER_SEND_MSG_BACK = 36
    END_TRANSACTION = 37
    GET_CONSUMER_LIST_BY_GROUP = 38
    CHECK_TRANSACTION_STATE = 39
    NOTIFY_CONSUMER_IDS_CHANGED = 40
    LOCK_BATCH_MQ = 41
    UNLOCK_BATCH_MQ = 42
    CHECK_CLIENT_CONFIG = 46
    GET_ROUTEINFO_BY_TOPIC = 105
    GET_BROKER_CLUSTER_INFO = 106
    UPDATE_AND_CREATE_SUBSCRIPTIONGROUP = 200
    GET_CONSUMER_CONNECTION_LIST = 203
    GET_PRODUCER_CONNECTION_LIST = 204
    GET_CONSUME_STATS = 208
    RESET_CONSUMER_CLIENT_OFFSET = 220
    GET_CONSUMER_STATUS_FROM_CLIENT = 221
    INVOKE_BROKER_TO_RESET_OFFSET = 222
    INVOKE_BROKER_TO_GET_CONSUMER_STATUS = 223
    REGISTER_FILTER_SERVER = 301
    GET_CONSUMER_RUNNING_INFO = 307
    CONSUME_MESSAGE_DIRECTLY = 309
    SEND_MESSAGE_V2 = 310
    SEND_BATCH_MESSAGE = 320
    SEND_REPLY_MESSAGE = 324
    SEND_REPLY_MESSAGE_V2 = 325
    PUSH_REPLY_MESSAGE_TO_CLIENT = 326
    GET_ALL_PRODUCER_INFO = 328
    REGISTER_SNODE = 350
    SNODE_PULL_MESSAGE = 351
    SNODE_PUSH_MESSAGE = 352
    PUSH_STATE = 353  #: a hub's own


class Answer(IntEnum):
    """Codes of answers."""

    SUCCESS = 0
    SYSTEM_ERROR = 1
    SYSTEM_BUSY = 2
    REQUEST_CODE_NOT_SUPPORTED = 3
    TRANSACTION_FAILED = 4
    FLUSH_DISK_TIMEOUT = 10
    SLAVE_NOT_AVAILABLE = 11
    FLUSH_SLAVE_TIMEOUT = 12
    MESSAGE_ILLEGAL = 13
    SERVICE_NOT_AVAILABLE = 14
    VERSION_NOT_SUPPORTED = 15
    NO_PERMISSION = 16
    TOPIC_NOT_EXIST = 17
    TOPIC_EXIST_ALREADY = 18
    PULL_NOT_FOUND = 19
    PULL_RETRY_IMMEDIATELY = 20
    PULL_OFFSET_MOVED = 21
    QUERY_NOT_FOUND = 22
    SUBSCRIPTION_PARSE_FAILED = 23
    SUBSCRIPTION_NOT_EXIST = 24
    SUBSCRIPTION_NOT_LATEST = 25
    SUBSCRIPTION_GROUP_NOT_EXIST = 26
    FILTER_DATA_NOT_EXIST = 27
    FILTER_DATA_NOT_LATEST = 28
    TRANSACTION_SHOULD_COMMIT = 200
    TRANSACTION_SHOULD_ROLLBACK = 201
    TRANSACTION_STATE_UNKNOW = 202
    TRANSACTION_STATE_GROUP_WRONG = 203
    NO_BUYER_ID = 204
    NOT_IN_CURRENT_UNIT = 205
    CONSUMER_NOT_ONLINE = 206
    CONSUME_MSG_TIMEOUT = 207
    NO_MESSAGE = 208
    FLOW_CONTROL = 215


def code_name(code: int) -> str:
    """Return the name of a request's code, empty for one that is unknown."""
    return Code(code).name if code in Code.__members__.values() else ""


#: The version of the first patch of a line, the number of that patch, and how many there are.
_LINES: Final = {
    (3, 0): (17, 1, 15), (3, 1): (47, 0, 10), (3, 2): (67, 0, 10),
    **{(3, minor): (87 + 18 * (minor - 3), 1, 9) for minor in range(3, 10)},
    **{(major, minor): (213 + 200 * (major - 4) + 20 * minor, 0, 10) for major in (4, 5) for minor in range(10)},
}  # fmt: skip


def version_name(version: int) -> str:
    """Return the name of a client's version, such as ``V4_9_8``, empty for one that is unknown.

    Each release has two numbers: that of its snapshots, and its own.
    """
    for (major, minor), (begin, patch, n) in _LINES.items():
        if begin - 1 <= version < begin - 1 + 2 * n:
            suffix = "" if version % 2 else "_SNAPSHOT"
            return f"V{major}_{minor}_{patch + (version - begin + 1) // 2}{suffix}"
    return ""


def shown_version(version: int) -> str:
    """Return the name of a client's version for an operator, with the number of one that is unknown."""
    return version_name(version) or f"unknown ({version})"


def answer_name(code: int) -> str:
    """Return the name of an answer's code, empty for one that is unknown."""
    return Answer(code).name if code in Answer.__members__.values() else ""
