"""Calls of TubeMQ's own HTTP API, ``webapi.htm?method=...``, with which scripts declare topics and rights.

The forms of the answers are those of TubeMQ's master 2.4.0.  A cluster has one broker here, which is there from the
beginning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NoReturn

from dataproxy.errors import ConfigError
from dataproxy.hub.tubemq.admin.changes import set_control, set_right
from dataproxy.hub.tubemq.admin.parts import AbsentError, Parts, check_group_name, check_topic_name
from dataproxy.hub.tubemq.cluster.layout import TopicAt
from dataproxy.wire.tubemq.texts import Broker

__all__ = ["answer", "changes", "refused"]

_Row = dict[str, Any]
_Query = Mapping[str, str]
_OK, _BAD, _ABSENT, _EXISTS, _UNCHANGED = 200, 400, 401, 402, 403
_USER: Final = re.compile(r"[a-zA-Z][A-Za-z0-9_]{1,63}")
_LETTERS: Final = "can only contain English letters, numbers, and underscores"
_MOST: Final = 50  # values in one parameter
_TEXTS: Final = {"true": True, "false": False}


class _RefusedError(Exception):
    """The whole call is refused, with a text."""


def changes(method: str) -> bool:
    """Tell whether a method changes anything, for which a token is needed."""
    return method in _CHANGES


def answer(parts: Parts, query: _Query, is_token: Callable[[str], bool]) -> _Row:
    """Return the answer to a call; ``is_token`` tells whether a text is the token for changes."""
    method = query.get("method", "")
    call = _READS.get(method) or _CHANGES.get(method)
    try:
        if call is None:
            _refuse("Bad request from client, unsupported method!")
        if changes(method):
            _check_allowed(method, query, is_token)
        rows = call(parts, query)
    except _RefusedError as error:
        return refused(str(error))
    return {"result": True, "errCode": 0, "errMsg": "OK", "data": rows, "count": len(rows)}


def refused(text: str) -> _Row:
    """Return the answer to a call that is refused as a whole."""
    return {"result": False, "errCode": _BAD, "errMsg": text}


def _refuse(text: str) -> NoReturn:
    raise _RefusedError(text)


def _check_allowed(method: str, query: _Query, is_token: Callable[[str], bool]) -> None:
    given = query.get("confModAuthToken", "").strip()
    if not given:
        _refuse("Bad request from client, Parameter confModAuthToken is missing or value is blank!")
    if not is_token(given):
        _refuse("Bad request from client, illegal access, unauthorized request!")
    who = "createUser" if "_add_" in method else "modifyUser"
    user = _required(query, who)
    if not _USER.fullmatch(user):
        _refuse(f"illegal value for {who}, value must begin with a letter, {_LETTERS}")


# --- parameters


def _required(query: _Query, name: str) -> str:
    text = query.get(name, "").strip()
    if not text:
        _refuse(f"Parameter {name} is missing or value is blank!")
    return text


def _list(query: _Query, name: str) -> list[str]:
    found = [text for one in query.get(name, "").split(",") if (text := one.strip())]
    if len(found) > _MOST:
        _refuse(f"{name}'s value count over max allowed count({_MOST})!")
    return list(dict.fromkeys(found))


def _required_list(query: _Query, name: str) -> list[str]:
    _required(query, name)
    return _list(query, name)


def _numbers(query: _Query, name: str, *, required: bool = False) -> list[int]:
    texts = _required_list(query, name) if required else _list(query, name)
    if not all(one.isascii() and one.isdigit() and len(one) <= 10 for one in texts):
        _refuse(f"illegal value for {name}, value must only contain numbers")
    return [int(one) for one in texts]


def _flag(query: _Query, name: str) -> bool | None:
    """Return a parameter that is true or false; None if it is not given, or is another text, as TubeMQ does it."""
    return _TEXTS.get(query.get(name, "").strip().lower())


def _told(names: _Row, code: int = _OK, info: str = "Ok!") -> _Row:
    return {**names, "success": code == _OK, "errCode": code, "errInfo": info}


# --- brokers


def _me(parts: Parts) -> tuple[Broker, list[str]]:
    """Return this hub as a broker, and the topics that it has."""
    found = next((one for one in parts.own.brokers() if one.id == parts.broker), None)
    if found is None:
        _refuse("the broker of this hub is not on line")
    return found, parts.own.topics()


def _add_broker(parts: Parts, query: _Query) -> list[_Row]:
    me, _ = _me(parts)
    for number in _numbers(query, "brokerId"):
        if number not in (0, me.id):
            _refuse(
                f"a hub is the only broker of its cluster, with brokerId={me.id}: brokerId={number} cannot be added"
            )
    return [_told({"brokerId": me.id, "brokerIp": me.host})]


def _touch_broker(parts: Parts, query: _Query) -> list[_Row]:
    """Answer what puts a broker on line, or lets it load its settings: both have happened."""
    me, _ = _me(parts)
    return [
        _told({"brokerId": number, "brokerIp": me.host})
        if number == me.id
        else _told({"brokerId": number, "brokerIp": ""}, _ABSENT, f"Not found broker configure for brokerId({number})!")
        for number in _numbers(query, "brokerId", required=True)
    ]


def _broker_status(parts: Parts, query: _Query) -> list[_Row]:
    me, _ = _me(parts)
    wanted = _numbers(query, "brokerId")
    if wanted and me.id not in wanted:
        return []
    return [
        {
            "brokerId": me.id, "brokerIp": me.host, "brokerPort": me.port, "manageStatus": "online",
            "isRepAbnormal": False, "isAutoForbidden": False, "runStatus": "running", "subStatus": "idle",
            "isConfChanged": "false", "isConfLoaded": "true", "isBrokerOnline": "true", "brokerVersion": "-",
            "acceptPublish": "true", "acceptSubscribe": "true",
        }
    ]  # fmt: skip


def _defaults(_parts: Parts, _query: _Query) -> list[_Row]:
    return []


# --- topics


def _add_topics(parts: Parts, query: _Query) -> list[_Row]:
    brokers, topics = _numbers(query, "brokerId", required=True), _required_list(query, "topicName")
    given = {name: _numbers(query, name) for name in ("numPartitions", "numTopicStores")}
    for name, has in (("numPartitions", parts.new_partitions), ("numTopicStores", 1)):
        if given[name] and given[name] != [has]:
            _refuse(f"topics of this hub have {name}={has} (its option `partitions`), {given[name][0]} was asked for")
    for topic in topics:
        _checked(check_topic_name, topic)
    me, _ = _me(parts)
    return [_add_topic(parts, number, me.id, topic) for number in brokers for topic in topics]


def _add_topic(parts: Parts, broker: int, own: int, topic: str) -> _Row:
    names = {"brokerId": broker, "topicName": topic}
    if broker != own:
        text = f"Not found broker configure record by brokerId={broker}, please create the broker's configure first!"
        return _told(names, _ABSENT, text)
    if parts.own.places(topic):
        return _told(names, _EXISTS, f"Existed record found for brokerId-topicName({own}:{topic})!")
    parts.name_topics([topic])
    if not parts.own.places(topic):
        return _told(names, _BAD, "the hub's option `topics` does not name it, or too many topics have no message yet")
    return _told(names)


def _topic_info(parts: Parts, query: _Query) -> list[_Row]:
    wanted, brokers = set(_list(query, "topicName")), _numbers(query, "brokerId")
    rights = parts.access.rights()
    found = []
    for topic in parts.topics():
        places = [one for one in parts.places(topic) if not brokers or one[0].id in brokers]
        if not places or (wanted and topic not in wanted):
            continue
        controlled, groups = rights.get(topic, (False, {}))
        n = sum(at.partitions * at.stores for _, at, _ in places)
        found.append(
            {
                "topicName": topic, "topicInfo": [_place(topic, *one) for one in places], "infoCount": len(places),
                "totalCfgNumPart": n, "totalRunNumPartCount": sum(a.partitions * a.stores for _, a, on in places if on),
                "isSrvAcceptPublish": any(on and at.publish for _, at, on in places),
                "isSrvAcceptSubscribe": any(on and at.subscribe for _, at, on in places),
                "authData": _rights(groups) if controlled else {},
            }
        )  # fmt: skip
    return found


def _rights(groups: Mapping[str, Iterable[str] | None]) -> _Row:
    conditions = [
        {
            "groupName": group, "condStatus": 0 if items is None else 2,
            "filterConds": "" if items is None else f",{','.join(sorted(items))},",
        }
        for group, items in groups.items()
    ]  # fmt: skip
    return {
        "enableAuthControl": True, "authConsumeGroup": [{"groupName": one} for one in groups],
        "groupCount": len(groups), "authFilterCondSet": conditions, "filterCount": len(conditions),
    }  # fmt: skip


def _place(topic: str, broker: Broker, at: TopicAt, online: bool) -> _Row:
    run = {
        "acceptPublish": at.publish, "acceptSubscribe": at.subscribe, "numPartitions": at.partitions,
        "numTopicStores": at.stores, "brokerManageStatus": "online" if online else "offline",
    }  # fmt: skip
    return {
        "topicName": topic, "brokerId": broker.id, "brokerIp": broker.host, "brokerPort": broker.port,
        "topicStatusId": 0, "numTopicStores": at.stores, "numPartitions": at.partitions, "acceptPublish": at.publish,
        "acceptSubscribe": at.subscribe, "runInfo": run,
    }  # fmt: skip


# --- rights


def _control_topics(parts: Parts, query: _Query) -> list[_Row]:
    topics, on = _required_list(query, "topicName"), _flag(query, "enableAuthControl")
    found = []
    for topic in topics:
        names = {"topicName": topic}
        if not parts.places(topic):
            found.append(_told(names, _ABSENT, f"Not found topic control configure for topicName({topic})!"))
        elif on is None or parts.access.rights_of(topic)[0] == on:
            found.append(_told(names, _UNCHANGED, "Topic control configure not changed!"))
        else:
            _checked(set_control, parts, topic, on=on)
            found.append(_told(names))
    return found


def _allow_groups(parts: Parts, query: _Query) -> list[_Row]:
    topics, groups = _required_list(query, "topicName"), _required_list(query, "groupName")
    enabled, filtered = _flag(query, "consumeEnable") is not False, _flag(query, "filterEnable")
    items = _list(query, "filterConds") if filtered else None
    for topic in topics:
        if not parts.places(topic):
            _refuse(f"topicName value {topic} is not configure, please configure first!")
    for group in groups:
        _checked(check_group_name, group)
    found = []
    for topic in topics:
        for group in groups:
            names = {"groupName": group, "topicName": topic}
            if group in parts.access.rights_of(topic)[1]:
                found.append(_told(names, _EXISTS, f"Existed record found for groupName-topicName({topic}:{group})!"))
                continue
            if enabled:
                _checked(set_right, parts, group, topic, allow=True, items=items)
            found.append(_told(names))
    return found


def _checked(call: Callable[..., object], *values: object, **more: object) -> None:
    """Make a call that checks its values.  Raises _RefusedError with the text of its error, without the hint."""
    try:
        call(*values, **more)
    except (ConfigError, AbsentError) as error:
        _refuse(str(error.args[0]))


_READS: Final[dict[str, Callable[[Parts, _Query], list[_Row]]]] = {
    "admin_query_broker_run_status": _broker_status,
    "admin_query_cluster_default_setting": _defaults,
    "admin_query_topic_info": _topic_info,
}
_CHANGES: Final[dict[str, Callable[[Parts, _Query], list[_Row]]]] = {
    "admin_add_broker_configure": _add_broker,
    "admin_add_group_csmctrl_info": _allow_groups,
    "admin_add_new_topic_record": _add_topics,
    "admin_add_topic_deploy_info": _add_topics,
    "admin_online_broker_configure": _touch_broker,
    "admin_reload_broker_configure": _touch_broker,
    "admin_update_topic_control_info": _control_topics,
}
