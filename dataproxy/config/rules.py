"""Rules between options.  Defaults are adapted to values that the user set; conflicts between set values are errors."""

from __future__ import annotations

import ipaddress
import math
import re
from typing import TYPE_CHECKING, Any, Final

from dataproxy.config.option import Rule
from dataproxy.config.units import format_duration, format_size
from dataproxy.messagetypes import REPORT_TYPE, ascii_only, frame_family, has_item_attributes, is_report
from dataproxy.problems import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "CONSUMER_RULES",
    "FRAME_OVERHEAD_BYTES",
    "HUB_RULES",
    "LARGEST_FRAME_BYTES",
    "LEAST_FRAME_BYTES",
    "PRODUCER_RULES",
    "is_rocketmq",
    "is_tubemq",
]

#: Room that ``max_frame_bytes`` keeps for header, group and stream names around a pack's body.
FRAME_OVERHEAD_BYTES: Final = 1024

#: Largest frame of the protocol: the highest value of a server's option ``max-msg-length``.
LARGEST_FRAME_BYTES: Final = 20 << 20
#: Smallest frame limit that a producer works with; a Manager's limit below it is raised to it.
LEAST_FRAME_BYTES: Final = 2 << 10

_LONGEST_SILENCE: Final = 3600.0
_LINGER_PART: Final = 10  # a default linger is at most delivery_timeout divided by this
_ROUNDING: Final = 1e-6
_TOKEN_SHORTEST: Final = 16
_LAST_PORT: Final = 65535
_ADDRESSES: Final = ("tcp", "tls", "dns")  # schemes of a target that names proxies
_BARE: Final = re.compile(r"[\w.-]{1,255}|\[[0-9A-Fa-f:.]+\]")  # a name, or an IPv6 address, and no port behind it

#: Limits of TubeMQ's masters.  Those take fewer characters (no '-' in topics, letters, digits and '_' in filter items),
#: but InLong's streams, by which messages are filtered, have other names, too: a master may still say no.
_GROUP_LONGEST: Final = 1024
_TOPIC_LONGEST: Final = 64
_ITEM_LONGEST: Final = 256
_USER_LONGEST: Final = 64
_MOST_TOPICS: Final = 1024
_MOST_ITEMS: Final = 500
# As texts, so that only programs with a consumer take the time to compile them.
_GROUP: Final = rf"[A-Za-z][A-Za-z0-9_-]{{0,{_GROUP_LONGEST - 1}}}"
_TOPIC: Final = rf"[A-Za-z][A-Za-z0-9_-]{{0,{_TOPIC_LONGEST - 1}}}"
_ITEM: Final = rf"[^\s,#:@=+]{{1,{_ITEM_LONGEST}}}"
_SESSION: Final = rf"[A-Za-z0-9_.-]{{1,{_GROUP_LONGEST}}}"
_NUMBER: Final = r"(?:0|[1-9][0-9]{0,9})"  # as masters write it: keys of partitions are compared as texts
_PARTITION: Final = rf"{_NUMBER}:([A-Za-z][A-Za-z0-9_-]*):{_NUMBER}"
_INDEX: Final = 28  # bytes of a store's index for each of its messages
_LARGEST_OFFSET: Final = 2**63 - 1
_USER: Final = rf"\S{{1,{_USER_LONGEST}}}"


def _not_above(small: str, large: str, show: Callable[[Any], str], *, margin: int = 0, either: bool = False) -> Rule:
    """Return the rule ``small + margin <= large``; defaults of ``small`` change, with ``either`` also ``large``."""
    extra = f" plus {margin} bytes of overhead" if margin else ""

    def check(values: Mapping[str, Any]) -> str | None:
        if values[small] + margin <= values[large]:
            return None
        return (
            f"{small} ({show(values[small])}){extra} is above {large} ({show(values[large])});"
            f" lower {small} or raise {large}"
        )

    yields: dict[str, Callable[[Mapping[str, Any]], Any]] = {small: lambda values: values[large] - margin}
    if either:
        yields[large] = lambda values: values[small] + margin
    return Rule((small, large), check, yields)


def _lingers_long(values: Mapping[str, Any]) -> str | None:
    return "" if values["linger"] * _LINGER_PART > values["delivery_timeout"] else None


