"""Options of the hub: the table, nothing else."""

from __future__ import annotations

from typing import Final

from dataproxy.config.option import Option, OptionTable
from dataproxy.config.rules import HUB_RULES, LARGEST_FRAME_BYTES
from dataproxy.config.secret import Secret

__all__ = ["HUB"]

_KIB: Final = 1 << 10
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30

_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "store",
        "text",
        "",
        "Directory of the durable store; empty keeps everything in memory only.",
        importance="high",
    ),
    Option(
        "host",
        "text",
        "127.0.0.1",
        "Address or name to listen on. If a name has IPv4 and IPv6 addresses: one of each, on the same ports.",
        importance="high",
    ),
    Option("port", "int", 0, "TCP port for producers; 0 takes a free one.", low=0, high=65535, importance="high"),
    Option(
        "manager_port",
        "int",
        0,
        "HTTP port of the Manager and hub API; 0 takes a free one.",
        low=0,
        high=65535,
        importance="high",
    ),
    Option(
        "http_port",
        "int",
        0,
        "TCP port of the HTTP report, for producers with `protocol=http`; 0 takes a free one, -1 opens none.",
        low=-1,
        high=65535,
        importance="high",
    ),
    Option(
        "tubemq_port",
        "int",
        -1,
        "TCP port on which the hub is a master and a broker of TubeMQ over the same store; 0 takes a free one, -1 opens"
        " none. It needs the extra `tubemq`.",
        low=-1,
        high=65535,
        importance="high",
    ),
    Option(
        "rocketmq_port",
        "int",
        -1,
        "TCP port on which the hub is a name server and a broker of RocketMQ 4 over the same store; 0 takes a free one,"
        " -1 opens none.",
        low=-1,
        high=65535,
        importance="high",
    ),
    Option(
        "rocketmq_vip",
        "bool",
        False,
        "Whether the hub also listens on the second port below `rocketmq_port`, which clients of RocketMQ up to 4.4 use"
        " by themselves, and later ones with `vipChannelEnabled`.",
        importance="low",
    ),
    Option(
        "tubemq_cluster",
        "text",
        "",
        "Servers of ZooKeeper and a path, such as `zk1:2181,zk2:2181/hubs`. Hubs with the same one are one cluster of"
        " TubeMQ: one of them is the master, all are brokers for what they have stored. Empty: the hub is alone. It"
        " needs the extra `zookeeper`.",
    ),
    Option(
        "tubemq_broker",
        "int",
        1,
        "Number of this hub as a broker of TubeMQ. Each hub of a cluster needs one of its own, and keeps it.",
        low=1,
        high=2**31 - 1,
    ),
    Option(
        "tubemq_session",
        "duration",
        10.0,
        "Time after which ZooKeeper gives up a hub of the cluster that it does not hear: a new leader is there at most"
        " 3 s later. The servers may grant another time, between 2 and 20 of their ticks.",
        low=1.0,
        high=120.0,
        importance="low",
    ),
    Option(
        "tubemq_zookeeper",
        "text",
        "",
        "Servers of ZooKeeper, such as `zk1:2181,zk2:2181`, that get a copy of where TubeMQ's groups are, every 5 s and"
        " at the end; a hub without stored offsets begins with theirs. Empty: none. It needs the extra `zookeeper`.",
    ),
    Option(
        "tubemq_zookeeper_root",
        "text",
        "/tubemq",
        "Node of ZooKeeper that they are below, in TubeMQ's layout. Each hub that is alone needs one of its own;"
        " hubs of one cluster share one.",
        importance="low",
    ),
    Option(
        "nodes",
        "int",
        1,
        "Number of nodes. Each has a TCP port and a port of the HTTP report, and acts as a separate proxy. With a"
        " `port` or an `http_port` that is not 0, these are consecutive ports that begin there.",
        low=1,
        high=64,
    ),
    Option("threads", "int", 1, "Network threads.", low=1, high=64),
    Option(
        "retention_bytes",
        "size",
        0,
        "Above this size the oldest entries of a log are dropped; 0 keeps all.",
        low=0,
        high=1024 * 1024 * _GIB,
        importance="high",
    ),
    Option(
        "retention_age",
        "duration",
        0.0,
        "Entries older than this are dropped; 0 keeps all.",
        low=0.0,
        high=3650 * 86400.0,
        importance="high",
    ),
    Option(
        "max_store_bytes",
        "size",
        1024 * _GIB,
        "Largest size of the store. Above it a durable store refuses new entries; a store in memory drops the oldest"
        " ones, and its default is a quarter of the machine's memory, at most 1 GiB.",
        low=1 * _MIB,
        high=1024 * 1024 * _GIB,
    ),
    Option(
        "queue_bytes",
        "size",
        64 * _MIB,
        "How many accepted bytes may wait for a commit. At this size the hub stops reading until half of them are"
        " stored. Half-received frames may take as much memory again, and so may unread answers; beyond that the"
        " connection that holds the most is closed.",
        low=64 * _KIB,
        high=1024 * _GIB,
    ),
    Option("max_frame_bytes", "size", 512 * _KIB, "Largest frame that is taken.", low=64, high=LARGEST_FRAME_BYTES),
    Option("max_connections", "int", 30000, "Connections at the same time.", low=1, high=1_000_000),
    Option(
        "read_idle",
        "duration",
        180.0,
        "A connection that sends nothing for this time is closed.",
        low=0.01,
        high=86400.0,
    ),
    Option(
        "profile",
        "choice",
        "strict",
        "Reaction to broken requests: `strict` answers with codes, `compat` copies the reference server.",
        choices=("strict", "compat"),
        importance="low",
    ),
    Option(
        "load",
        "text",
        "auto",
        "Load in heartbeat answers: `auto` (how full the queue is), `unknown`, or a number from 0 to 65534.",
        importance="low",
    ),
    Option("compress_entries", "bool", True, "Compress stored entries.", importance="low"),
    Option("partitions", "int", 1, "Logs of each topic.", low=1, high=1024),
    Option("node_ip", "text", "127.0.0.1", "Own name in acks (`dpIp`) and in Manager answers.", importance="low"),
    Option(
        "topics",
        "names",
        (),
        "What is accepted, as `group` or `group/stream` (others get code 115); empty accepts all.",
    ),
    Option(
        "numeric_ids",
        "names",
        (),
        "Names for numeric ids of binary requests, as `10=group` and `10/20=stream`; they are stored under the names."
        " Empty refuses such requests (code 3).",
        importance="low",
    ),
    Option(
        "dedupe",
        "choice",
        "off",
        "With `ids` a message is stored once, even if it is received several times. A message is recognised by its"
        " id (`msgid` of the"
        " item, else `sid` of the frame and its index) within its group and stream.",
        choices=("off", "ids"),
        importance="high",
    ),
    Option(
        "dedupe_conflict",
        "choice",
        "first",
        "What happens to a message whose id is already known with another body, if an application gave the id (a column"
        " `msg_id`, `message_id=`): `first` keeps the stored message; the new one is acknowledged and counted"
        " (`conflicts`), but not stored; `both` stores it. Messages are always stored if a producer made their ids, or"
        " the Spark sink made them from columns (`idFrom`). An id that the sink made from a row's place is trusted:"
        " it implies"
        " the content of the row.",
        choices=("first", "both"),
    ),
    Option(
        "dedupe_window",
        "duration",
        600.0,
        "How long an id is remembered; longer than any producer's `delivery_timeout`.",
        low=1.0,
        high=7 * 86400.0,
    ),
    Option(
        "dedupe_rows_window",
        "duration",
        7 * 86400.0,
        "How long rows of the Spark sink are remembered. They need little memory, so this is longer than for single"
        " ids: 256 rows of a"
        " stream, one after the other, take 72 bytes of memory and 80 on disk. So the rows of a task, a job or a"
        " micro-batch that runs again days later are still known. Rows with `idFrom` or `msg_id` have single ids.",
        low=1.0,
        high=366 * 86400.0,
    ),
    Option(
        "dedupe_memory",
        "size",
        256 * 1024**2,
        "Memory for the newest ids that `dedupe` remembers: half of it for single ids (with the default 1,572,864 of"
        " them), half for rows of the Spark sink (200 million of a stream). A pack whose messages have no ids of their"
        " own counts as one id. Ids that are forgotten too early are counted (`forgotten_ids`, `forgotten_rows`) and"
        " logged.",
        low=64 * 1024,
        high=1024**4,
    ),
    Option(
        "secret_id",
        "text",
        "",
        "Id of the credentials (HTTP Basic) that every page at the Manager's port except `/` and `/healthz` asks for."
        " Empty: no credentials are needed.",
        importance="high",
    ),
    Option("secret_key", "secret", Secret(), "Key that belongs to `secret_id`.", importance="high", secret=True),
    Option(
        "tls_certificate",
        "text",
        "",
        "File (PEM) with the hub's certificate and the ones between it and its authority. With it, the ports for"
        " producers and the Manager's port speak TLS.",
        importance="high",
    ),
    Option("tls_key", "text", "", "File (PEM) with the key of `tls_certificate`; empty: it is in the same file."),
    Option("tls_key_password", "secret", Secret(), "Password of an encrypted key.", secret=True),
    Option(
        "tls_client_ca",
        "text",
        "",
        "File (PEM) with the certificates of the authorities that clients' certificates must be signed by; empty:"
        " clients need none.",
    ),
    Option(
        "tls_min_version",
        "choice",
        "1.2",
        "Oldest version of TLS that is accepted.",
        choices=("1.2", "1.3"),
        importance="low",
    ),
    Option(
        "insecure",
        "bool",
        False,
        "Accept connections from other machines without credentials: anyone who reaches the Manager's port may read"
        " every message.",
        importance="high",
    ),
    Option(
        "allowed_hosts",
        "names",
        (),
        "Host names, besides `localhost` and IP addresses, that requests for `/hub/*` and `/metrics` may have in their"
        " header `Host`. This keeps out web pages whose own name was made to point to this machine.",
    ),
    Option(
        "token",
        "secret",
        Secret(),
        "Token that requests have to send if they change something, as `Authorization: Bearer TOKEN`. Empty: a new"
        " one is made"
        " at each start.",
        secret=True,
    ),
    Option(
        "token_file",
        "text",
        "",
        "File that holds the token while the hub runs; only its owner may read it (mode 0600). Empty: no file, except"
        " that `dataproxy hub` writes one where the other commands look for it.",
    ),
    Option(
        "fault_api",
        "choice",
        "off",
        "Whether faults for tests can be armed over HTTP (`/hub/faults`, with the token).",
        choices=("on", "off"),
        importance="low",
    ),
    Option("cluster_id", "int", 1, "Cluster id in Manager answers.", low=1, high=2**31 - 1, importance="low"),
)

#: Every option of the hub.
HUB: Final = OptionTable(
    title="Hub",
    section="hub",
    env_prefix="DATAPROXY_HUB_",
    options=_OPTIONS,
    rules=HUB_RULES,
)
