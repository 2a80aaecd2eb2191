"""Who clients are, and what groups may read."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Container, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from dataproxy.hub.tubemq.cluster.answers import UNKNOWN, UNPROVEN, RefusedError
from dataproxy.wire.tubemq.credentials import Signature

__all__ = ["Access"]

_NOT_ALLOWED, _NOT_ALLOWED_ITEMS = 450, 455
_OF_BROKERS: Final = "B2M"  # ends the names of brokers' requests


class Access:
    """Users with their passwords, and the rights of groups.  One thread.

    ``users`` None: nobody is asked for a proof.  ``groups``: those that may read a topic, by topics; a topic that is
    not named there is open to all.  ``items``: the filter items that a group may ask for, by (group, topic).
    ``brokers``: the users as whom brokers register, and nobody else may.
    """

    def __init__(
        self,
        users: Mapping[str, str] | None = None,
        *,
        groups: Mapping[str, AbstractSet[str]] | None = None,
        items: Mapping[tuple[str, str], AbstractSet[str]] | None = None,
        brokers: AbstractSet[str] = frozenset(),
    ) -> None:
        self._users = users
        self._key = secrets.token_bytes(32)  # of tokens: another master does not know them
        self._groups = {topic: set(names) for topic, names in (groups or {}).items()}
        self._kept: dict[str, set[str]] = {}  # those of topics that are open to all
        self._items = {pair: frozenset(names) for pair, names in (items or {}).items()}
        self._brokers = frozenset(brokers)

    @property
    def is_asked(self) -> bool:
        """Tell whether clients have to prove who they are."""
        return self._users is not None

    def check_proof(self, request: Any, wall_ms: int, apart_s: float) -> str:
        """Return the token that shows the client's later requests to be of the same user; empty if nobody is asked.

        Refuses (415) a request whose signature is missing, is too old or too new, or is not its user's.  The Java
        client signs when it registers, and then shows the token alone: with one that is not ours it has to register
        again (411).
        """
        if self._users is None:
            return ""
        proof = request.authInfo.authInfo
        client = _client(request)
        registers = request.DESCRIPTOR.name.startswith("Register")
        if not registers and not proof.userName.strip() and request.authInfo.HasField("authorizedToken"):
            return self._check_token(request, client)
        for name in ("userName", "signature"):
            if not getattr(proof, name).strip():
                raise RefusedError(UNPROVEN, f"Illegal value: authInfo.{name} is Blank!")
        password = self._password(
            Signature(proof.userName, proof.timestamp, proof.nonce, proof.signature), wall_ms, apart_s
        )
        if request.DESCRIPTOR.name.endswith(_OF_BROKERS) and proof.userName not in self._brokers:
            raise RefusedError(UNPROVEN, f"the user {proof.userName[:100]!r} is not one as whom brokers register")
        return self._token(proof.userName, password, client)

    def check_visit(self, info: Any, wall_ms: int, apart_s: float, tokens: Container[int]) -> None:
        """Refuse (415) a request to a broker without a master's token, or whose signature, if it has one, is wrong.

        ``info`` is the field authInfo; signatures are ``user timestamp nonce signature`` there.
        """
        if self._users is None:
            return
        if info.visitAuthorizedToken not in tokens:
            raise RefusedError(UNPROVEN, "Visit Authorized Token is not correct")
        text = info.authAuthorizedToken.strip()
        if not text:
            raise RefusedError(UNPROVEN, "authAuthorizedToken is Blank!")
        parts = text.split()
        if len(parts) != 4 or not all(one.isascii() and one.isdigit() and len(one) < 20 for one in parts[1:3]):
            raise RefusedError(UNPROVEN, "authAuthorizedToken is not 'user timestamp nonce signature'")
        self._password(Signature(parts[0], int(parts[1]), int(parts[2]), parts[3]), wall_ms, apart_s)

    def _password(self, given: Signature, wall_ms: int, apart_s: float) -> str:
        """Return the password of who signed."""
        if abs(given.time_ms - wall_ms) > apart_s * 1000:
            text = f"Illegal value: authInfo.timestamp is more than {apart_s:g} s away from our clock"
            raise RefusedError(UNPROVEN, text)
        password = (self._users or {}).get(given.user)
        if password is not None:
            wanted = Signature.make(given.user, password, given.time_ms, given.nonce).signature
            if hmac.compare_digest(wanted.encode(), given.signature.encode()):
                return password
        raise RefusedError(UNPROVEN, f"the signature is not that of the user {given.user!r}")

    def _token(self, user: str, password: str, client: str) -> str:
        digest = hmac.new(self._key, f"{user}\n{password}\n{client}".encode(), hashlib.sha256)
        return f"{user}:{digest.hexdigest()}"

    def _check_token(self, request: Any, client: str) -> str:
        shown: str = request.authInfo.authorizedToken
        user = shown.rpartition(":")[0]
        password = (self._users or {}).get(user)
        if password is not None:
            wanted = self._token(user, password, client)
            if hmac.compare_digest(wanted.encode(), shown.encode()):
                return wanted
        raise RefusedError(UNKNOWN, "authInfo.authorizedToken is not of this master: register again, with a signature")

    def control(self, topic: str, *, on: bool) -> None:
        """Say whether a topic is for its groups alone; those that it had are kept in mind while it is open to all."""
        if on:
            self._groups.setdefault(topic, self._kept.pop(topic, set()))
        elif groups := self._groups.pop(topic, None):
            self._kept[topic] = groups

    def allow(self, group: str, topic: str, items: AbstractSet[str] | None = None) -> None:
        """Let a group read a topic, with these filter items alone if there are any; controlled or not by now."""
        self._of(topic).add(group)
        if items is None:
            self._items.pop((group, topic), None)
        else:
            self._items[group, topic] = frozenset(items)

    def deny(self, group: str, topic: str) -> bool:
        """Take a group's right to a topic; False if it had none."""
        self._items.pop((group, topic), None)
        groups = self._of(topic)
        known = group in groups
        groups.discard(group)
        if not groups and topic in self._kept:
            del self._kept[topic]
        return known

    def _of(self, topic: str) -> set[str]:
        return self._groups[topic] if topic in self._groups else self._kept.setdefault(topic, set())

    def rights(self) -> dict[str, tuple[bool, dict[str, frozenset[str] | None]]]:
        """Return for each topic whether it is for its groups alone, and those groups with their items, None for all."""
        return {topic: self.rights_of(topic) for topic in sorted({*self._groups, *self._kept})}

    def rights_of(self, topic: str) -> tuple[bool, dict[str, frozenset[str] | None]]:
        """Return the same for one topic."""
        groups = self._groups.get(topic, self._kept.get(topic, set()))
        return topic in self._groups, {group: self._items.get((group, topic)) for group in sorted(groups)}

    def check_rights(self, group: str, topics: AbstractSet[str], filters: Mapping[str, AbstractSet[str]]) -> None:
        """Refuse a group that may not read a topic (450), or not with its filters (455)."""
        for topic in sorted(topics):
            if topic in self._groups and group not in self._groups[topic]:
                raise RefusedError(_NOT_ALLOWED, f"[unauthorized subscribe] group {group} may not read topic {topic}")
            allowed = self._items.get((group, topic))
            if allowed is None:
                continue
            if not filters.get(topic):
                text = f"[Restricted Group] group {group} may read topic {topic} with filter items alone"
                raise RefusedError(_NOT_ALLOWED_ITEMS, text)
            if others := sorted(filters[topic] - allowed):
                text = f"[Restricted Group] group {group} may not ask topic {topic} for {', '.join(others)}"
                raise RefusedError(_NOT_ALLOWED_ITEMS, text)


def _client(request: Any) -> str:
    """Return who a request's token is for; a broker is told by its id, which alone its heartbeats have."""
    if not request.DESCRIPTOR.name.endswith(_OF_BROKERS):
        return str(request.clientId)
    text = request.clientId.partition(":")[0] if request.DESCRIPTOR.name.startswith("Register") else request.brokerId
    return f"broker {text.strip()}"