def _attempts_rare(values: Mapping[str, Any]) -> str | None:
    return "" if values["ack_timeout"] > _third(values) else None


def _connects_long(values: Mapping[str, Any]) -> str | None:
    return "" if values["connect_timeout"] > _third(values) else None


def _third(values: Mapping[str, Any]) -> float:
    """Return a third of ``delivery_timeout - linger`` (s, in whole ms): time for three attempts or connects."""
    return float(math.floor((values["delivery_timeout"] - values["linger"]) / 3 * 1000 + _ROUNDING) / 1000)


def _another_attempt(values: Mapping[str, Any]) -> str | None:
    ack, delivery = values["ack_timeout"], values["delivery_timeout"]
    if 2 * ack <= delivery + _ROUNDING:
        return None
    return (
        f"ack_timeout ({format_duration(ack)}) is above half of delivery_timeout ({format_duration(delivery)}), so a"
        f" frame without an answer has no time for another attempt; lower ack_timeout to"
        f" {format_duration(delivery / 2)}, or raise delivery_timeout to {format_duration(2 * ack)}"
    )


def _attempts_after_linger(values: Mapping[str, Any]) -> str | None:
    linger, most = values["linger"], _longest_linger(values)
    if linger <= most + _ROUNDING:
        return None
    return (
        f"linger ({format_duration(linger)}) is above delivery_timeout ({format_duration(values['delivery_timeout'])})"
        f" less one and a half ack_timeout ({format_duration(values['ack_timeout'])}), so a frame without an answer"
        f" has no time for another attempt; lower linger to {format_duration(most)}, or raise delivery_timeout"
    )


def _longest_linger(values: Mapping[str, Any]) -> float:
    return float(values["delivery_timeout"] - 1.5 * values["ack_timeout"])


def _heartbeats_in_time(values: Mapping[str, Any]) -> str | None:
    silence = values["heartbeat_interval"] * values["heartbeat_retries"]
    if values["heartbeat"] == "off" or silence <= _LONGEST_SILENCE:
        return None
    return (
        f"heartbeat_retries ({values['heartbeat_retries']}) times heartbeat_interval"
        f" ({format_duration(values['heartbeat_interval'])}) keeps a dead connection for {format_duration(silence)},"
        f" allowed is {format_duration(_LONGEST_SILENCE)}; lower one of them"
    )


def _waits(values: Mapping[str, Any]) -> str | None:
    if values["on_full"] == "block":
        return None
    return (
        f"max_block ({format_duration(values['max_block'])}) has no effect with on_full={values['on_full']!r},"
        " which never waits; leave max_block out, or choose on_full='block'"
    )


def _lines_are_bare(values: Mapping[str, Any]) -> str | None:
    family = frame_family(values["message_type"], values["joined_lines"], values["protocol"])
    if has_item_attributes(family) or not values["exact_time"]:
        return None
    other = "message_type 7 or 5" if values["protocol"] == "tcp" else "protocol='tcp'"
    return (
        f"{_lines_of(values)} has no attributes of single messages, which exact_time needs; leave exact_time out, or"
        f" choose {other}"
    )


def _http_carries_lines(values: Mapping[str, Any]) -> str | None:
    if values["protocol"] != "http" or is_report(values["message_type"]):
        return None
    return (
        f"message_type {values['message_type']} cannot be sent over HTTP, which carries lines of text; leave"
        " message_type out, or choose protocol='tcp'"
    )


def _http_is_plain(values: Mapping[str, Any]) -> str | None:
    if values["protocol"] != "http" or values["compression"] == "none":
        return None
    return "compression has no place in the HTTP report; leave it out, or choose protocol='tcp'"


def _http_has_ports(values: Mapping[str, Any]) -> str | None:
    """Complain about an address without a port; what is no address at all is left to ``parse_target``."""
    scheme, _, rest = values["target"].strip().partition("://")
    if values["protocol"] != "http" or scheme.lower() not in _ADDRESSES:
        return None
    bare = next((part for part in map(str.strip, rest.split(",")) if _BARE.fullmatch(part)), None)
    if bare is None:
        return None
    return (
        f"target has {bare!r} without a port, and the usual one, 46801, is not that of the HTTP report; write"
        f" '{bare}:46802', or what the cluster has, or choose protocol='tcp'"
    )


