"""Result codes: what a DataProxy answers, what the client itself reports, and whether a retry can help."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

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


class LocalCode(NamedTuple):
    """Describe one code that the client reports by itself."""

    code: str
    error: str
    text: str
    retriable: bool
    hint: str

    @property
    def kind(self) -> str:
        """Return the class of the code in words."""
        return "retry later" if self.retriable else "permanent"


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

_LOCAL: Final[tuple[LocalCode, ...]] = (
    LocalCode("ERROR", "DataProxyError", "an error without a code of its own", False, "read its text and details"),
    LocalCode(
        "CONFIG",
        "ConfigError",
        "an option, an argument or a target is not allowed",
        False,
        "correct it; the error's text names the allowed range and the source of the value",
    ),
    LocalCode(
        "UNKNOWN_OPTION", "ConfigError", "there is no option of this name", False, "CONFIGURATION.md lists every option"
    ),
    LocalCode(
        "BAD_TIMEOUT",
        "ConfigError",
        "a timeout is negative, nan, or neither a number nor a timedelta",
        False,
        "give seconds from 0 on, or None for the default",
    ),
    LocalCode(
        "BAD_CALLBACK",
        "ConfigError",
        "a callback cannot be called, or nobody would await it",
        False,
        "pass a plain function; the error's text says of what",
    ),
    LocalCode(
        "BAD_CALLBACK_TARGET",
        "ConfigError",
        "`callback_on` is neither an open event loop nor an executor",
        False,
        "pass asyncio.get_running_loop(), an Executor, or nothing",
    ),
    LocalCode(
        "GREEN_THREADS",
        "ConfigError",
        "gevent or eventlet has replaced the threads that a producer needs",
        False,
        "do not patch threads: monkey.patch_all(thread=False)",
    ),
    LocalCode(
        "INVALID_MESSAGE",
        "InvalidMessageError",
        "a message cannot be sent as it is",
        False,
        "the error's text says which part of it",
    ),
    LocalCode(
        "EMPTY_BODY",
        "InvalidMessageError",
        "a body has no bytes",
        False,
        "leave empty records out; the protocol has no empty message",
    ),
    LocalCode(
        "BODY_TOO_LARGE",
        "InvalidMessageError",
        "a body does not fit into one frame",
        False,
        "split it, or raise max_frame_bytes here and on the proxies",
    ),
    LocalCode(
        "BAD_BODY",
        "InvalidMessageError",
        "a body is not bytes, or contains characters that its message type cannot carry",
        False,
        "encode text: body.encode()",
    ),
    LocalCode(
        "BAD_NAME",
        "InvalidMessageError",
        "a group or stream id is missing or breaks the rules",
        False,
        "choose another id",
    ),
    LocalCode("BAD_ATTRIBUTE", "InvalidMessageError", "an attribute breaks the rules", False, "put it into the body"),
    LocalCode(
        "BAD_ID",
        "InvalidMessageError",
        "a message id breaks the rules",
        False,
        "1 to 128 characters of printable ASCII without blank, &, = and |",
    ),
    LocalCode(
        "BAD_KEY",
        "InvalidMessageError",
        "a key for ordering is not bytes or text, is empty or too long",
        False,
        "give short bytes or text, with ordering='key'",
    ),
    LocalCode(
        "BAD_TIME",
        "InvalidMessageError",
        "a data time is out of range, looks like another unit than milliseconds, or has no time zone",
        False,
        "give milliseconds since 1970 or an aware datetime",
    ),
    LocalCode(
        "BAD_COLUMN",
        "InvalidMessageError",
        "a column cannot be sent as bodies",
        False,
        "cast it to binary, or name another one",
    ),
    LocalCode(
        "LOCAL_PROTOCOL",
        "LocalProtocolError",
        "a call does not fit the state of its object",
        False,
        "the error's text says what to do first",
    ),
    LocalCode(
        "IN_CALLBACK",
        "LocalProtocolError",
        "a call that waits was made inside a callback of the same producer",
        False,
        "let another thread wait, or use add_done_callback",
    ),
    LocalCode(
        "REMOTE_PROTOCOL",
        "RemoteProtocolError",
        "a server broke the protocol",
        True,
        "check that the address is a DataProxy's: `dataproxy doctor TARGET` says what answers there",
    ),
    LocalCode(
        "TRANSPORT",
        "TransportError",
        "the network or the operating system failed",
        True,
        "see the error's text; a common cause is a low limit of open files, which `dataproxy doctor` checks",
    ),
    LocalCode(
        "CONNECT_FAILED",
        "TransportError",
        "no connection could be made",
        True,
        "check address and firewall: `dataproxy doctor TARGET` looks at each step",
    ),
    LocalCode(
        "CONNECTION_LOST",
        "TransportError",
        "a connection ended before the proxy had answered",
        True,
        "the frame is sent again; see the proxy's log, and `dataproxy doctor TARGET`",
    ),
    LocalCode(
        "ACK_TIMEOUT",
        "TransportError",
        "no answer came within `ack_timeout`",
        True,
        "the frame is sent again; look at the proxy's load: `dataproxy doctor TARGET`",
    ),
    LocalCode(
        "DISCOVERY",
        "DiscoveryError",
        "the client could not get the list of proxies",
        True,
        "check the target: `dataproxy doctor TARGET`",
    ),
    LocalCode(
        "UNRESOLVED_HOST",
        "DiscoveryError",
        "a host name has no address",
        True,
        "check the name and the DNS: `dataproxy doctor TARGET`",
    ),
    LocalCode(
        "TLS_EXPIRED",
        "TransportError",
        "the certificate of the other side has expired, or is not valid yet",
        True,
        "renew it there; check the clock of this machine",
    ),
    LocalCode(
        "TLS_WRONG_HOST",
        "TransportError",
        "the certificate of the other side is for another host",
        True,
        "name the host as its certificate does, or give tls_server_name",
    ),
    LocalCode(
        "TLS_UNKNOWN_CA",
        "TransportError",
        "no known authority has signed the certificate of the other side",
        True,
        "give the authority's certificate as tls_ca (for a Manager: manager_tls_ca)",
    ),
    LocalCode(
        "TLS_VERSION",
        "TransportError",
        "both sides have no version of TLS, or no cipher, in common",
        True,
        "TLS 1.2 is the oldest version here; see tls_min_version on both sides",
    ),
    LocalCode(
        "TLS_CLIENT_CERTIFICATE",
        "TransportError",
        "the other side wants a certificate of the client, or refuses the one it got",
        True,
        "give tls_certificate and tls_key, signed by an authority that the other side knows",
    ),
    LocalCode(
        "TLS_PLAIN",
        "TransportError",
        "the other side speaks no TLS",
        True,
        "write tcp:// (for a Manager: http://) in the target, or check the port",
    ),
    LocalCode(
        "TLS_EXPECTED",
        "TransportError",
        "the other side speaks TLS, and this side does not",
        True,
        "write tls:// in the target, or set tls=true",
    ),
    LocalCode("TLS", "TransportError", "a connection with TLS failed for another reason", True, "see its text"),
    LocalCode(
        "TLS_FILES", "ConfigError", "a certificate, key or file of authorities cannot be used", False, "see its text"
    ),
    LocalCode(
        "TLS_MISSING",
        "ConfigError",
        "this Python has no OpenSSL that connections to proxies could use",
        False,
        "use a Python whose module ssl loads libssl as a library",
    ),
    LocalCode("SECRET", "ConfigError", "a secret cannot be read from where it is said to be", False, "see its text"),
    LocalCode(
        "MANAGER_REFUSED",
        "DiscoveryError",
        "the Manager refused the request",
        False,
        "check the credentials and the group: `dataproxy doctor TARGET` says which Manager refused",
    ),
    LocalCode(
        "MANAGER_TIMEOUT",
        "DiscoveryError",
        "the Manager did not answer in time",
        True,
        "check the URL (`dataproxy doctor TARGET`), or raise manager_timeout",
    ),
    LocalCode(
        "MANAGER_URL",
        "DiscoveryError",
        "the server at the target's URL is not a Manager",
        False,
        "give a Manager's base URL, or proxies as tcp://host:port: `dataproxy doctor TARGET` says what answers there",
    ),
    LocalCode(
        "GROUP_REFUSED",
        "DiscoveryError",
        "the Manager does not know the group, or refuses it",
        True,
        "check that the group exists and is approved: `dataproxy doctor TARGET --group ID` asks each Manager",
    ),
    LocalCode(
        "MANAGER_ANSWER",
        "DiscoveryError",
        "the Manager failed, or its answer is invalid",
        True,
        "see the Manager's log, check the URL: `dataproxy doctor TARGET` says what answers there",
    ),
    LocalCode(
        "MANAGER_LOGIN",
        "DiscoveryError",
        "a web page came instead of the Manager's answer",
        True,
        "a login page or a web proxy may stand in front of it: `dataproxy doctor TARGET` says what answers there",
    ),
    LocalCode(
        "MANAGER_SECRET",
        "DiscoveryError",
        "the credentials for the Manager cannot be had",
        True,
        "see what manager_auth returns or raises, or the place of the secret",
    ),
    LocalCode(
        "LIST_FILE",
        "DiscoveryError",
        "the file that lists the proxies cannot be used",
        True,
        "see the error's text; replace the file by a rename",
    ),
    LocalCode(
        "NO_PROXIES",
        "DiscoveryError",
        "the Manager knows no proxy for the group",
        True,
        "check the group: `dataproxy doctor TARGET --group ID`",
    ),
    LocalCode(
        "CLOSED",
        "ClosedError",
        "the object is closed; on a `DeliveryFailed`: the time limit of `close` ended before the message had a result",
        False,
        "make a new producer; raise close_timeout if messages were lost",
    ),
    LocalCode("SERIALIZER", "InvalidMessageError", "a serializer failed or returned no bytes", False, "see its text"),
    LocalCode("MISSING_PACKAGE", "ConfigError", "a package is not installed", False, "install it; the error names it"),
    LocalCode("FORKED", "ForkedError", "the object was made before a fork", False, "make a new object in each process"),
    LocalCode(
        "BUFFER_FULL",
        "BufferFullError",
        "there is no room in the buffer; the message was not accepted",
        True,
        "send slower, or raise buffer_bytes",
    ),
    LocalCode(
        "EXPIRED",
        "DeliveryExpired",
        "not delivered within `delivery_timeout`",
        True,
        "check that the servers are reachable (`dataproxy doctor TARGET`, for TubeMQ `dataproxy topics`);"
        ' details["cause"] has the last answer',
    ),
    LocalCode(
        "DROPPED",
        "DeliveryDropped",
        "the producer dropped an accepted message because the buffer was full, as the option `on_full` says",
        True,
        "send slower, raise buffer_bytes, or check that the proxies answer",
    ),
    LocalCode("DELIVERY", "DeliveryError", "an accepted message was not delivered", False, "see its text"),
    LocalCode(
        "NO_SINK_ACK",
        "DeliveryExpired",
        'with `ack="sink"`: the frame was written, and no ack came from behind the message queue',
        False,
        'use ack="source": DataProxies up to 2.5 store such frames and never answer them',
    ),
    LocalCode("ABORTED", "DeliveryFailed", "the producer gave up a message", True, "see its text"),
    LocalCode(
        "ENCODE", "DeliveryFailed", "no frame could be built within `max_frame_bytes`", False, "raise max_frame_bytes"
    ),
    LocalCode("NO_MEMORY", "DeliveryFailed", "there was no memory for a frame", True, "lower buffer_bytes"),
    LocalCode("PENDING", "DeliveryPending", "the result is not known yet", True, "wait longer, or ask again"),
    LocalCode(
        "FLUSH_TIMEOUT",
        "FlushTimeout",
        "messages had no result when the wait ended",
        True,
        "flush again; see stats() for the state of the proxies",
    ),
    LocalCode(
        "UNDELIVERED",
        "UndeliveredError",
        "some messages were not delivered when the producer was closed",
        False,
        "`.report` has the counts, `Producer.undelivered()` returns the messages",
    ),
    LocalCode(
        "NO_MASTER",
        "TransportError",
        "no master of TubeMQ took the consumer in time",
        True,
        "check the addresses of the masters, and that they run",
    ),
    LocalCode(
        "MEMBER_REFUSED",
        "GroupRefusedError",
        "a master of TubeMQ does not let the consumer into its group",
        False,
        "give all members of a group the same topics and filter items; the error's details have the master's code",
    ),
    LocalCode(
        "GROUP_IN_USE",
        "GroupRefusedError",
        "another query or consumer reads under the group",
        False,
        "give each query a group of its own, and end consumers of the group before",
    ),
    LocalCode(
        "NAMES_TAKEN",
        "GroupRefusedError",
        "too many readers have a partition of TubeMQ under names beside the group",
        True,
        "wait half a minute: brokers forget readers that were killed",
    ),
    LocalCode(
        "NO_BROKER",
        "TransportError",
        "a master of TubeMQ does not say where a broker is",
        True,
        "the broker may be starting: try again",
    ),
    LocalCode(
        "BROKER_REFUSED",
        "TransportError",
        "a broker of TubeMQ refuses to give a partition's messages",
        False,
        "the error's details have the broker's code; brokers that authorise groups have to allow their names",
    ),
    LocalCode(
        "OFFSETS_LOST",
        "OffsetsLostError",
        "a store of TubeMQ does not have the messages of a range any more",
        False,
        "let topics keep messages for longer, or read the rest with failOnDataLoss=false",
    ),
    LocalCode(
        "CONFIRM",
        "ConfirmError",
        "a confirm does not count",
        False,
        "the messages may come again: make what is done with them safe to repeat",
    ),
    LocalCode(
        "CONFIRM_LATE",
        "ConfirmError",
        "a pack was not confirmed within `confirm_timeout`, and comes again",
        False,
        "confirm sooner, or raise confirm_timeout",
    ),
    LocalCode(
        "CONFIRM_REVOKED",
        "ConfirmError",
        "a pack's partition was taken away before the pack was confirmed",
        False,
        "confirm in on_revoked, or raise release_wait",
    ),
    LocalCode(
        "CONFIRM_SOUGHT",
        "ConfirmError",
        "a pack's partition was read from another place, by `seek`, before the pack was confirmed",
        False,
        "confirm what is done before you seek",
    ),
    LocalCode(
        "CONFIRM_UNANSWERED",
        "ConfirmError",
        "the broker may have taken the confirm or not",
        False,
        "if it has not, the messages come again",
    ),
    LocalCode(
        "CONFIRM_REFUSED",
        "ConfirmError",
        "the broker refused the confirm: this consumer does not hold the partition any more",
        False,
        "the messages go to another member",
    ),
    LocalCode(
        "CONFIRMED_TWICE",
        "LocalProtocolError",
        "a pack was confirmed or rolled back twice",
        False,
        "confirm each pack once",
    ),
    LocalCode(
        "OFFSET",
        "ConfigError",
        "an offset is none of TubeMQ's",
        False,
        "give one that pack.offset or position() had, or a multiple of 28 from 0 on",
    ),
    LocalCode(
        "NO_PARTITION",
        "ConfigError",
        "a partition was chosen by `assign` that the topics do not have now",
        False,
        "give keys of available()",
    ),
    LocalCode(
        "SEEK",
        "SeekError",
        "a partition is not read from the place that was asked for, because another seek came in between",
        False,
        "seek a partition in one thread",
    ),
    LocalCode(
        "SEEK_BEYOND",
        "SeekError",
        "an offset is behind the end of the partition's store; reading goes on at the group's stored offset",
        False,
        "seek to `latest`, or to an offset up to the end, which is in the error's details",
    ),
    LocalCode(
        "SEEK_REVOKED",
        "SeekError",
        "a partition was taken away while it was sought",
        False,
        "seek again when it is assigned again",
    ),
    LocalCode("HUB", "HubError", "the embedded hub failed", False, "see its text"),
    LocalCode("ADDRESS", "HubError", "the hub's host name has no address", False, "give an address of this machine"),
    LocalCode("LISTEN", "HubError", "the hub cannot listen on its address", False, "choose another port"),
    LocalCode(
        "INSECURE",
        "ConfigError",
        "other machines could reach the hub, and it has no credentials",
        False,
        "set secret_id and secret_key, or set insecure=true",
    ),
    LocalCode(
        "TOKEN_FILE",
        "HubError",
        "the hub's token cannot be written to its file",
        False,
        "set token_file to a path in a folder of your own",
    ),
    LocalCode("FAULTS", "HubError", "the hub has too many faults", False, "remove faults that are no longer needed"),
    LocalCode("STORE", "StoreError", "the hub's store failed", False, "check the directory and the disk"),
    LocalCode(
        "STORE_DAMAGED",
        "StoreError",
        "the hub's store is damaged",
        False,
        "run `dataproxy store verify`; restore the directory from a copy",
    ),
    LocalCode(
        "STORE_TAKEN",
        "StoreError",
        "another hub uses the store, or another program changed its files",
        False,
        "give each hub its own directory, and do not change it while the hub runs",
    ),
    LocalCode(
        "STORE_READERS",
        "StoreError",
        "other processes use all reader slots of the store",
        True,
        "end some of the processes that read the store",
    ),
    LocalCode(
        "DATA_LOST",
        "StoreError",
        "retention dropped entries before a Spark read had read them",
        False,
        "raise the retention limits, or read the rest with failOnDataLoss=false",
    ),
    LocalCode("DISK_FULL", "StoreError", "the hub's disk is full", True, "free space; the hub then continues"),
)

#: Every code that the client reports by itself.
LOCAL_CODES: Final[dict[str, LocalCode]] = {entry.code: entry for entry in _LOCAL}


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
