"""Numbers of RocketMQ's remoting: the frame, the codes that compiled code knows, flags, and layouts of messages."""


cdef enum:                      # frame: length of what follows; type and length of the header; header; body
    AT_LENGTH = 0
    AT_MARK = AT_LENGTH + 4     # type << 24 | length of the header
    FRAME_HEAD = AT_MARK + 4


cdef enum:                      # limits
    LENGTH_MOST = 16777216      # what a frame's length may say, as Java's receivers have it
    DEPTH_MOST = 32             # arrays and objects inside of one another, in a header of JSON
    TOPIC_MOST = 127            # bytes; a signed byte holds it
    PROPERTIES_MOST = 32767     # bytes; a signed short holds it


cdef enum HeaderForm:
    FORM_JSON = 0
    FORM_BINARY = 1             # called ROCKETMQ


cdef enum:                      # header of FORM_BINARY
    BINARY_AT_CODE = 0
    BINARY_AT_LANGUAGE = BINARY_AT_CODE + 2
    BINARY_AT_VERSION = BINARY_AT_LANGUAGE + 1
    BINARY_AT_OPAQUE = BINARY_AT_VERSION + 2
    BINARY_AT_FLAG = BINARY_AT_OPAQUE + 4
    BINARY_AT_REMARK = BINARY_AT_FLAG + 4       # behind its length
    BINARY_LEAST = BINARY_AT_REMARK + 4 + 4     # with no remark and no fields


cdef enum:                      # Command.flag
    FLAG_RESPONSE = 1
    FLAG_ONE_WAY = 2


cdef enum:                      # languages: their names are in `header`
    LANGUAGE_UNKNOWN = -1
    LANGUAGES = 13


cdef enum:                      # requests
    CODE_SEND = 10
    CODE_PULL = 11
    CODE_SEND_V2 = 310
    CODE_SEND_BATCH = 320


cdef enum:                      # what the hub says of itself
    LANGUAGE_ANSWERED = 7       # OTHER
    VERSION_ANSWERED = 409      # of 4.9.8: clients take it for the broker's


cdef enum:                      # answers
    ANSWER_SUCCESS = 0
    ANSWER_SYSTEM_ERROR = 1
    ANSWER_SYSTEM_BUSY = 2
    ANSWER_MESSAGE_ILLEGAL = 13
    ANSWER_SERVICE_NOT_AVAILABLE = 14
    ANSWER_NO_PERMISSION = 16
    ANSWER_TOPIC_NOT_EXIST = 17
    ANSWER_PULL_RETRY = 20
    ANSWER_SUBSCRIPTION_PARSE_FAILED = 23
    ANSWER_SUBSCRIPTION_NOT_EXIST = 24
    ANSWER_SUBSCRIPTION_NOT_LATEST = 25
    ANSWER_FLUSH_DISK_TIMEOUT = 10      # 10 to 12: stored, with less than what was asked for
    ANSWER_FLUSH_SLAVE_TIMEOUT = 12
    ANSWER_PULL_NOT_FOUND = 19          # 19 to 21: no messages, but offsets
    ANSWER_PULL_OFFSET_MOVED = 21


cdef enum:                      # sysFlag of messages
    SYS_COMPRESSED = 1
    SYS_TAGS = 2
    SYS_TRANSACTION = 12        # mask: 0 none, 4 prepared, 8 commit, 12 roll back
    SYS_BORN_V6 = 16
    SYS_STORE_V6 = 32
    SYS_COMPRESSION_SHIFT = 8   # three bits


cdef enum Compression:
    COMPRESSION_NONE = 0
    COMPRESSION_ZLIB = 1        # 0 and 3 in the flag
    COMPRESSION_LZ4 = 2         # 1
    COMPRESSION_ZSTD = 3        # 2
    COMPRESSION_UNKNOWN = 4


cdef enum:                      # a stored message
    MESSAGE_MAGIC = 0xDAA320A7
    MESSAGE_FIXED = 91          # without body, topic and properties, with two IPv4 addresses
    V6_MORE = 12                # bytes that an IPv6 address has more
    ITEM_FIXED = 22             # an item of a batch without body and properties


cdef enum:
    NAME_VALUE = 1              # between a property's name and its value
    PAIR = 2                    # between properties
