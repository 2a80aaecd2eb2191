"""Numbers that the compiled core and Python share.

Written by `python tools/numbers.py` from the enums of the core. Do not edit.
"""

from typing import Final

__all__ = [
    "BROKER_CODES",
    "CE_CONNECTED",
    "CE_CONNECT_FAILED",
    "CE_DEAF",
    "CE_DRAINED",
    "CE_FRAMING",
    "CE_HANDSHAKE",
    "CE_LOST",
    "CE_MISDIRECTED",
    "CE_OUT",
    "CE_PROTOCOL",
    "CE_REFUSED",
    "CE_RETURNED",
    "CE_SILENT",
    "CE_STATE",
    "CE_SWAPPED",
    "CE_UNEXPECTED",
    "CE_UNKNOWN_FRAME",
    "CE_UNKNOWN_GROUP",
    "FAMILY_BINARY_LINES",
    "FAMILY_REPORT",
    "FAMILY_TUBEMQ",
    "FAMILY_V1",
    "FP_HTTP",
    "FP_TLS",
    "FP_UNKNOWN",
    "LC_ACK_TIMEOUT",
    "LC_CLOSED",
    "LC_CONNECTION_LOST",
    "LC_DISPLACED",
    "LC_DROPPED",
    "LC_ENCODE",
    "LC_NO_MEMORY",
    "LC_NO_SINK_ACK",
    "LC_TIMEOUT",
    "NO_TIME",
    "OR_FAILURES",
    "OR_NONE",
    "OR_REFUSALS",
    "OR_SILENT",
    "OR_SLOW",
    "OUT_DELIVERED",
    "OUT_DROPPED",
    "OUT_EXPIRED",
    "OUT_FAILED",
    "OUT_MIXED",
    "OUT_PENDING",
    "OUT_SENT",
    "OWN_ID_MAX",
    "RC_BACK",
    "RC_DRAINED",
    "RC_FEW",
    "RC_FRAMING",
    "RC_LATE",
    "RC_NEVER",
    "RC_NODE",
    "RC_OK",
    "RC_SPLIT",
    "SR_LOAD",
    "SR_LOST",
    "SR_OUT",
    "TLS_ALERT",
    "TLS_CLIENT_NEEDED",
    "TLS_CLIENT_REFUSED",
    "TLS_CLOSED",
    "TLS_EARLY",
    "TLS_EXPIRED",
    "TLS_FAILED",
    "TLS_FIRST",
    "TLS_PLAIN",
    "TLS_UNANSWERED",
    "TLS_UNFINISHED",
    "TLS_UNKNOWN_CA",
    "TLS_UNTRUSTED",
    "TLS_VERSION",
    "TLS_WRONG_HOST",
    "TYPE_BINARY",
    "TYPE_COMMON",
    "TYPE_LINES",
]

# What became of a message.  (pack/pack.pxd)
OUT_PENDING: Final = 0
OUT_DELIVERED: Final = 1
OUT_FAILED: Final = 2
OUT_EXPIRED: Final = 3
OUT_DROPPED: Final = 4
OUT_SENT: Final = 5
OUT_MIXED: Final = 6

# Codes of results that no server gave.  (conn/connection.pxd)
LC_TIMEOUT: Final = -1
LC_ACK_TIMEOUT: Final = -2
LC_CONNECTION_LOST: Final = -3
LC_CLOSED: Final = -4
LC_ENCODE: Final = -5
LC_NO_MEMORY: Final = -6
LC_DROPPED: Final = -7
LC_DISPLACED: Final = -8
LC_NO_SINK_ACK: Final = -9

# What follows a server's code.  (conn/connection.pxd)
RC_OK: Final = 0
RC_NODE: Final = 1
RC_BACK: Final = 2
RC_LATE: Final = 3
RC_NEVER: Final = 4
RC_DRAINED: Final = 5
RC_FEW: Final = 6
RC_FRAMING: Final = 7
RC_SPLIT: Final = 8

# Events of a connection.  (conn/connection.pxd)
CE_CONNECTED: Final = 1
CE_CONNECT_FAILED: Final = 2
CE_LOST: Final = 3
CE_SILENT: Final = 4
CE_PROTOCOL: Final = 5
CE_UNKNOWN_FRAME: Final = 6
CE_DRAINED: Final = 7
CE_REFUSED: Final = 8
CE_DEAF: Final = 9
CE_FRAMING: Final = 10
CE_MISDIRECTED: Final = 11
CE_UNEXPECTED: Final = 12
CE_STATE: Final = 13
CE_UNKNOWN_GROUP: Final = 14
CE_OUT: Final = 15
CE_RETURNED: Final = 16
CE_SWAPPED: Final = 17
CE_HANDSHAKE: Final = 18

# Details of CE_OUT and CE_RETURNED: why a proxy takes no frames.  (conn/connection.pxd)
OR_NONE: Final = 0
OR_FAILURES: Final = 1
OR_REFUSALS: Final = 2
OR_SLOW: Final = 3
OR_SILENT: Final = 4

# Details of CE_SWAPPED: why a standby came into use.  (conn/connection.pxd)
SR_LOST: Final = 1
SR_OUT: Final = 2
SR_LOAD: Final = 3

# Details of CE_PROTOCOL: what the bytes look like.  (conn/replies.pxd)
FP_UNKNOWN: Final = 0
FP_HTTP: Final = 1
FP_TLS: Final = 2

# Details of CE_CONNECT_FAILED and CE_LOST above all errno; each is 4096 wide.  (net/tls.pxd)
TLS_FIRST: Final = 1048576
TLS_EXPIRED: Final = 1052672
TLS_EARLY: Final = 1056768
TLS_WRONG_HOST: Final = 1060864
TLS_UNKNOWN_CA: Final = 1064960
TLS_UNTRUSTED: Final = 1069056
TLS_VERSION: Final = 1073152
TLS_CLIENT_NEEDED: Final = 1077248
TLS_CLIENT_REFUSED: Final = 1081344
TLS_PLAIN: Final = 1085440
TLS_CLOSED: Final = 1089536
TLS_UNANSWERED: Final = 1093632
TLS_ALERT: Final = 1097728
TLS_FAILED: Final = 1101824
TLS_UNFINISHED: Final = 1105920

# The data time of a message without one of its own.  (producer/accumulate/state.pxd)
NO_TIME: Final = -1

# Longest id that a caller may give a message, in bytes.  (producer/ingest/ids.pxd)
OWN_ID_MAX: Final = 128

# Message types that differ in what they carry.  (wire/inlong/const.pxd)
TYPE_COMMON: Final = 2
TYPE_LINES: Final = 3
TYPE_BINARY: Final = 7

# Frames of the V1 protocol.  (wire/inlongv1/const.pxd)
FAMILY_V1: Final = 0

# Type 7 whose items are joined by line feeds.  (wire/inlong/const.pxd)
FAMILY_BINARY_LINES: Final = 8199

# Lines in an HTTP report.  (wire/inlong/const.pxd)
FAMILY_REPORT: Final = 16387

# Messages for a partition of a topic.  (wire/tubemq/const.pxd)
FAMILY_TUBEMQ: Final = 16403

# What is added to codes of TubeMQ's brokers.  (wire/tubemq/const.pxd)
BROKER_CODES: Final = 1000
