"""Permissions at the Manager's port: credentials, the token, and protection against requests from foreign web pages."""

from __future__ import annotations

import base64
import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

__all__ = ["HubAccess", "has_credentials"]

_SAFE: Final = frozenset({"GET", "HEAD"})
_JSON: Final = "application/json"
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def has_credentials(header: str, known: Mapping[str, str]) -> bool:
    """Tell whether an ``Authorization`` header has a known id and key; its scheme must be written exactly ``Basic``."""
    scheme, _, encoded = header.partition(" ")
    if scheme != "Basic":
        return False
    try:
        name, colon, key = base64.b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:  # not ASCII, not base64 or not UTF-8
        return False
    expected = known.get(name)
    return bool(colon) and expected is not None and hmac.compare_digest(expected.encode(), key.encode())


class HubAccess:
    """Guard ``/hub/*``: the host name must be allowed, the page not foreign; changes need JSON and the token.

    ``names`` are the allowed host names besides ``localhost`` and addresses.  A foreign page whose host name resolves
    to this machine still sends that name, and cannot send an address in its place.  Thread: the Manager server's.
    """

    def __init__(self, token: str, names: tuple[str, ...], secrets_of: Callable[[], Mapping[str, str]]) -> None:
        self._token = token.encode()
        self._names = frozenset({"localhost", *(name.lower().rstrip(".") for name in names)})
        self._secrets = secrets_of

    @web.middleware
    async def check(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Pass a request to its handler if it is allowed.  Raises HTTPForbidden, HTTPUnsupportedMediaType."""
        self._check_names(request)
        header = request.headers.get("authorization", "")
        trusted = self._has_token(header)
        if request.method not in _SAFE:
            if not trusted:
                raise web.HTTPForbidden(
                    reason="this request needs the token that the hub printed at its start: Authorization: Bearer TOKEN"
                )
            if request.content_type != _JSON and (request.method == "POST" or request.can_read_body):
                raise web.HTTPUnsupportedMediaType(reason=f"this request must be sent as {_JSON}")
        else:
            self._check_reader(header)
        return await handler(request)

    @web.middleware
    async def check_reading(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Pass a request to its handler if it may read, whatever its method.  Raises HTTPForbidden."""
        self._check_names(request)
        self._check_reader(request.headers.get("authorization", ""))
        return await handler(request)

    def _check_reader(self, header: str) -> None:
        if self._secrets() and not self._has_token(header) and not has_credentials(header, self._secrets()):
            raise web.HTTPForbidden(reason="authentication failed: wrong or missing secret id or key, or token")

    def _has_token(self, header: str) -> bool:
        scheme, _, given = header.partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(given.encode("utf-8", "replace"), self._token)

    def _check_names(self, request: web.Request) -> None:
        """Refuse requests that a browser sends for a foreign page.  Raises HTTPForbidden."""
        host = request.headers.get("host", "")
        if not self._is_allowed(host):
            raise web.HTTPForbidden(
                reason=f"the hub does not accept the host name {host!r}; use its address, or add it to allowed_hosts"
            )
        origins = request.headers.getall("origin", ())
        site = request.headers.get("sec-fetch-site", "none")
        if any(_authority(origin) != host.lower() for origin in origins) or site not in ("none", "same-origin"):
            raise web.HTTPForbidden(reason="requests from web pages of other sites are not allowed")

    def _is_allowed(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name.rstrip(".") in self._names or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _authority(origin: str) -> str:
    """Return host and port of an ``Origin``, "" for ``null`` and for a text that is not an origin."""
    scheme, separator, rest = origin.partition("://")
    return rest.lower() if separator and scheme in ("http", "https") else ""