def _lines_of(values: Mapping[str, Any]) -> str:
    if values["protocol"] != "tcp":
        return f"protocol {values['protocol']!r}"
    return "joined_lines" if values["joined_lines"] else f"message_type {values['message_type']}"


def _binary_alone(values: Mapping[str, Any]) -> str | None:
    """Refuse options that only binary frames can have."""
    if values["protocol"] != "tcp" or ascii_only(values["message_type"]):
        return None
    found = next((name for name in ("joined_lines", "trace_address") if values[name]), None)
    return found and f"{found} needs message_type 7, not {values['message_type']}; leave one of them out"


def _other_protocols(values: Mapping[str, Any]) -> str | None:
    """Refuse options that V1 packs and HTTP reports have no place for."""
    protocol, address = values["protocol"], values["trace_address"]
    if protocol == "tcp":
        return None
    if values["joined_lines"]:
        return (
            f"joined_lines is of message_type 7, and protocol {protocol!r} has no message types; leave one of them out"
        )
    if protocol == "http" and address:
        return "trace_address has no place in the HTTP report; leave it out, or choose protocol='tcp'"
    if ":" in address:
        return f"trace_address {address!r} is an IPv6 address, and sourceIp of V1 takes IPv4; give one"
    return None


_ANSWERS: Final = {
    "v1": "whose server answers each pack as it is configured",
    "http": "whose server answers each request when it has accepted it",
}


def _ack_is_asked_for(values: Mapping[str, Any]) -> str | None:
    protocol, ack = values["protocol"], values["ack"]
    if protocol == "tcp" or ack == "source":
        return None
    return (
        f"ack {ack!r} cannot be asked for with protocol {protocol!r}, {_ANSWERS[protocol]}; leave ack out, or choose"
        " protocol='tcp'"
    )


def _joined_unpacked(values: Mapping[str, Any]) -> str | None:
    if not values["joined_lines"] or values["compression"] == "none":
        return None
    return "joined_lines is not sent compressed; leave compression out, or joined_lines"


def _is_address(values: Mapping[str, Any]) -> str | None:
    address = values["trace_address"]
    try:
        ipaddress.ip_address(address or "::")
    except ValueError:
        return f"trace_address {address!r} is not an IP address; give one as 10.0.0.1 or fd00::1"
    return None


def _order_needs_acks(values: Mapping[str, Any]) -> str | None:
    if values["ordering"] != "key" or values["ack"] != "none":
        return None
    return (
        "ordering 'key' sends the next frame of a key when the last one is answered, and with ack 'none' no frame is;"
        " choose ack='source', or leave ordering out"
    )


def _together(first: str, second: str) -> Rule:
    """Return the rule that either both options are given or none."""

    def check(values: Mapping[str, Any]) -> str | None:
        if bool(values[first]) == bool(values[second]):
            return None
        have, lack = (second, first) if values[second] else (first, second)
        return f"{have} is given without {lack}; give both or none"

    return Rule((first, second), check)


def _needs(name: str, other: str) -> Rule:
    """Return the rule that an option is given only with another one."""

    def check(values: Mapping[str, Any]) -> str | None:
        if not values[name] or values[other]:
            return None
        return f"{name} is given without {other}; give both or none"

    return Rule((name, other), check)


def _cluster_has_clients(values: Mapping[str, Any]) -> str | None:
    if not values["tubemq_cluster"]:
        return None
    if values["tubemq_port"] < 0:
        return "tubemq_cluster is given without tubemq_port: its hubs and their clients meet there; give both or none"
    if values["tls_certificate"]:
        return "tubemq_cluster is given with tls_certificate: hubs of a cluster speak to each other without TLS"
    return None


def _offsets_have_groups(values: Mapping[str, Any]) -> str | None:
    if not values["tubemq_zookeeper"] or values["tubemq_port"] >= 0:
        return None
    return "tubemq_zookeeper is given without tubemq_port: groups are clients of that port; give both or none"


def _second_port_is_one(values: Mapping[str, Any]) -> str | None:
    if not values["rocketmq_vip"] or values["rocketmq_port"] > 2:
        return None
    return "rocketmq_vip is given without a rocketmq_port of 3 or more: its port is the second below that one"


