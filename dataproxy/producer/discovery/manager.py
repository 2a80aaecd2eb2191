"""The question to the Manager: which proxies take messages of a group, or belong to a cluster?"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from dataproxy.errors import ConfigError, DiscoveryError
from dataproxy.producer.discovery.credentials import Credentials
from dataproxy.shown import without_secrets

if TYPE_CHECKING:
    import ssl

    import urllib3

    from dataproxy.config.model import ProducerConfig
    from dataproxy.producer.discovery.calls import Calls
    from dataproxy.trust.watched import Trust
    from dataproxy.types import ManagerTarget, ProxyList

__all__ = ["Heard", "ManagerClient"]

_BY_GROUP: Final = "/inlong/manager/openapi/dataproxy/getIpList/"
_BY_CLUSTER: Final = "/inlong/manager/openapi/dataproxy/getIpListByClusterName/"
_REDIRECTS: Final = frozenset({301, 302, 307, 308})
_MOST_REDIRECTS: Final = 3
_HTML: Final = (b"<!doctype html", b"<html")
_VERSION: Final = "dataproxy-python"
_MAX_ANSWER_BYTES: Final = 8 << 20
_SHOWN: Final = 60
_OK: Final = 200
_SERVER_ERROR: Final = 500
_BUSY: Final = frozenset({408, 429})  # HTTP: request timeout, too many requests
_LOG_HINT: Final = "see the Manager's log"
_THREAD: Final = "dataproxy-manager-call"


class Heard(NamedTuple):
    """Hold what the last answer said of itself; ``moment`` is when its head was read, in seconds since 1970."""

    status: int
    content_type: str
    date: str
    moment: float


class ManagerClient:
    """Ask one Manager for lists of proxies.

    Certificates are verified, by the authorities that ``trust`` has; without it the options of ``config`` say which
    these are.  Secrets go into one header and nowhere else, and to no other address than the target's.  One thread at a
    time.
    """

    def __init__(
        self,
        target: ManagerTarget,
        config: ProducerConfig,
        trust: Trust | None = None,
        *,
        credentials: Credentials | None = None,
    ) -> None:
        self._url = target.url
        self._cluster = target.cluster
        self._timeout = config.manager_timeout
        self._protocol = "HTTP" if config.protocol == "http" else "TCP"  # V1 shares the port of TCP
        self._headers = {"accept": "application/json"}
        if config.manager_tenant:
            self._headers["tenant"] = _checked_tenant(config.manager_tenant)
        self._credentials = credentials or Credentials(config)
        self._carried: dict[str, str] = {}
        self._calls: Calls | None = None
        self.heard: Heard | None = None
        self._context: ssl.SSLContext | None = None
        if self._url.startswith("https://"):
            from dataproxy.trust.context import ssl_context
            from dataproxy.trust.files import manager_files

            self._context = ssl_context(manager_files(config)) if trust is None else trust.context

    def __repr__(self) -> str:
        return f"ManagerClient({self._url!r})"

    def fetch(self, group_id: str) -> ProxyList:
        """Return the proxies of a group, or of the target's cluster, by a request of at most ``manager_timeout``.

        This is the time for the credentials' function, name service, connecting, TLS, head and body of the answer
        together.  Raises DiscoveryError with one of these codes: MANAGER_TIMEOUT, MANAGER_REFUSED, MANAGER_URL,
        MANAGER_ANSWER, MANAGER_LOGIN, MANAGER_SECRET, GROUP_REFUSED, NO_PROXIES, UNRESOLVED_HOST, those of TLS
        (TLS_EXPIRED and others), else DISCOVERY.
        """
        from dataproxy.producer.discovery.answer import decode_answer

        status, kind, body = self._whole(group_id)
        if status != _OK:
            raise self._bad_status(status, body)
        whose = "cluster" if self._cluster else "group's cluster"
        asked = f"cluster {self._cluster!r}" if self._cluster else f"group {group_id!r}"
        try:
            answer = decode_answer(body, self._protocol)
        except ValueError as error:
            if kind.lower().startswith("text/html") or body[:_SHOWN].lstrip().lower().startswith(_HTML):
                raise self._error(
                    f"answered with an HTML page instead of a list of proxies, starting {_start(body)}",
                    code="MANAGER_LOGIN",
                    hint="a login page or a web proxy may stand in front of it: check that the target is a Manager's"
                    " base URL, which programs can reach",
                ) from None
            raise self._error(
                f"answered with {kind or 'no content type'} that {error}, starting {_start(body)}",
                code="MANAGER_ANSWER",
                hint="check that the target is a Manager's base URL",
            ) from None
        if isinstance(answer, str):
            raise self._error(
                f"refused {asked}: {answer!r}",
                code="GROUP_REFUSED",
                hint="check that it exists" if self._cluster else "check that the group exists and is approved",
            )
        if not answer.endpoints:
            raise self._error(
                f"has no {self._protocol} proxy for {asked}",
                code="NO_PROXIES",
                hint=f"check that the {whose} has DataProxy nodes",
            )
        return answer

    def close(self) -> None:
        """Close idle connections; may be called again."""
        calls, self._calls = self._calls, None
        if calls is not None:
            calls.close()

    def _whole(self, group_id: str) -> tuple[int, str, bytes]:
        """Return status, content type and body of the answer.  Raises DiscoveryError."""
        from dataproxy.producer.discovery.calls import Calls, TooLargeError
        from dataproxy.producer.discovery.limited import within

        calls, self._calls = self._calls or Calls(self._context, most_bytes=_MAX_ANSWER_BYTES), None
        try:
            # On a thread: no timeout covers name service together with headers and a body that come byte by byte.
            found = within(_THREAD, self._timeout, lambda: self._ask(group_id, calls), calls.end)
            self._calls = calls  # only now: after Ctrl-C or a timeout a thread may still use them
        except DiscoveryError:
            self._calls = calls
            raise
        except TimeoutError:
            raise self._too_late() from None
        except TooLargeError as error:
            self._calls = calls
            raise self._error(
                f"answered with {error}", code="MANAGER_ANSWER", hint="check that the target is a Manager's base URL"
            ) from None
        except Exception as error:  # noqa: BLE001 - whatever a Manager sends, the error is ours
            raise self._error(
                f"sent an answer that cannot be read: {error!r}", code="MANAGER_ANSWER", hint=_LOG_HINT
            ) from None
        return found

    def _ask(self, group_id: str, calls: Calls) -> tuple[int, str, bytes]:
        from urllib.parse import quote

        import urllib3

        path = _BY_CLUSTER + quote(self._cluster, safe="") if self._cluster else _BY_GROUP + quote(group_id, safe="")
        url = self._url + path
        self._carried = (
            self._headers | self._credentials.header()
        )  # no local variable: reports of errors may show those
        for _ in range(_MOST_REDIRECTS + 1):
            try:
                response = calls.pool.request(
                    "POST",
                    url,
                    fields={"ip": self._own_address(), "version": _VERSION, "protocolType": self._protocol},
                    encode_multipart=False,
                    headers=self._carried,
                    timeout=urllib3.Timeout(total=self._timeout),
                    redirect=False,
                    preload_content=False,
                )
                said = response.headers
                self.heard = Heard(response.status, said.get("content-type", ""), said.get("date", ""), time.time())
                try:
                    where = response.headers.get("location", "") if response.status in _REDIRECTS else ""
                    if not where:
                        return response.status, response.headers.get("content-type", ""), calls.read(response)
                finally:
                    response.close()
            except urllib3.exceptions.HTTPError as error:
                raise self._unreachable(error) from None
            url = self._redirected(url, where)
        raise self._error(f"redirects more than {_MOST_REDIRECTS} times", code="MANAGER_URL", hint="check the target")

    def _redirected(self, url: str, where: str) -> str:
        """Return the URL that a redirect leads to; DiscoveryError if it is at another address, perhaps anybody's."""
        from urllib.parse import urljoin, urlsplit

        try:
            found = urljoin(url, where)
            if urlsplit(found)[:2] == urlsplit(url)[:2]:
                return found
        except ValueError:
            found = where
        shown = without_secrets(found)
        raise self._error(
            f"redirects to another address, {shown[: 2 * _SHOWN]!r}, which is not asked",
            code="MANAGER_URL",
            hint="give that address as target if the Manager is there; it may be a login page",
        )

    def _own_address(self) -> str:
        """Return this machine's address on the way to the Manager; no packet is sent for this."""
        from urllib.parse import urlsplit

        parts = urlsplit(self._url)
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.connect((parts.hostname or "", parts.port or 80))
                return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"

    def _unreachable(self, error: urllib3.exceptions.HTTPError) -> DiscoveryError:
        """Return the error for a failure below HTTP.  Several error classes of urllib3 derive from its TimeoutError."""
        import http.client

        from urllib3 import exceptions as kinds

        cause = error.__context__
        why = getattr(cause, "strerror", None) or str(error)
        if isinstance(error, kinds.NameResolutionError):
            return self._error(f"has no address: {why}", code="UNRESOLVED_HOST", hint="check the host name")
        if isinstance(error, kinds.SSLError):
            from dataproxy.trust.faults import fault_of

            code, reason, hint = fault_of(error, "manager_tls_ca", "http://")
            return self._error(f"failed the TLS handshake: {reason}", code=code, hint=hint)
        if isinstance(error, kinds.TimeoutError) and not isinstance(error, kinds.NewConnectionError):
            return self._too_late()
        inner = error.args[-1] if error.args else None  # urllib3 wraps what Python's client says: (words, exception)
        if isinstance(inner, ConnectionResetError):  # http.client.RemoteDisconnected is one, too
            return self._error("closed the connection without a whole answer", hint="check host, port and scheme")
        if isinstance(error, (kinds.DecodeError, kinds.IncompleteRead, kinds.InvalidChunkLength)) or isinstance(
            inner, http.client.HTTPException
        ):
            what = f"sent an incomplete or invalid answer: {inner!r:.{_SHOWN}}"
            return self._error(what, code="MANAGER_ANSWER", hint="check host and port; see the Manager's log")
        return self._error(f"cannot be reached: {why}", hint="check host, port and scheme")

    def _too_late(self) -> DiscoveryError:
        return self._error(
            f"did not answer within {self._timeout:g} s",
            code="MANAGER_TIMEOUT",
            hint="check it, or raise manager_timeout",
        )

    def _bad_status(self, status: int, body: bytes) -> DiscoveryError:
        if status in (401, 403):
            hint = "check manager_secret_id and manager_secret_key"
            if not self._credentials.given:
                hint = "it requires credentials: set manager_secret_id and manager_secret_key"
            elif self._credentials.origin != "manager_secret_id":
                hint = f"check {self._credentials.origin}"
            return self._error(f"refused the request with HTTP {status}", code="MANAGER_REFUSED", hint=hint)
        code, hint = "MANAGER_URL", "check that the target is a Manager's base URL"
        if status >= _SERVER_ERROR or status in _BUSY:
            code, hint = "MANAGER_ANSWER", _LOG_HINT
        return self._error(f"answered with HTTP {status}, starting {_start(body)}", code=code, hint=hint)

    def _error(self, what: str, *, code: str = "DISCOVERY", hint: str = "") -> DiscoveryError:
        return DiscoveryError(f"the Manager at {self._url} {what}", code=code, hint=hint, details={"url": self._url})


def _checked_tenant(tenant: str) -> str:
    if not (tenant.isascii() and tenant.isprintable() and tenant == tenant.strip()):
        raise ConfigError(
            f"manager_tenant={tenant!r} does not fit into an HTTP header", hint="give printable ASCII, e.g. 'public'"
        )
    return tenant


def _start(body: bytes) -> str:
    text = body[: 4 * _SHOWN].decode("utf-8", "replace").strip()
    return repr(text[:_SHOWN] + ("..." if len(text) > _SHOWN else ""))
