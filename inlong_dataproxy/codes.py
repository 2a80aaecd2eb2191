"""What the calls of ``InLongApi`` return: the numbers of InLong's own SDK."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["SdkCode"]


class SdkCode(IntEnum):
    """Name the codes that the calls return; InLong's own SDK has more, for cases that do not arise here."""

    SUCCESS = 0  #: accepted; after close_api: everything was delivered
    MULTI_INIT = 4  #: init_api was called before, with success
    ERROR_INIT = 5  #: the configuration cannot be read or used
    MSG_TOO_LONG = 6  #: the body is longer than ext_pack_size less 10 bytes, or than a frame may be
    INVALID_INPUT = 7  #: an empty body, or no group or stream, or one whose name is not allowed
    RECV_BUFFER_FULL = 8  #: recv_buf_size is used up; the message was not accepted
    SEND_AFTER_CLOSE = 10  #: init_api has failed
    FAIL_GET_RECV_GROUP = 18  #: more groups than max_group_id_num and max_stream_id_num allow
    FAIL_SEND_PROXY = 20  #: close_api: some messages were not delivered, and no callback had said so before
    SEND_BEFORE_INIT = 22  #: before init_api, or after close_api