def _rocketmq_asks_nobody(values: Mapping[str, Any]) -> str | None:
    if values["rocketmq_port"] < 0 or not values["secret_id"] or values["insecure"]:
        return None
    return (
        "rocketmq_port is given with secret_id: clients of RocketMQ are not asked for credentials; give only one of"
        " the two, or insecure=true"
    )


_OF_TLS: Final = ("tls_ca", "tls_certificate", "tls_server_name")


def _encrypted(plain: str, secure: str) -> Rule:
    """Return the rule that settings for TLS have an effect: who gives one believes that messages are encrypted."""

    def check(values: Mapping[str, Any]) -> str | None:
        given = [name for name in _OF_TLS if values[name]] + (["tls_verify"] if values["tls_verify"] != "full" else [])
        if not given or values["tls"] or not values["target"].lower().startswith(plain):
            return None
        return f"{given[0]} is given, but connections to {plain} have no TLS; write {secure} in target, or set tls=True"

    return Rule(("tls", "target", *_OF_TLS), check)


def _fits_header(token: str) -> bool:
    return len(token) >= _TOKEN_SHORTEST and token.isascii() and token.isprintable() and " " not in token


def _token_is_long(values: Mapping[str, Any]) -> str | None:
    if not values["token"] or _fits_header(values["token"].reveal()):
        return None
    return (
        f"token is too short or does not fit into an HTTP header; give {_TOKEN_SHORTEST} printable ASCII characters"
        " or more without blanks, or none"
    )


def is_tubemq(target: str) -> bool:
    """Tell whether a target names TubeMQ's masters."""
    return target.strip().lower().startswith(("tubemq://", "tubemqs://"))


def is_rocketmq(target: str) -> bool:
    """Tell whether a target names RocketMQ's name servers."""
    return target.strip().lower().startswith(("rocketmq://", "rocketmqs://"))


#: Options that belong to DataProxies and Managers, with the values that change nothing.
_OF_PROXIES: Final = {
    "group_id": "",
    "group_ids": (),
    "protocol": "tcp",
    "message_type": 7,
    "joined_lines": False,
    "compression": "none",
    "trace_address": "",
    "exact_time": False,
    "attribute_escape": "none",
    "manager_secret_id": "",
    "manager_secret_file": "",
    "manager_header_file": "",
    "manager_tenant": "",
    "manager_tls_ca": "",
    "manager_tls_certificate": "",
    "manager_tls_key": "",
    "cache_dir": "",
}
_TUBEMQ_INTERVAL: Final = 10.0  # s: a third of the time after which a master forgets a producer
_TUBEMQ_BUCKETS: Final = 128


def _not_of_tubemq(values: Mapping[str, Any]) -> str | None:
    """Refuse options without a meaning for TubeMQ."""
    if not is_tubemq(values["target"]):
        return None
    if values["ack"] != "source":
        return (
            f"ack={values['ack']!r} has no meaning with {values['target']}: a broker answers when it has stored a"
            " message; leave ack out"
        )
    if values["start"] == "connect":
        return (
            f"start='connect' has no meaning with {values['target']}: which brokers are connected is known with the"
            " first topic; leave start out, or choose 'lazy'"
        )
    found = next((name for name, none in _OF_PROXIES.items() if values[name] != none), None)
    return found and (
        f"{found} has no meaning with {values['target']}, which names masters of TubeMQ; leave {found} out, or give"
        " proxies or a Manager as target"
    )


def _only_tubemq(values: Mapping[str, Any]) -> str | None:
    if not values["user"] or not values["target"] or is_tubemq(values["target"]):
        return None
    return "user is given, and only TubeMQ's masters (tubemq://) ask for one; leave user and password out"


def _of_tubemq(name: str, value: float, *, least: bool) -> Rule:
    """Return the rule that a default is at least, or at most, another value for TubeMQ."""

    def check(values: Mapping[str, Any]) -> str | None:
        fits = values[name] >= value if least else values[name] <= value
        return "" if is_tubemq(values["target"]) and not fits else None

    return Rule((name, "target"), check, {name: lambda _values: value}, binding=False)


