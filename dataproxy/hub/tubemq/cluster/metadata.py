"""What a cluster of hubs has in common besides its brokers: flow rules and rights of groups, in its document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dataproxy.hub.tubemq.cluster.access import Access
from dataproxy.hub.tubemq.cluster.rules import Rules
from dataproxy.logs import logger

__all__ = ["take", "told"]

_log: Final = logger("hub.tubemq")
_NONE: Final = {"rules": {"cluster": "", "groups": {}}, "rights": {}}  # of a cluster where nothing was ever set


def told(rules: Rules, access: Access) -> dict[str, Any]:
    """Return rules and rights as values of JSON."""
    rights = {
        topic: {
            "controlled": on,
            "groups": {group: None if items is None else sorted(items) for group, items in groups.items()},
        }
        for topic, (on, groups) in access.rights().items()
    }
    return {"rules": {"cluster": rules.of_cluster, "groups": rules.of_groups()}, "rights": rights}


def take(document: Mapping[str, Any], rules: Rules, access: Access) -> None:
    """Let rules and rights be those of a document; what is none there is told in the log, and left out.

    A document without any says that there are none.
    """
    wanted = document.get("metadata", _NONE)
    if wanted == told(rules, access):
        return
    try:
        texts: dict[str | None, str] = {None: str(wanted["rules"]["cluster"])}
        texts.update(wanted["rules"]["groups"])
        rights = {
            topic: (
                bool(one["controlled"]),
                {name: None if of is None else frozenset(of) for name, of in dict(one["groups"]).items()},
            )
            for topic, one in dict(wanted["rights"]).items()
        }
    except (KeyError, TypeError, ValueError) as error:
        _log.warning("the metadata in the cluster's document are none: %r", error)
        return
    _take_rules(texts, rules)
    for topic, (_, groups) in access.rights().items():
        for group in groups:
            access.deny(group, topic)
        access.control(topic, on=False)
    for topic, (on, allowed) in rights.items():
        access.control(topic, on=on)
        for group, items in allowed.items():
            access.allow(group, topic, items)


def _take_rules(texts: Mapping[str | None, str], rules: Rules) -> None:
    """Change what differs: clients are told of each new number."""
    before: dict[str | None, str] = {None: rules.of_cluster}
    before.update(rules.of_groups())
    for group in before.keys() | texts.keys():
        text = texts.get(group, "")
        if text == before.get(group, ""):
            continue
        try:
            rules.set(text, group)
        except ValueError as error:
            _log.warning("flow rules in the cluster's document are none: %s", error)
