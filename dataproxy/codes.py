"""Result codes: what a DataProxy answers, what the client itself reports, and whether a retry can help."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from dataproxy.localcodes import LOCAL_CODES, LocalCode
from dataproxy.numbers import (
    RC_BACK,
    RC_DRAINED,
    RC_FEW,
    RC_FRAMING,
    RC_LATE,
    RC_NEVER,
    RC_NODE,
    RC_OK,
    RC_SPLIT,
)

__all__ = [
    "CLASS_TEXT",
    "LATE_ATTEMPTS",
    "LOCAL_CODES",
    "RETRY_CLASS",
    "SERVER_CODES",
    "SUCCESS",
    "UNKNOWN_ERROR",
    "LocalCode",
    "RetryClass",
    "ServerCode",
    "code_name",
    "describe",
    "retry_class",
]


class RetryClass(IntEnum):
    """Say what the producer does with a frame that a server answered with a code."""

    OK = RC_OK  #: the message is stored
    NODE = RC_NODE  #: send it again, through another node if there is one
    BACKOFF = RC_BACK  #: send it again after a pause, through any node
    LATE = RC_LATE  #: send it again slowly, for ``unknown_group_timeout``
    NO = RC_NEVER  #: fail at once, a retry cannot help
    DRAINED = RC_DRAINED  #: as NODE, and leave this node alone for a while
    FEW = RC_FEW  #: send it again after a pause, ``LATE_ATTEMPTS`` times at most
    FRAMING = RC_FRAMING  #: as NO, and replace the connection
    SPLIT = RC_SPLIT  #: as NO for a single message; several are sent again in parts, so that only the guilty fail


#: The name of each class, and what the producer does, in words.
CLASS_TEXT: Final[dict[RetryClass, tuple[str, str]]] = {
    RetryClass.OK: ("success", "The message counts as delivered."),
    RetryClass.NODE: (
        "retry elsewhere",
        (
            "The frame is sent again after a pause, through another proxy if there is one;"
            " this proxy is not used for a second."
        ),
    ),
    RetryClass.BACKOFF: (
        "retry later",
        "The frame is sent again after growing pauses, through any proxy, until `delivery_timeout`.",
    ),
    RetryClass.LATE: (
        "retry slowly",
        (
            "The frame is sent again after growing pauses of some seconds, for `unknown_group_timeout`: a group or"
            " stream that was just approved is not known to each proxy yet. This uses up no attempt and no retry"
            " budget. Then the message fails."
        ),
    ),
    RetryClass.NO: ("permanent", "The message fails at once as `DeliveryFailed`; a retry cannot help."),
    RetryClass.DRAINED: (
        "node drained",
        "The frame is sent again through another proxy; this proxy is not used for ten seconds.",
    ),
    RetryClass.FEW: (
        "retry a few times",
        "The frame is sent again after growing pauses, five attempts in all. Then the message fails.",
    ),
    RetryClass.FRAMING: (
        "permanent, reconnect",
        (
            "The message fails at once as `DeliveryFailed`, and the connection is replaced: the proxy no longer"
            " finds the frames in it. The connection's other frames are sent again."
        ),
    ),
    RetryClass.SPLIT: (
        "permanent, one by one",
        (
            "A message that is refused alone fails at once as `DeliveryFailed`. A frame with several is sent again in"
            " halves, one after the other, until each refused message is alone; the others are delivered. Frames of"
            " message type 3 cannot be divided: all their messages fail."
        ),
    ),
}


class ServerCode(NamedTuple):
    """Describe one code of the DataProxy protocol."""

    code: int
    name: str
    text: str
    retry: RetryClass
    hint: str


SUCCESS: Final = 0
UNKNOWN_ERROR: Final = 2147483647
#: Attempts that a code of class ``FEW`` may use up before the message fails.
LATE_ATTEMPTS: Final = 5

_OK, _NODE, _BACK, _LATE, _NO, _DRAINED, _FEW, _FRAMING, _SPLIT = RetryClass

_BUG = "the frame is malformed for this server; report it with the server's version"
_HTTP = "the server takes no such report; check that the target is the HTTP port of a DataProxy"
_GATEWAY = "a gateway in front of the proxies failed; the message may have been stored all the same; see its log"
_FOREIGN = "what answers is not a DataProxy, for example a login page; check the target and the way to it"
_FORBIDDEN = "a gateway in front of the proxies does not let the request through; ask its operator"
_MQ = "the proxy's message queue failed; the message is retried until delivery_timeout; see the proxy's log"
_BROKER = "the message may have been stored all the same; see the broker's log"
_PARTITION = "the broker does not have the topic's partition, or it is closed; the masters are asked where it is"
_CREDENTIALS = "give user and password as the cluster's operator says; a new token is asked for"
_TOPIC = "check that group and stream are approved in the Manager; a new stream reaches the proxies within a minute"

_SERVER: Final[tuple[ServerCode, ...]] = (
    ServerCode(0, "SUCCESS", "Ok", _OK, ""),
    ServerCode(1, "SINK_SERVICE_UNREADY", "Service sink not ready", _NODE, "this proxy has no queue configured yet"),
    ServerCode(2, "SERVICE_CLOSED", "Service closed", _DRAINED, "an operator drained this proxy; others are used"),
    ServerCode(3, "CONF_SERVICE_UNREADY", "Configure Service not ready", _NODE, "this proxy lacks its id mapping"),
    ServerCode(10, "ILLEGAL_VISIT_IP", "Illegal visit ip", _NO, "ask the cluster's operator to allow this address"),
    ServerCode(31, "HTTP_DECODE_REQ_FAILURE", "Decode request failure", _NO, _HTTP),
    ServerCode(32, "HTTP_UNSUPPORTED_METHOD", "Un-supported method", _NO, _HTTP),
    ServerCode(33, "HTTP_REQ_URI_BLANK", "Request uri is blank", _NO, _HTTP),
    ServerCode(34, "HTTP_DECODE_REQ_URI_FAILURE", "Decode uri failure", _NO, _HTTP),
    ServerCode(35, "HTTP_UNSUPPORTED_SERVICE_URI", "Un-supported service uri", _NO, _HTTP),
    ServerCode(36, "HTTP_UNSUPPORTED_CONTENT_TYPE", "Un-supported content type", _NO, _HTTP),
    ServerCode(94, "FIELD_MAGIC_NOT_EQUAL", "Magic value not equal", _FRAMING, _BUG),
    ServerCode(95, "FIELD_LENGTH_VALUE_NOT_EQUAL", "Field length value not equal", _NO, _BUG),
    ServerCode(96, "UNCOMPRESS_DATA_ERROR", "Uncompress data error", _NO, "try compression='none'"),
    ServerCode(100, "MISS_REQUIRED_GROUPID_ARGUMENT", "Parameter groupId is required", _NO, "give a group id"),
    ServerCode(101, "MISS_REQUIRED_STREAMID_ARGUMENT", "Parameter streamId is required", _NO, "give a stream id"),
    ServerCode(102, "MISS_REQUIRED_DT_ARGUMENT", "Parameter dt is required", _NO, "give a data time"),
    ServerCode(103, "MISS_REQUIRED_BODY_ARGUMENT", "Parameter body is required", _NO, "send a body that is not empty"),
    ServerCode(
        104,
        "BODY_EXCEED_MAX_LEN",
        "Body length exceed the maximum length",
        _SPLIT,
        "the message is too large for this proxy: split it, or raise the proxy's limit",
    ),
    ServerCode(105, "BODY_LENGTH_ZERO", "Body length is 0", _NO, "send a body that is not empty"),
    ServerCode(106, "BODY_LENGTH_LESS_ZERO", "Body length less than 0", _NO, _BUG),
    ServerCode(107, "ATTR_LENGTH_LESS_ZERO", "Attribute length less than 0", _NO, "shorten the attributes"),
    ServerCode(108, "ERROR_PROCESS_LOGIC", "Wrong data processing logic", _NO, "see the proxy's log"),
    ServerCode(109, "SPLIT_ATTR_ERROR", "Split attributes failure", _NO, "remove '&' and '=' from keys and values"),
    ServerCode(110, "UNSUPPORTED_MSG_TYPE", "Unsupported msgType", _NO, "use message_type=7"),
    ServerCode(111, "EMPTY_MSG", "Empty message", _NO, "send a body that is not empty"),
    ServerCode(112, "UNSUPPORTED_EXTEND_FIELD_VALUE", "Unsupported extend field value", _NO, _BUG),
    ServerCode(113, "UNCONFIGURED_GROUPID_OR_STREAMID", "Unconfigured groupId or streamId", _LATE, _TOPIC),
    ServerCode(
        114, "PUT_EVENT_TO_CHANNEL_FAILURE", "Put event to Channels failure", _BACK, "the proxy's queue is full; wait"
    ),
    ServerCode(115, "TOPIC_IS_BLANK", "Topic is null", _LATE, _TOPIC),
    ServerCode(116, "NO_AVAILABLE_PRODUCER", "No available producer info", _BACK, _MQ),
    ServerCode(117, "PRODUCER_IS_NULL", "Producer is null", _BACK, _MQ),
    ServerCode(118, "SEND_REQUEST_TO_MQ_FAILURE", "Send request to MQ failure", _BACK, _MQ),
    ServerCode(119, "MQ_RETURN_ERROR", "MQ client return error", _BACK, _MQ),
    ServerCode(120, "DUPLICATED_MESSAGE", "Duplicated message", _OK, "the server has stored this message before"),
    ServerCode(121, "GROUPID_OR_STREAMID_NOT_CONFIGURE", "GroupId or StreamId not found in configure", _LATE, _TOPIC),
    ServerCode(122, "GROUPID_OR_STREAMID_INCONSTANT", "GroupId or StreamId inconstant", _NO, _BUG),
    ServerCode(123, "MSG_BODY_ITEMS_INVALID", "Msg body items invalid", _SPLIT, "see the proxy's text and log"),
    ServerCode(
        150,
        "ATTR_ORDER_CONTROL_CONFLICT_ERROR",
        "Require order send but isAck is false",
        _NO,
        "remove isAck or syncSend",
    ),
    ServerCode(
        151,
        "ATTR_PROXY_CONTROL_CONFLICT_ERROR",
        "Require proxy send but isAck is false",
        _NO,
        "remove isAck or proxySend",
    ),
    # Statuses of HTTP, where the answer has no code of a DataProxy.
    ServerCode(200, "HTTP_NO_CODE", "HTTP answer without a result code", _FEW, _FOREIGN),
    ServerCode(301, "HTTP_MOVED", "HTTP redirection", _FEW, _FOREIGN),
    ServerCode(302, "HTTP_FOUND", "HTTP redirection", _FEW, _FOREIGN),
    ServerCode(307, "HTTP_TEMPORARY_REDIRECT", "HTTP redirection", _FEW, _FOREIGN),
    ServerCode(308, "HTTP_PERMANENT_REDIRECT", "HTTP redirection", _FEW, _FOREIGN),
    ServerCode(400, "HTTP_BAD_REQUEST", "HTTP bad request", _NO, _HTTP),
    ServerCode(401, "HTTP_UNAUTHORIZED", "HTTP credentials are missing", _FEW, _FORBIDDEN),
    ServerCode(403, "HTTP_FORBIDDEN", "HTTP forbidden", _FEW, _FORBIDDEN),
    ServerCode(404, "HTTP_NOT_FOUND", "HTTP not found", _FEW, _HTTP),
    ServerCode(407, "HTTP_PROXY_AUTHENTICATION", "HTTP proxy credentials are missing", _FEW, _FORBIDDEN),
    ServerCode(408, "HTTP_REQUEST_TIMEOUT", "HTTP request timeout", _BACK, "the way to the proxy is slow"),
    ServerCode(413, "HTTP_TOO_LARGE", "HTTP request too large", _NO, "lower max_frame_bytes to the server's limit"),
    ServerCode(429, "HTTP_TOO_MANY_REQUESTS", "HTTP too many requests", _BACK, "a gateway limits the rate; wait"),
    ServerCode(500, "HTTP_SERVER_ERROR", "HTTP server error", _NODE, _GATEWAY),
    ServerCode(502, "HTTP_BAD_GATEWAY", "HTTP bad gateway", _NODE, _GATEWAY),
    ServerCode(503, "HTTP_UNAVAILABLE", "HTTP service unavailable", _NODE, _GATEWAY),
    ServerCode(504, "HTTP_GATEWAY_TIMEOUT", "HTTP gateway timeout", _NODE, _GATEWAY),
    # Codes of TubeMQ's brokers, each with 1000 added.
    ServerCode(1400, "TUBEMQ_BAD_REQUEST", "TubeMQ: bad request", _NO, "the text says what the broker misses"),
    ServerCode(1401, "TUBEMQ_UNAUTHORIZED", "TubeMQ: unauthorised", _NO, "ask the cluster's operator for the right"),
    ServerCode(1403, "TUBEMQ_FORBIDDEN", "TubeMQ: not here", _FEW, _PARTITION),
    ServerCode(1415, "TUBEMQ_CERTIFICATE_FAILURE", "TubeMQ: credentials refused", _FEW, _CREDENTIALS),
    ServerCode(
        1419, "TUBEMQ_OVERFLOW", "TubeMQ: the broker's memory is full", _BACK, "the broker writes to its disk; wait"
    ),
    ServerCode(1500, "TUBEMQ_SERVER_ERROR", "TubeMQ: the broker failed", _NODE, _BROKER),
    ServerCode(1501, "TUBEMQ_EXCEPTION", "TubeMQ: the broker answered with an exception", _NODE, _BROKER),
    ServerCode(1503, "TUBEMQ_UNAVAILABLE", "TubeMQ: the broker takes no messages", _DRAINED, "other brokers are used"),
    ServerCode(1510, "TUBEMQ_NO_SET", "TubeMQ: the broker has no store for the message", _NODE, _BROKER),
    ServerCode(1599, "TUBEMQ_UNSPECIFIED", "TubeMQ: an error without a known code", _FEW, _BROKER),
    ServerCode(UNKNOWN_ERROR, "UNKNOWN_ERROR", "Unknown error", _FEW, "see the proxy's log"),
)

#: Every code of the protocol by number.
SERVER_CODES: Final[dict[int, ServerCode]] = {entry.code: entry for entry in _SERVER}
#: Class of every code of the protocol; the engine fills its table from this.
RETRY_CLASS: Final[dict[int, int]] = {entry.code: int(entry.retry) for entry in _SERVER}


def retry_class(code: int) -> RetryClass:
    """Return the class of a server's code; codes that nobody knows count as ``UNKNOWN_ERROR``."""
    return RetryClass(RETRY_CLASS.get(code, RETRY_CLASS[UNKNOWN_ERROR]))


def code_name(code: int | str) -> str:
    """Return the name of a code, ``CODE_<n>`` for a number that the protocol does not define."""
    if isinstance(code, str):
        return code
    entry = SERVER_CODES.get(code)
    return entry.name if entry is not None else f"CODE_{code}"


def describe(code: int | str) -> tuple[str, str]:
    """Return ``(text, hint)`` of a code, both empty for one that is not in the tables."""
    if isinstance(code, str):
        local = LOCAL_CODES.get(code)
        return (local.text, local.hint) if local is not None else ("", "")
    server = SERVER_CODES.get(code)
    return (server.text, server.hint) if server is not None else ("", "")