#: Rules of the producer, in the order in which they are applied.
PRODUCER_RULES: Final[tuple[Rule, ...]] = (
    Rule(("ack", "start", "target", *_OF_PROXIES), _not_of_tubemq),
    Rule(("user", "target"), _only_tubemq),
    Rule(("user",), lambda values: _user_is_named(values)),
    _together("user", "password"),
    _of_tubemq("max_frame_bytes", LARGEST_FRAME_BYTES, least=True),
    _of_tubemq("discovery_interval", _TUBEMQ_INTERVAL, least=False),
    _of_tubemq("key_buckets", _TUBEMQ_BUCKETS, least=True),
    _not_above("batch_bytes", "max_frame_bytes", format_size, margin=FRAME_OVERHEAD_BYTES),
    _not_above("batch_bytes", "buffer_bytes", format_size),
    Rule(
        ("linger", "delivery_timeout"),
        _lingers_long,
        {"linger": lambda values: values["delivery_timeout"] / _LINGER_PART},
        binding=False,
    ),
    Rule(("ack_timeout", "delivery_timeout", "linger"), _attempts_rare, {"ack_timeout": _third}, binding=False),
    Rule(("connect_timeout", "delivery_timeout", "linger"), _connects_long, {"connect_timeout": _third}, binding=False),
    _not_above("linger", "delivery_timeout", format_duration),
    Rule(
        ("ack_timeout", "delivery_timeout"),
        _another_attempt,
        {"ack_timeout": lambda values: values["delivery_timeout"] / 2},
    ),
    Rule(("linger", "ack_timeout", "delivery_timeout"), _attempts_after_linger, {"linger": _longest_linger}),
    _not_above("retry_backoff", "retry_backoff_max", format_duration, either=True),
    _not_above("reconnect_backoff", "reconnect_backoff_max", format_duration, either=True),
    Rule(("max_block", "on_full"), _waits, {"max_block": lambda _values: 0.0}),
    Rule(("heartbeat_interval", "heartbeat_retries"), _heartbeats_in_time),
    _together("manager_secret_id", "manager_secret_key"),
    Rule(("message_type", "protocol"), _http_carries_lines, {"message_type": lambda _values: REPORT_TYPE}),
    Rule(("compression", "protocol"), _http_is_plain),
    _needs("tls_key", "tls_certificate"),
    _needs("tls_key_password", "tls_certificate"),
    _needs("manager_tls_key", "manager_tls_certificate"),
    _needs("manager_tls_key_password", "manager_tls_certificate"),
    _encrypted("tcp://", "tls://"),
    _encrypted("tubemq://", "tubemqs://"),
    Rule(("protocol", "message_type", "joined_lines", "exact_time"), _lines_are_bare),
    Rule(("protocol", "message_type", "joined_lines", "trace_address"), _binary_alone),
    Rule(("protocol", "target"), _http_has_ports),
    Rule(("protocol", "joined_lines", "trace_address"), _other_protocols),
    Rule(("protocol", "ack"), _ack_is_asked_for),
    Rule(("joined_lines", "compression"), _joined_unpacked),
    Rule(("trace_address",), _is_address),
    Rule(("ordering", "ack"), _order_needs_acks),
)


def _group_is_named(values: Mapping[str, Any]) -> str | None:
    group = values["group"]
    if not group or is_rocketmq(values["target"]) or re.fullmatch(_GROUP, group):
        return None
    return (
        f"group {shown(group)} is not a name of a group; it begins with a letter, and has letters, digits, '-' and '_',"
        f" at most {_GROUP_LONGEST}"
    )


def _topics_are_named(values: Mapping[str, Any]) -> str | None:
    if is_rocketmq(values["target"]):
        return None  # its client has other names, and says which
    if len(values["topics"]) > _MOST_TOPICS:
        return f"topics has {len(values['topics'])} topics; a member of a group has at most {_MOST_TOPICS}"
    for name, items in values["topics"]:
        if not re.fullmatch(_TOPIC, name):
            return (
                f"topics: {shown(name)} is not a name of a topic; it begins with a letter, and has letters, digits, '-'"
                f" and '_', at most {_TOPIC_LONGEST}"
            )
        if len(items) > _MOST_ITEMS:
            return f"topics: {name!r} has {len(items)} filter items; at most {_MOST_ITEMS} are possible"
        wrong = next((item for item in items if not (re.fullmatch(_ITEM, item) and item.isprintable())), None)
        if wrong is not None:
            return (
                f"topics: the filter item {shown(wrong)} of {name!r} cannot be sent; give 1 to {_ITEM_LONGEST}"
                " printable characters without blanks and , # : @ = +"
            )
    return None


