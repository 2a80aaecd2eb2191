"""Options of the producer: the table, nothing else."""

from __future__ import annotations

from typing import Final

from dataproxy.config.option import Option, OptionTable
from dataproxy.config.rules import FRAME_OVERHEAD_BYTES, LARGEST_FRAME_BYTES, LEAST_FRAME_BYTES, PRODUCER_RULES
from dataproxy.config.secret import Secret
from dataproxy.config.tables.aliases import PRODUCER_ALIASES, PRODUCER_REFUSALS
from dataproxy.config.tables.kafka import KAFKA_WORDS
from dataproxy.config.tables.tls import tls_options

__all__ = ["PRODUCER"]

_KIB: Final = 1 << 10
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30
_DAY: Final = 86400.0

_STAND_IN: Final = (
    "a message needs a body: a DataProxy drops an empty one and all messages after it in the frame; send a placeholder"
    " instead, with an attribute that marks it"
)
_NO_BODY: Final = (("send", _STAND_IN),)
_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "target",
        "target",
        "",
        "Where to send: proxies as `tcp://host1:port,host2:port` (port 46801 when left out) or as a list of"
        " `host:port`, with TLS as `tls://host1:port,host2:port`; a Manager as `http://host:8083` or `https://host`,"
        " several as `http://host1:8083,host2:8083`, with `/getIpListByClusterName/NAME` at the end for the proxies of"
        " one cluster whatever the group; a file that lists proxies, and is read again when it changes, as"
        " `file:///path`; all addresses of a name as `dns://name:port`. docs/cluster.md explains each. Topics of"
        " TubeMQ: its masters as `tubemq://host1:port,host2:port` (port 8715 when left out), with TLS as"
        " `tubemqs://host1:port` (8716); see docs/tubemq.md. Required.",
        importance="high",
        url=True,
    ),
    Option(
        "group_id",
        "text",
        "",
        "Group (InLong groupId) of messages that do not name one.",
        importance="high",
    ),
    Option(
        "group_ids",
        "names",
        (),
        "More groups that the producer sends to. A Manager is asked about each of them at the start. Messages may name"
        " other groups, too: the Manager is asked when the first of them is sent.",
    ),
    Option("executors", "int", 1, "Native network threads.", low=1, high=64),
    Option(
        "busy_poll",
        "duration",
        0.0,
        "How long an executor looks for answers and messages, and a thread in `result()` for its result, before it"
        " sleeps. Saves the time of a wake-up, and costs a core for as long. 0 sleeps at once.",
        low=0.0,
        high=0.01,
        importance="low",
    ),
    Option(
        "connections",
        "int",
        0,
        "Number of connections that take messages; 0 means one for each proxy in use (`active_proxies`), at least one"
        " for each executor.",
        low=0,
        high=1024,
    ),
    Option(
        "active_proxies",
        "int",
        0,
        "Number of proxies in use at the same time, a part of all that is another one in each process. 0 means all of"
        " up to 8 proxies, and of more than 8 two thirds, at least 8 and at most 64. At most `connections`, if that is"
        " given.",
        low=0,
        high=1024,
    ),
    Option(
        "standby_proxies",
        "int",
        2,
        "Further proxies that are connected, answer heartbeats and get no messages until a proxy in use fails, does"
        " worse than its peers, or is busier. Where all proxies are in use there are none.",
        low=0,
        high=1024,
        importance="low",
    ),
    Option(
        "eject_outliers",
        "bool",
        True,
        "Take a proxy out of use for a while that fails, refuses or answers late while its peers do not. At most half"
        " of the connected proxies are out at the same time.",
        importance="low",
    ),
    Option(
        "buffer_bytes",
        "size",
        64 * _MIB,
        "Most bytes of accepted messages that wait for their result. When the buffer is full, `on_full` decides. The"
        " packs of these messages use at most this size, plus an eighth of it, plus 4 MiB. In addition, results"
        " that wait for callbacks use at most an eighth of this size, plus 4 MiB.",
        low=1 * _KIB,
        high=1024 * _GIB,
        importance="high",
    ),
    Option(
        "buffer_messages",
        "int",
        0,
        "Most accepted messages that wait for their result; 0 means that only `buffer_bytes` counts.",
        low=0,
        high=10**12,
    ),
    Option(
        "on_full",
        "choice",
        "block",
        "With a full buffer `send` waits up to `max_block` (`block`), raises BufferFullError at once (`raise`), or"
        " never waits: it drops the message offered (`drop_newest`), or the oldest ones that were not sent"
        " yet (`drop_oldest`). Dropped messages have a result like all others.",
        choices=("block", "raise", "drop_newest", "drop_oldest"),
        importance="high",
    ),
    Option(
        "ordering",
        "choice",
        "none",
        "With `key`, messages of one stream that were sent with the same `key=` are stored in the order in which they"
        " were accepted, through retries and reconnects. Messages without a key are never ordered.",
        choices=("none", "key"),
        importance="medium",
    ),
    Option(
        "key_buckets",
        "int",
        16,
        "Keys of a stream are spread over this many buckets. A bucket has at most one unanswered frame at a time: with"
        " more buckets more frames can be in flight, and frames are smaller. With `tubemq://` the default is 128: each"
        " bucket belongs to one partition, and has one unanswered message at a time.",
        low=1,
        high=4096,
        importance="low",
    ),
    Option(
        "max_block",
        "duration",
        60.0,
        "Longest wait of one `send` for room in the buffer. Only with `on_full=block`; the other modes never wait.",
        low=0.0,
        high=7 * _DAY,
    ),
    Option(
        "batch_bytes",
        "size",
        256 * _KIB,
        "A pack is sent when its body reaches this size. Larger messages travel alone.",
        low=1,
        high=LARGEST_FRAME_BYTES - FRAME_OVERHEAD_BYTES,
        importance="high",
    ),
    Option("batch_messages", "int", 65535, "A pack is sent when it holds this many messages.", low=1, high=65535),
    Option(
        "linger",
        "duration",
        0.005,
        "A pack is sent when its first message has waited for this time. 0 sends at once. The default is lowered to a"
        " tenth of `delivery_timeout`.",
        low=0.0,
        high=60.0,
        importance="high",
    ),
    Option(
        "max_open_packs",
        "int",
        16,
        "Packs of one stream that may be open side by side (they differ in data time or attributes).",
        low=1,
        high=4096,
        importance="low",
    ),
    Option(
        "pack_seconds",
        "int",
        1,
        "Messages with a data time of their own share a pack when their times lie in the same span of so many"
        " seconds. The pack's time is that of its first message.",
        low=1,
        high=3600,
        importance="low",
    ),
    Option(
        "exact_time",
        "bool",
        False,
        "Send the exact milliseconds of a message's own data time as an attribute of that message; the frame keeps"
        " the time of its first message, in seconds with `message_type` 7. Not with lines (`message_type` 3 and 2,"
        " `joined_lines`).",
        importance="low",
    ),
    Option(
        "attribute_escape",
        "choice",
        "none",
        "With `percent`, attribute values of single messages may contain any text: characters that the protocol"
        " does not allow are percent-encoded,"
        " and the attribute `_escaped` names the keys. The readers in this package decode them. With `none` such"
        " values are"
        " refused.",
        choices=("none", "percent"),
        importance="low",
    ),
    Option(
        "delivery_timeout",
        "duration",
        120.0,
        "Time from `send` to the final result, retries included.",
        low=0.01,
        high=7 * _DAY,
        importance="high",
    ),
    Option(
        "ack_timeout",
        "duration",
        10.0,
        "A frame that reached its proxy and got no answer within this time is sent over another connection; so are all"
        " frames that wait on a connection which makes no progress for this time. The default is lowered to a third of"
        " `delivery_timeout` minus `linger`, so that two more attempts fit; a value of your own may be at most half.",
        low=0.001,
        high=3600.0,
    ),
    Option(
        "connect_timeout",
        "duration",
        5.0,
        "Longest time to set up one connection. The default is lowered to a third of `delivery_timeout` minus"
        " `linger`.",
        low=0.001,
        high=600.0,
    ),
    Option(
        "close_timeout",
        "duration",
        10.0,
        "Longest time that `close` waits for results; messages without a result count as failed then. The default is"
        " shorter than the time that servers and orchestrators give a process to end.",
        low=0.0,
        high=7 * _DAY,
        importance="high",
    ),
    Option(
        "start",
        "choice",
        "resolve",
        "What the constructor waits for: `resolve` looks up names and asks the Manager, and raises where no proxy is"
        " found (of several names or Managers one that answers is enough) and `cache_dir` has no list; `connect` also"
        " waits for a first connection, for `connect_timeout` and a second; `lazy` waits for nothing, and messages wait"
        " for proxies within `delivery_timeout`.",
        choices=("resolve", "connect", "lazy"),
    ),
    Option(
        "close_on",
        "names",
        (),
        "Signals, such as `SIGTERM`, that close the producer. Then the handler that was installed before is called, or"
        " the signal ends the process. For servers that a signal ends without running `atexit` handlers. Needs the"
        " main thread.",
        importance="low",
    ),
    Option(
        "warn_at_exit",
        "bool",
        True,
        "If the process ends while the producer is open and some messages are not delivered, write one line about it"
        " to stderr, in addition to the log.",
        importance="low",
    ),
    Option(
        "undelivered_bytes",
        "size",
        16 * _MIB,
        "Messages that were not delivered are kept up to this size for `Producer.undelivered()`, in"
        " addition to `buffer_bytes`. Messages beyond this size are only counted (`Report.not_kept`). 0 keeps nothing.",
        low=0,
        high=1024 * _GIB,
    ),
    Option("retry_backoff", "duration", 0.1, "First pause before a frame is sent again.", low=0.0, high=600.0),
    Option("retry_backoff_max", "duration", 5.0, "Longest pause before a frame is sent again.", low=0.0, high=3600.0),
    Option(
        "retry_budget",
        "int",
        20,
        "How many frames may be sent again without success for each 100 delivered ones. In addition, each executor"
        " has 256 at once and 10 a second. All this counts for each cluster. Further retries wait (until"
        " `delivery_timeout` at most), so that retries do not overload a cluster in trouble.",
        low=0,
        high=100_000,
        importance="low",
    ),
    Option(
        "unknown_group_timeout",
        "duration",
        60.0,
        "How long messages are sent again that a proxy refuses because it does not know their group or stream (code"
        " 115): a group that the Manager has just approved is known to all proxies after some 30 s. Never beyond"
        " `delivery_timeout`. What waits for unknown groups takes at most a quarter of `buffer_bytes`. With 0 such a"
        " message fails at once.",
        low=0.0,
        high=7 * _DAY,
    ),
    Option(
        "reconnect_backoff", "duration", 0.1, "First pause before a connection is tried again.", low=0.0, high=600.0
    ),
    Option(
        "reconnect_backoff_max",
        "duration",
        10.0,
        "Longest pause before a connection is tried again.",
        low=0.0,
        high=3600.0,
    ),
    Option(
        "heartbeat",
        "choice",
        "binary",
        "Heartbeats on idle connections: type 8 (`binary`, answered with the load), type 1 (`message`), or `off`.",
        choices=("binary", "message", "off"),
        importance="low",
    ),
    Option(
        "heartbeat_interval",
        "duration",
        30.0,
        "Idle time before a heartbeat. Servers close connections that are silent for 180 s.",
        low=0.01,
        high=170.0,
        importance="low",
    ),
    Option(
        "heartbeat_retries",
        "int",
        3,
        "A connection with this many heartbeats unanswered in a row is replaced.",
        low=1,
        high=100,
        importance="low",
    ),
    Option(
        "compression",
        "choice",
        "none",
        "Compression of packs; used where it makes a pack smaller.",
        choices=("none", "snappy"),
    ),
    Option(
        "compression_min_bytes",
        "size",
        512,
        "Packs below this size are not compressed.",
        low=0,
        high=255 * _MIB,
        importance="low",
    ),
    Option(
        "protocol",
        "choice",
        "tcp",
        "How messages travel. `tcp`: in frames of InLong's protocol V0 (`message_type`). `v1`: in its protobuf packs,"
        " over the same TCP port; messages have no attributes of their own and no ids of yours, and InLong's servers"
        " store no attributes of streams with them. `http`: in HTTP reports, for networks that let nothing else"
        " through; bodies are lines of UTF-8 text, and a body takes at most a third of a frame.",
        choices=("tcp", "v1", "http"),
    ),
    Option(
        "message_type",
        "choice",
        7,
        "Frame layout: 7 binary; 5 text with length-prefixed items (any character in attributes), 6 the same with"
        " an attribute text for each message (`_=` for one without attributes); 3 and 2 text with lines (bodies"
        " without line feeds; readers see a whole pack as one record).",
        choices=(7, 6, 5, 3, 2),
        importance="low",
    ),
    Option(
        "joined_lines",
        "bool",
        False,
        "With `message_type` 7: the bodies of a frame are joined by line feeds in one item, as the Java SDK does"
        " by option (bit 0x20). Bodies have no line feeds, single messages no attributes; readers see a whole pack"
        " as one record.",
        importance="low",
    ),
    Option(
        "trace_address",
        "text",
        "",
        "With `message_type` 7: address of this machine that frames carry for tracing (`node1ip`, with the time in"
        " `rtime1`; bit 0x02). The proxy adds its own hop. Empty: no trace.",
        importance="low",
    ),
    Option(
        "ack",
        "choice",
        "source",
        "What ends a message. `source`: the proxy's ack, given when it has accepted the frame. `sink`: an ack from"
        " behind its message queue, given by hubs after their commit and never by DataProxies up to 2.5, with which"
        " each message ends expired and possibly stored. `none`: no ack is asked for; the message is `sent` when its"
        " frame is written to the socket, and nobody knows whether it arrived.",
        choices=("source", "sink", "none"),
    ),
    Option(
        "max_frame_bytes",
        "size",
        512 * _KIB,
        "Largest frame that the proxies take (their `max-msg-length`). If a Manager names a smaller"
        " `maxPacketLength`, that is the limit (at least 2 KiB), also while the producer runs: larger messages are"
        " then refused. With `tubemq://` the master names the limit (1 MiB unless configured there), and the default"
        " is the largest value.",
        low=LEAST_FRAME_BYTES,
        high=LARGEST_FRAME_BYTES,
    ),
    Option("nagle", "bool", False, "Let the kernel collect small writes (no TCP_NODELAY).", importance="low"),
    Option(
        "user",
        "text",
        "",
        "Name of the user, for masters and brokers of TubeMQ that ask for credentials.",
        importance="low",
    ),
    Option(
        "password",
        "secret",
        Secret(),
        "Password of `user`; it is not sent, only a signature made with it. As every secret: the value itself,"
        " `env:NAME`, `file:PATH`, or (as an argument) a function that returns it.",
        importance="low",
        secret=True,
    ),
    Option(
        "discovery_interval",
        "duration",
        120.0,
        "Time between two requests for the Manager's list of proxies, or between two look-ups of names. Each producer"
        " varies it at random by a tenth, and asks at once when no proxy is left. No good connection is closed because"
        " of it. With `tubemq://` it is the time between two heartbeats to the master, 10s by default.",
        low=1.0,
        high=_DAY,
    ),
    Option(
        "manager_timeout",
        "duration",
        5.0,
        "Longest wait for one answer of the Manager, or of a master of TubeMQ.",
        low=0.01,
        high=600.0,
    ),
    Option("manager_secret_id", "text", "", "Secret id for the Manager (HTTP Basic).", secret=True),
    Option(
        "manager_secret_key",
        "secret",
        Secret(),
        "Secret key for the Manager (HTTP Basic). As every secret: the value itself, `env:NAME` for an environment"
        " variable, `file:PATH` for the first line of a file, or (as an argument) a function that returns it. A value"
        " that begins with one of these words is written `value:...`.",
        secret=True,
    ),
    *tls_options(
        "Encrypt the connections to all proxies with TLS, also of those that a Manager names. A target `tls://...`"
        " means the same.",
        one="proxy",
        several="proxies",
        named_by="the target or the Manager",
    ),
    Option(
        "manager_tls_ca",
        "text",
        "",
        "The same as `tls_ca` for a Manager with `https://`; empty: `tls_ca`; `system`: the system's authorities.",
    ),
    Option(
        "manager_tls_certificate",
        "text",
        "",
        "The same as `tls_certificate` for a Manager; empty: `tls_certificate`, with its key.",
    ),
    Option("manager_tls_key", "text", "", "File with the key of `manager_tls_certificate`.", importance="low"),
    Option(
        "manager_tls_key_password",
        "secret",
        Secret(),
        "Password of the key of `manager_tls_certificate`.",
        importance="low",
        secret=True,
    ),
    Option(
        "manager_secret_file",
        "text",
        "",
        "File with one line `id:key` for the Manager (HTTP Basic). It is read again when it changes, so that secrets"
        " may rotate. In the place of `manager_secret_id` and `manager_secret_key`.",
        importance="low",
    ),
    Option(
        "manager_header_file",
        "text",
        "",
        "File with one line `name: value`, a header for the Manager such as `Authorization: Bearer ...`. It is read"
        " again when it changes.",
        importance="low",
    ),
    Option(
        "manager_tenant",
        "text",
        "",
        "Tenant of the groups, sent to the Manager as header `tenant`. Empty: no header, which means `public`.",
        importance="low",
    ),
    Option(
        "cache_dir",
        "text",
        "",
        "Folder in which the Manager's lists are kept, one small file for each Manager, group and protocol. They are"
        " used when no Manager answers at the start. Empty: nothing is written.",
    ),
    Option(
        "cache_max_age",
        "duration",
        _DAY,
        "A list in `cache_dir` that is older is not used.",
        low=1.0,
        high=366 * _DAY,
        importance="low",
    ),
    Option(
        "empty_value",
        "choice",
        "fail",
        "Empty values in batches, Arrow data and Spark columns: `fail` refuses them, `skip` leaves them out and counts"
        " them. A single `send` always refuses them.",
        choices=("fail", "skip"),
        refused=_NO_BODY,
    ),
    Option(
        "null_value",
        "choice",
        "fail",
        "Null values in Arrow data and Spark columns: `fail`, `skip`, or `empty` (treated by `empty_value`).",
        choices=("fail", "skip", "empty"),
        refused=_NO_BODY,
    ),
)

#: Every option of the producer.
PRODUCER: Final = OptionTable(
    title="Producer",
    section="producer",
    env_prefix="DATAPROXY_",
    options=_OPTIONS,
    aliases=PRODUCER_ALIASES,
    refusals=PRODUCER_REFUSALS,
    words=KAFKA_WORDS,
    rules=PRODUCER_RULES,
)
