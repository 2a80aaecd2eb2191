"""Names of attributes that a caller may not give: servers, readers or SDKs act on them.

A server that finds ``syncSend=true`` in a frame puts it into another queue and does not answer, so the frame would be
sent again and again.  Names that only travel (``f``, ``__addcol1__...``) are the caller's.
"""

from __future__ import annotations

from typing import Final

from dataproxy.escapes import ESCAPED_KEYS

__all__ = ["RESERVED_ATTRS", "instead_of"]

_MEANING: Final = "a server, a reader or an SDK gives it a meaning of its own; choose another name"
_ORDER: Final = "the order of messages is the option ordering='key' with key= of a call"
_ANSWER: Final = "which answer counts as delivered is the option ack"
_TIME: Final = "give the data time as dt= of a call"
_ID: Final = "give an id as message_id= of a call"
_ESCAPES: Final = (
    "readers use it as the list of values to unescape; attribute_escape='percent' escapes values by itself"
)
_SIGNED: Final = "the producer signs and encrypts no frames; choose another name"

#: Each reserved name, and what brings its effect (for names without an option: why it is reserved).
_WISHES: Final = {
    "groupId": "name the group with group_id=",
    "streamId": "name the stream in the call, as stream_id",
    "dt": _TIME,
    "t": _TIME,
    "dtMs": "exact_time=True sends the exact data time",
    "msgid": _ID,
    "msgUUID": _ID,
    "cp": "compression is the option compression",
    "mt": "the layout of a frame is the option message_type",
    "syncSend": _ORDER,
    "partitionKey": _ORDER,
    "isAck": _ANSWER,
    "proxySend": _ANSWER,
    ESCAPED_KEYS: _ESCAPES,
    **dict.fromkeys(("_signature", "_timeStamp", "_nonce", "_userName", "_clientIP"), _SIGNED),
    **dict.fromkeys(("_secretId", "_encyVersion", "_encyAesKey"), _SIGNED),
    **dict.fromkeys(("sid", "mid", "messageId", "wid", "uniq", "cnt"), "the producer numbers and counts by itself"),
    **dict.fromkeys(("bid", "tid"), "some servers read it as the group or stream; choose another name"),
    **dict.fromkeys(("node1ip", "rtime1", "node2ip", "rtime2"), "servers note a frame's way in it"),
    **dict.fromkeys(("rt", "rtms", "NodeIP", "clientIp", "dpIp", "dpIP", "errCode", "errMsg", "dup"), _MEANING),
    **dict.fromkeys(("m", "topic", "auditVersion", "sdkVersion", "_file_status_check"), _MEANING),
}

#: Attributes that the protocol, the servers, the readers or the SDKs set or read themselves.
RESERVED_ATTRS: Final = frozenset(_WISHES)


def instead_of(key: str) -> str:
    """Return what a caller does who wants the effect of a reserved attribute.  Any thread."""
    return _WISHES[key]