def _user_is_named(values: Mapping[str, Any]) -> str | None:
    """A broker gets the name as a word among others, so that blanks would end it."""
    user = values["user"]
    if not user or (re.fullmatch(_USER, user) and user.isprintable()):
        return None
    return f"user {shown(user)} is not a name; give 1 to {_USER_LONGEST} printable characters without blanks"


def _session_is_named(values: Mapping[str, Any]) -> str | None:
    session = values["session"]
    if not session or re.fullmatch(_SESSION, session):
        return None
    return f"session {shown(session)} is not a key; give 1 to {_GROUP_LONGEST} letters, digits, '-', '_' and '.'"


def _members_are_counted(values: Mapping[str, Any]) -> str | None:
    """Whoever begins a group together, or divides partitions without the master, has to say how many they are."""
    chosen = values["balance"] == "client"
    if chosen and values["session"]:
        return "session does not go with balance 'client', whose members choose offsets in assign(); keep one"
    if not chosen and values["node"]:
        return f"node ({values['node']}) is given without balance='client'; give both or none"
    if not chosen and not values["session"] and values["members"] > 1:
        return f"members ({values['members']}) is given without session or balance='client'; give one of them"
    if values["node"] >= values["members"]:
        return f"node ({values['node']}) has to be below members ({values['members']}); count from 0"
    return None


def _offsets_are_places(values: Mapping[str, Any]) -> str | None:
    topics = {name for name, _ in values["topics"]}
    for key, offset in values["offsets"]:
        found = re.fullmatch(_PARTITION, key)
        if found is None:
            return f"offsets: {shown(key)} is not a partition; write broker:topic:partition, as assignment() does"
        if topics and found[1] not in topics:
            return f"offsets: {shown(key)} is a partition of {found[1]!r}, which is none of topics"
        if not 0 <= offset <= _LARGEST_OFFSET or offset % _INDEX:
            return f"offsets: {offset} of {key!r} is no offset; give a multiple of {_INDEX} from 0 on"
    return None


#: Rules of the consumer.
CONSUMER_RULES: Final[tuple[Rule, ...]] = (
    Rule(("group", "target"), _group_is_named),
    Rule(("topics", "target"), _topics_are_named),
    Rule(("user",), _user_is_named),
    Rule(("session",), _session_is_named),
    Rule(("balance", "session", "members", "node"), _members_are_counted),
    Rule(("offsets", "topics"), _offsets_are_places),
    _needs("offsets", "session"),
    _needs("larger_offset", "session"),
    _together("user", "password"),
    _needs("tls_key", "tls_certificate"),
    _needs("tls_key_password", "tls_certificate"),
    _encrypted("tubemq://", "tubemqs://"),
    _encrypted("rocketmq://", "rocketmqs://"),
)


def _ports_end(name: str) -> Rule:
    """Return the rule that the ports of all nodes exist."""

    def check(values: Mapping[str, Any]) -> str | None:
        last = values[name] + values["nodes"] - 1
        if values[name] <= 0 or last <= _LAST_PORT:
            return None
        return (
            f"{name} ({values[name]}) and nodes ({values['nodes']}) need ports up to {last}, the last is"
            f" {_LAST_PORT}; lower one of them"
        )

    return Rule((name, "nodes"), check)


#: Rules of the hub.
HUB_RULES: Final[tuple[Rule, ...]] = (
    _not_above("max_frame_bytes", "queue_bytes", format_size, either=True),
    _together("secret_id", "secret_key"),
    Rule(("token",), _token_is_long),
    _needs("tls_key", "tls_certificate"),
    _needs("tls_key_password", "tls_certificate"),
    _needs("tls_client_ca", "tls_certificate"),
    _ports_end("port"),
    _ports_end("http_port"),
    Rule(("tubemq_cluster", "tubemq_port", "tls_certificate"), _cluster_has_clients),
    Rule(("tubemq_zookeeper", "tubemq_port"), _offsets_have_groups),
    Rule(("rocketmq_vip", "rocketmq_port"), _second_port_is_one),
    Rule(("rocketmq_port", "secret_id", "insecure"), _rocketmq_asks_nobody),
)
