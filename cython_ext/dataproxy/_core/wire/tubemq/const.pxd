"""Numbers of TubeMQ's RPC: the frame, the methods, and the fields of the messages that compiled code reads and writes.

The schema is dataproxy/wire/tubemq/messages.proto; all other messages are protobuf's alone.
"""


cdef enum:                      # frame: token, serial, number of slices; then each slice behind its length
    TOKEN = 0xFF7FF4FE
    AT_TOKEN = 0
    AT_SERIAL = AT_TOKEN + 4
    AT_SLICES = AT_SERIAL + 4
    FRAME_HEAD = AT_SLICES + 4
    SLICE_HEAD = 4


cdef enum:                      # limits
    SLICE_WRITTEN = 8192        # bytes of a slice; only the last one of a frame is shorter
    SLICE_READ = 65536          # most bytes of a slice that is read
    SLICES_READ = 3584          # most slices that are read: what a Java client takes, (20 MiB + 8 MiB) / 8192
    PAYLOAD_MOST = SLICES_READ * SLICE_WRITTEN


cdef enum:
    PROTOCOL_VERSION = 3        # of a Java client of InLong's time
    SERVICE_WRITE = 3
    METHOD_SEND = 13
    METHOD_GET = 17
    METHOD_COMMIT = 18


cdef enum:                      # families of frames (FrameSpec.family)
    FAMILY_TUBEMQ = 0x4013      # one message into one partition


cdef enum:                      # codes of brokers, as a producer sees them
    BROKER_CODES = 1000         # added to all of them: without it they would look like statuses of HTTP
    BROKER_CODE_MOST = 599
    CODE_OK = 200
    CODE_EXCEPTION = 501        # the broker's program failed: what a client of C++ calls such an answer
    CODE_UNSPECIFIED = 599


cdef enum RpcStatus:
    RPC_SUCCESS = 0
    RPC_ERROR = 1           # an exception of the method
    RPC_FATAL = 2           # the server could not read the request


cdef enum:                      # RpcConnHeader
    CONN_FLAG = 1


cdef enum:                      # RequestHeader
    REQUEST_SERVICE = 1
    REQUEST_VERSION = 2


cdef enum:                      # RequestBody
    CALL_METHOD = 1
    CALL_TIMEOUT = 2
    CALL_REQUEST = 3


cdef enum:                      # ResponseHeader
    RESPONSE_STATUS = 1
    RESPONSE_VERSION = 3


cdef enum:                      # RspResponseBody, RspExceptionBody
    ANSWER_METHOD = 1
    ANSWER_DATA = 2
    EXCEPTION_NAME = 1
    EXCEPTION_TRACE = 2


cdef enum:                      # SendMessageRequestP2B
    SEND_CLIENT = 1
    SEND_TOPIC = 2
    SEND_PARTITION = 3
    SEND_DATA = 4
    SEND_FLAG = 5
    SEND_CHECKSUM = 6
    SEND_ADDRESS = 7
    SEND_TYPE = 8
    SEND_TIME = 9
    SEND_AUTH = 10


cdef enum:                      # what SendMessageResponseB2P, GetMessageResponseB2C, CommitOffsetResponseB2C begin with
    ANSWER_SUCCESS = 1
    ANSWER_CODE = 2
    ANSWER_MESSAGE = 3


cdef enum:                      # SendMessageResponseB2P
    SENT_AUTH = 4
    SENT_ID = 5
    SENT_TIME = 6
    SENT_OFFSET = 7


cdef enum:                      # GetMessageRequestC2B
    GET_CLIENT = 1
    GET_PARTITION = 2
    GET_GROUP = 3
    GET_TOPIC = 4
    GET_CONSUMED = 5
    GET_MANUAL = 6
    GET_ESCAPE = 7


cdef enum:                      # GetMessageResponseB2C
    GOT_MESSAGES = 4
    GOT_OFFSET = 5
    GOT_WAIT = 6
    GOT_ESCAPE = 7
    GOT_BACKLOG = 8
    GOT_SLOW = 9
    GOT_MAX_OFFSET = 10


cdef enum:                      # TransferedMessage
    MESSAGE_ID = 1
    MESSAGE_CHECKSUM = 2
    MESSAGE_PAYLOAD = 3
    MESSAGE_FLAG = 4


cdef enum:                      # CommitOffsetRequestC2B
    COMMIT_CLIENT = 1
    COMMIT_TOPIC = 2
    COMMIT_PARTITION = 3
    COMMIT_GROUP = 4
    COMMIT_CONSUMED = 5


cdef enum:                      # CommitOffsetResponseB2C
    COMMITTED_OFFSET = 4
    COMMITTED_MAX_OFFSET = 5


cdef enum:                      # AuthorizedInfo
    AUTH_VISIT = 1
    AUTH_TOKEN = 2


cdef enum:                      # payload of a message
    FLAG_ATTRIBUTE = 1          # int32 length and the attribute text stand before the body
    ATTRIBUTE_HEAD = 4
    CHECKSUM_NONE = -1          # in a request: the broker computes it
    UNKNOWN = -1                # an offset or a backlog that an answer does not give


cdef enum:                      # records as a broker stores them
    INDEX_SIZE = 28             # an index entry: the unit of all offsets
    RECORD_HEAD = 52
    RECORD_TOKEN = 0x02C998B8
