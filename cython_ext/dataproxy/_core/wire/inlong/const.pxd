"""Numbers of the InLong DataProxy protocol; an offset is derived from the field before it."""


cdef enum:  # message types, the low five bits of the type byte
    TYPE_HEARTBEAT = 1
    TYPE_COMMON = 2
    TYPE_LINES = 3              # records joined by LF
    TYPE_RETURN = 4             # the acknowledgement carries the body back
    TYPE_ITEMS = 5              # length-prefixed records
    TYPE_PAIRS = 6              # records with attribute texts
    TYPE_BINARY = 7
    TYPE_BINARY_HEARTBEAT = 8


cdef enum:  # the other bits of the type byte
    TYPE_MASK = 0x1F
    TYPE_FLAGS = 0xE0           # all bits above the type
    TYPE_SNAPPY = 0x20          # the body of a binary frame is one snappy block
    TYPE_ENCRYPTED = 0x40


cdef enum:  # sizes
    LENGTH_SIZE = 4             # the leading length field, which does not count itself
    MAGIC_SIZE = 2


cdef enum:
    MAGIC = 0xEE01


cdef enum:  # text frames, types 2 to 6
    TEXT_TYPE = LENGTH_SIZE
    TEXT_BODY_LEN = TEXT_TYPE + 1
    TEXT_BODY = TEXT_BODY_LEN + 4
    TEXT_FIXED = TEXT_BODY + 4  # and the attribute length


cdef enum:  # binary frame, type 7, request
    BIN_TYPE = LENGTH_SIZE
    BIN_GROUP_NUM = BIN_TYPE + 1
    BIN_STREAM_NUM = BIN_GROUP_NUM + 2
    BIN_EXT = BIN_STREAM_NUM + 2
    BIN_DATA_TIME = BIN_EXT + 2
    BIN_COUNT = BIN_DATA_TIME + 4
    BIN_UNIQ = BIN_COUNT + 2
    BIN_BODY_LEN = BIN_UNIQ + 4
    BIN_BODY = BIN_BODY_LEN + 4
    BIN_FIXED = BIN_BODY + 2 + MAGIC_SIZE   # and the attribute length


cdef enum:  # binary frame, type 7, reply
    ACK_UNIQ = BIN_TYPE + 1
    ACK_ATTR_LEN = ACK_UNIQ + 4
    ACK_ATTR = ACK_ATTR_LEN + 2
    ACK_FIXED = ACK_ATTR + MAGIC_SIZE


cdef enum:  # binary heartbeat, type 8, both ways
    HB_TIME = BIN_TYPE + 1
    HB_VERSION = HB_TIME + 4
    HB_BODY_LEN = HB_VERSION + 1
    HB_BODY = HB_BODY_LEN + 4
    HB_FIXED = HB_BODY + 2 + MAGIC_SIZE


cdef enum:  # bits of extField
    EXT_PAIRS = 0x01            # every item is followed by its own attribute text
    EXT_TRACE = 0x02
    EXT_NAMES = 0x04            # group and stream are named in the attributes
    EXT_FILE_CHECK = 0x08
    EXT_MINUTE_CHECK = 0x10
    EXT_LINES = 0x20            # one item, its records joined by LF


cdef enum:  # families of frames (FrameSpec.family) beside the message types
    FAMILY_BINARY_LINES = 0x2007    # type 7 with EXT_LINES: the bit stands above the type
    FAMILY_REPORT = 0x4003          # lines in an HTTP report


cdef enum:  # limits
    MAX_CLIENT_ATTRS = 32000    # what a client may send, the same for every type
    MAX_BINARY_ATTRS = 32767    # completed text of a binary frame
    MAX_TEXT_ATTRS = 65535      # completed text of a text frame
    MAX_COUNT = 65535
    MAX_BODY = 20971520         # of a frame, and of what its body holds when unpacked
    MAX_LOAD = 65534
    LOAD_UNKNOWN = 65535


cdef enum:  # error codes
    ERR_NOT_READY = 1
    ERR_STOPPED = 2
    ERR_NO_MAPPING = 3
    ERR_MAGIC = 94
    ERR_LENGTHS = 95
    ERR_UNPACK = 96
    ERR_NO_GROUP = 100
    ERR_SIZE = 104
    ERR_BODY_EMPTY = 105
    ERR_BODY_NEGATIVE = 106
    ERR_ATTRS_NEGATIVE = 107
    ERR_ATTRS = 109
    ERR_EXT = 112
    ERR_QUEUE_FULL = 114
    ERR_NO_TOPIC = 115
    ERR_UNKNOWN_NUMBER = 121
    ERR_NAMES_DIFFER = 122
    ERR_ITEMS = 123
    ERR_ORDER_WITHOUT_ACK = 150
    ERR_PROXY_WITHOUT_ACK = 151
    ERR_UNKNOWN = 2147483647
