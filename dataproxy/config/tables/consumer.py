"""Options of the consumer: the table, nothing else."""

from __future__ import annotations

from typing import Final

from dataproxy.config.option import Option, OptionTable
from dataproxy.config.rules import CONSUMER_RULES
from dataproxy.config.secret import Secret
from dataproxy.config.tables.kafka import KAFKA_READ_WORDS
from dataproxy.config.tables.tls import tls_options
from dataproxy.config.tables.tubemq import TUBEMQ_ALIASES, TUBEMQ_REFUSALS

__all__ = ["CONSUMER"]

_KIB: Final = 1 << 10
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30
_DAY: Final = 86400.0

_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "target",
        "masters",
        "",
        "TubeMQ's masters, as `tubemq://host1:port,host2:port` (port 8715 when left out) or as a list of `host:port`;"
        " with TLS as `tubemqs://host1:port,host2:port` (port 8716 when left out). Masters name the brokers. Or a hub"
        " that pushes by RocketMQ's protocol: `rocketmq://host:port`, with TLS `rocketmqs://host:port` (port 9876 when"
        " left out). Required.",
        importance="high",
        url=True,
    ),
    Option(
        "group",
        "text",
        "",
        "Name of the consumer group. Each partition of the topics belongs to one member of the group at a time. All"
        " members have to ask for the same topics with the same filter items. Required.",
        importance="high",
    ),
    Option(
        "topics",
        "topics",
        (),
        "Topics to read, as a list, or as a mapping from each topic to its list of filter items. Filter items are the"
        " values of `$msgType$` (InLong streamId) whose messages are wanted; of RocketMQ, tags, or one expression of"
        " SQL92 behind `sql:`. A topic without any gives all messages. As"
        " text: topics with commas between them, filter items behind `=` with `+` between them:"
        " `orders,clicks=view+buy`. Required.",
        importance="high",
    ),
    Option(
        "start",
        "choice",
        "earliest",
        "Where reading of a partition begins when this consumer takes it for the first time; later it goes on at the"
        " stored offset. `earliest`: at the offset that is stored for the group, without one at the first message;"
        " `latest`: at the stored offset, without one behind the last message; `end`: behind the last message, whatever"
        " is stored. Each member has its own first time: with `end`, messages that are sent while a partition goes from"
        " one member to another are lost to the group.",
        choices=("earliest", "latest", "end"),  # in the order of readStatus: 0, 1, 2
        importance="high",
    ),
    Option(
        "offsets",
        "offsets",
        (),
        "Where a group begins that is bound to offsets: a mapping from partitions, `broker:topic:partition`, to"
        " offsets. As text: `1:orders:0=280,1:orders:1=0`. Each partition goes to the member that names it, when"
        " `members` of them are there. Needs `session`.",
    ),
    Option(
        "session",
        "text",
        "",
        "Binds the group to offsets, under this key: all members have to have the same key, `members` and"
        " `larger_offset`. The offsets count when the group gets its first partitions. Without it each partition begins"
        " where `start` says.",
    ),
    Option(
        "larger_offset",
        "bool",
        False,
        "If several members of a bound group name an offset of the same partition, the one with the largest gets it;"
        " otherwise the one with the smallest.",
        importance="low",
    ),
    Option(
        "balance",
        "choice",
        "master",
        "Who divides the partitions: the master, between all members of the group, or the application of each member,"
        " by `assign()`. With `client` each member has to know how many there are (`members`) and which one it is"
        " (`node`).",
        choices=("master", "client"),
    ),
    Option(
        "members",
        "int",
        1,
        "How many members the group has, where it is bound to offsets (`session`) or divides partitions itself"
        " (`balance`). A bound group gets no partitions before so many are there.",
        low=1,
        high=100_000,
    ),
    Option(
        "node",
        "int",
        0,
        "Which of the `members` this one is, from 0 on, with `balance` `client`. Each number can be there once.",
        low=0,
        high=99_999,
    ),
    Option(
        "prefetch_bytes",
        "size",
        64 * _MIB,
        "Most bytes of messages that are read ahead of the application. At this size no further pack is asked for. At"
        " least one pack is read, however large it is.",
        low=64 * _KIB,
        high=1024 * _GIB,
        importance="high",
    ),
    Option(
        "auto_confirm",
        "bool",
        False,
        "Confirm a pack when the application asks for the next one, as if all its messages were done by then. A pack"
        " whose messages are still being worked on, in another thread or task, is confirmed too early: if the process"
        " ends then, these messages do not come again.",
        importance="high",
    ),
    Option(
        "confirm_timeout",
        "duration",
        60.0,
        "How long a pack may stay without a confirm. Then it is delivered again, and a later confirm of it fails."
        " Give more time than the work on a pack takes.",
        low=1.0,
        high=_DAY,
        importance="high",
    ),
    Option(
        "release_wait",
        "duration",
        3.0,
        "How long the application may still confirm a pack whose partition goes to another member. After that the"
        " partition is given back all the same, and the other member gets the pack again.",
        low=0.0,
        high=60.0,
    ),
    Option(
        "not_found_wait",
        "duration",
        0.4,
        "Longest wait after a broker had no new message of a partition, before it is asked for this partition again. A"
        " shorter wait finds new messages sooner and asks brokers more often. Brokers and masters may ask for longer"
        " waits.",
        low=0.001,
        high=60.0,
    ),
    Option(
        "call_timeout",
        "duration",
        10.0,
        "Longest wait for the answer to one call to a master or a broker.",
        low=3.0,
        high=600.0,
    ),
    Option("connect_timeout", "duration", 3.0, "Longest time to set up one connection.", low=0.001, high=600.0),
    Option(
        "close_timeout",
        "duration",
        10.0,
        "Longest time that `close` takes to give back partitions and to leave the group. Where it is too short,"
        " partitions are free for other members only when the servers miss the heartbeats (30 s unless configured).",
        low=0.0,
        high=7 * _DAY,
    ),
    Option(
        "heartbeat_interval",
        "duration",
        10.0,
        "Time between two heartbeats to the master, and to each broker. Give at most a third of the time after which"
        " servers take away the partitions of a silent member (30 s unless configured there).",
        low=1.0,
        high=60.0,
        importance="low",
    ),
    Option(
        "master_retry_max",
        "duration",
        60.0,
        "Longest pause before the masters are asked again, while none of them answers. Pauses grow from 1 s.",
        low=1.0,
        high=3600.0,
        importance="low",
    ),
    Option(
        "register_retries",
        "int",
        5,
        "How often a broker is asked for a partition that another member has not given back yet. After that the master"
        " assigns it anew.",
        low=1,
        high=1000,
        importance="low",
    ),
    Option(
        "register_retry_wait",
        "duration",
        1.0,
        "Pause before a broker is asked again for a partition.",
        low=0.01,
        high=60.0,
        importance="low",
    ),
    Option(
        "dns_interval",
        "duration",
        30.0,
        "Time between two look-ups of the names of masters and brokers.",
        low=10.0,
        high=_DAY,
        importance="low",
    ),
    Option(
        "user",
        "text",
        "",
        "Name of the user, for servers that ask for credentials.",
    ),
    Option(
        "password",
        "secret",
        Secret(),
        "Password of `user`; it is not sent, only a signature made with it. As every secret: the value itself,"
        " `env:NAME` for an environment variable, `file:PATH` for the first line of a file, or (as an argument) a"
        " function that returns it. A value that begins with one of these words is written `value:...`.",
        secret=True,
    ),
    *tls_options(
        "Encrypt the connections to masters and brokers with TLS. A target `tubemqs://...` or `rocketmqs://...` means"
        " the same.",
        one="server",
        several="servers",
        named_by="the target or the master",
    ),
)

#: Every option of the consumer.
CONSUMER: Final = OptionTable(
    title="Consumer",
    section="consumer",
    env_prefix="DATAPROXY_CONSUMER_",
    options=_OPTIONS,
    aliases=TUBEMQ_ALIASES,
    refusals=TUBEMQ_REFUSALS,
    words=KAFKA_READ_WORDS,
    rules=CONSUMER_RULES,
)
