"""Who clients are, and what groups may read."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from dataproxy.hub.tubemq.answers import UNKNOWN, UNPROVEN, RefusedError
from dataproxy.wire.tubemq.credentials import Signature

__all__ = ["Access"]

_NOT_ALLOWED, _NOT_ALLOWED_ITEMS = 450, 455


class Access:
    """Users with their passwords, and the rights of groups.  One thread.

    ``users`` None: nobody is asked for a proof.  ``groups``: those that may read a topic, by topics; a topic that is
    not named there is open to all.  ``items``: the filter items that a group may ask for, by (group, topic).
    """

    def __init__(
        self,
        users: Mapping[str, str] | None = None,
        *,
        groups: Mapping[str, AbstractSet[str]] | None = None,
        items: Mapping[tuple[str, str], AbstractSet[str]] | None = None,
    ) -> None:
        self._users = users
        self._key = secrets.token_bytes(32)  # of tokens: another master does not know them
        self._groups = dict(groups or {})
        self._items = dict(items or {})

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
        registers = request.DESCRIPTOR.name.startswith("Register")
        if not registers and not proof.userName.strip() and request.authInfo.HasField("authorizedToken"):
            return self._check_token(request)
        for name in ("userName", "signature"):
            if not getattr(proof, name).strip():
                raise RefusedError(UNPROVEN, f"Illegal value: authInfo.{name} is Blank!")
        if abs(proof.timestamp - wall_ms) > apart_s * 1000:
            text = f"Illegal value: authInfo.timestamp is more than {apart_s:g} s away from the master's clock"
            raise RefusedError(UNPROVEN, text)
        password = self._users.get(proof.userName)
        if password is not None:
            wanted = Signature.make(proof.userName, password, proof.timestamp, proof.nonce).signature
            if hmac.compare_digest(wanted.encode(), proof.signature.encode()):
                return self._token(proof.userName, password, request.clientId)
        raise RefusedError(UNPROVEN, f"the signature is not that of the user {proof.userName!r}")

    def _token(self, user: str, password: str, client: str) -> str:
        digest = hmac.new(self._key, f"{user}\n{password}\n{client}".encode(), hashlib.sha256)
        return f"{user}:{digest.hexdigest()}"

    def _check_token(self, request: Any) -> str:
        shown: str = request.authInfo.authorizedToken
        user = shown.rpartition(":")[0]
        password = (self._users or {}).get(user)
        if password is not None:
            wanted = self._token(user, password, request.clientId)
            if hmac.compare_digest(wanted.encode(), shown.encode()):
                return wanted
        raise RefusedError(UNKNOWN, "authInfo.authorizedToken is not of this master: register again, with a signature")

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
