"""Numbers that the compiled core and Python share.

Written by `python tools/numbers.py` from the enums of the core. Do not edit.
"""

from typing import Final

__all__ = [
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
    "LC_TIMEOUT",
    "LE_CONNECTED",
    "LE_CONNECT_FAILED",
    "LE_DEAF",
    "LE_DRAINED",
    "LE_FRAMING",
    "LE_LOST",
    "LE_MISDIRECTED",
    "LE_PROTOCOL",
    "LE_REFUSED",
    "LE_SILENT",
    "LE_UNEXPECTED",
    "LE_UNKNOWN_FRAME",
    "NO_TIME",
    "OUT_DELIVERED",
    "OUT_DROPPED",
    "OUT_EXPIRED",
    "OUT_FAILED",
    "OUT_MIXED",
    "OUT_PENDING",
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
    "TYPE_BINARY",
    "TYPE_LINES",
]

# What became of a message.  (pack/pack.pxd)
OUT_PENDING: Final = 0
OUT_DELIVERED: Final = 1
OUT_FAILED: Final = 2
OUT_EXPIRED: Final = 3
OUT_DROPPED: Final = 4
OUT_MIXED: Final = 5

# Codes of results that no server gave.  (conn/connection.pxd)
LC_TIMEOUT: Final = -1
LC_ACK_TIMEOUT: Final = -2
LC_CONNECTION_LOST: Final = -3
LC_CLOSED: Final = -4
LC_ENCODE: Final = -5
LC_NO_MEMORY: Final = -6
LC_DROPPED: Final = -7
LC_DISPLACED: Final = -8

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
LE_CONNECTED: Final = 1
LE_CONNECT_FAILED: Final = 2
LE_LOST: Final = 3
LE_SILENT: Final = 4
LE_PROTOCOL: Final = 5
LE_UNKNOWN_FRAME: Final = 6
LE_DRAINED: Final = 7
LE_REFUSED: Final = 8
LE_DEAF: Final = 9
LE_FRAMING: Final = 10
LE_MISDIRECTED: Final = 11
LE_UNEXPECTED: Final = 12

# Details of LE_PROTOCOL: what the bytes look like.  (conn/replies.pxd)
FP_UNKNOWN: Final = 0
FP_HTTP: Final = 1
FP_TLS: Final = 2

# The data time of a message without one of its own.  (producer/accumulate/batcher.pxd)
NO_TIME: Final = -1

# Longest id that a caller may give a message, in bytes.  (producer/ingest/ids.pxd)
OWN_ID_MAX: Final = 128

# Message types that differ from others in what they carry.  (wire/inlong/const.pxd)
TYPE_LINES: Final = 3
TYPE_BINARY: Final = 7
