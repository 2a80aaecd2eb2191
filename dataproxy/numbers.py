"""Numbers that the compiled core and Python share.

Written by `python tools/numbers.py` from the enums of the core. Do not edit.
"""

from typing import Final

__all__ = [
    "CE_CONNECTED",
    "CE_CONNECT_FAILED",
    "CE_DEAF",
    "CE_DRAINED",
    "CE_FRAMING",
    "CE_LOST",
    "CE_MISDIRECTED",
    "CE_PROTOCOL",
    "CE_REFUSED",
    "CE_SILENT",
    "CE_STATE",
    "CE_UNEXPECTED",
    "CE_UNKNOWN_FRAME",
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

# Details of CE_PROTOCOL: what the bytes look like.  (conn/replies.pxd)
FP_UNKNOWN: Final = 0
FP_HTTP: Final = 1
FP_TLS: Final = 2

# The data time of a message without one of its own.  (producer/accumulate/state.pxd)
NO_TIME: Final = -1

# Longest id that a caller may give a message, in bytes.  (producer/ingest/ids.pxd)
OWN_ID_MAX: Final = 128

# Message types that differ from others in what they carry.  (wire/inlong/const.pxd)
TYPE_LINES: Final = 3
TYPE_BINARY: Final = 7
