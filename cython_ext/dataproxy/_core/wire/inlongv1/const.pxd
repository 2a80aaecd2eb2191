"""Numbers of the V1 protocol: its frame, its messages, its result codes.  The schema is tests/data/v1.proto."""


cdef enum:
    FAMILY_V1 = 0               # FrameSpec.family: the type byte of its frames


cdef enum:                      # request: u32 length, 00, version, a MessagePack
    V1_TYPE = 4
    V1_VERSION = 5
    V1_PACK = 6
    VERSION = 1


cdef enum:                      # MessagePack
    PACK_HEADER = 1
    PACK_BYTES = 2


cdef enum:                      # MessagePackHeader
    HEAD_GROUP = 1
    HEAD_STREAM = 2
    HEAD_ID = 3
    HEAD_TIME = 4
    HEAD_COUNT = 5
    HEAD_PLAIN_SIZE = 6         # srcLength
    HEAD_SIZE = 7               # compressLen
    HEAD_COMPRESSION = 8
    HEAD_PARAM = 9


cdef enum:                      # MapFieldEntry
    ENTRY_KEY = 1
    ENTRY_VALUE = 2


cdef enum:                      # MessageObjs, and MessageObj
    OBJS_MSG = 1
    OBJ_TIME = 1
    OBJ_SOURCE = 2
    OBJ_BODY = 3
    OBJ_PARAM = 4


cdef enum:                      # compressType
    PLAIN = 0
    GZIP = 1
    SNAPPY = 2


cdef enum:                      # ResponseInfo
    INFO_RESULT = 1
    INFO_ID = 2
    INFO_FIRST = 8              # its first byte: the tag of INFO_RESULT; a V0 frame begins with 00
    INFO_LONGEST = 22           # two tags and two varints


cdef enum:                      # result codes
    R_SUCCESS = 0
    R_FAIL = -1
    R_VERSION = -101
    R_LENGTH = -102
    R_REJECT = -103
    R_PACKAGE = -104
    R_ID = -105


cdef enum:                      # limits
    SOURCE_MOST = 15            # bytes of an IPv4 address
    ITEM_ROOM = 11 + SOURCE_MOST    # that a MessageObj takes beyond two lengths and the body
    TIME_BITS = 42              # of a time in ms: its varint has at most six bytes
