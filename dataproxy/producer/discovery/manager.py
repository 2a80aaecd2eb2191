"""The question to the Manager: which proxies take messages of a group?"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

from dataproxy.errors import ConfigError, DiscoveryError

if TYPE_CHECKING:
    import urllib3

    from dataproxy.config.model import ProducerConfig
    from dataproxy.producer.discovery.calls import Calls
    from dataproxy.types import ManagerTarget, ProxyList

__all__ = ["ManagerClient"]

_PATH: Final = "/inlong/manager/openapi/dataproxy/getIpList/"
_VERSION: Final = "dataproxy-python"
_MAX_ANSWER_BYTES: Final = 8 << 20
_CHUNK_BYTES: Final = 1 << 16
_SHOWN: Final = 60
_OK: Final = 200
_SERVER_ERROR: Final = 500
_BUSY: Final = frozenset({408, 429})  # HTTP: request timeout, too many requests
_LOG_HINT: Final = "see the Manager's log"
_THREAD: Final = "dataproxy-manager-call"


class ManagerClient:
    """Ask one Manager for lists of proxies.

    Certificates are verified (the system's authorities, or those of ``SSL_CERT_FILE``).  Secrets go into one
    header and nowhere else.  One thread at a time.
    """

    def __init__(self, target: ManagerTarget, config: ProducerConfig) -> None:
        if ":" in config.manager_secret_id:
            raise ConfigError(
                "manager_secret_id contains ':', which ends the id in an HTTP header", hint="check the id"
            )
        self._url = target.url
        self._timeout = config.manager_timeout
        self._headers = {"accept": "application/json"}
        self._has_secret = bool(config.manager_secret_id)
        if self._has_secret:
            import base64

            pair = f"{config.manager_secret_id}:{config.manager_secret_key}".encode()
            self._headers["authorization"] = "Basic " + base64.b64encode(pair).decode("ascii")
        self._calls: Calls | None = None

    def __repr__(self) -> str:
        return f"ManagerClient({self._url!r})"

    def fetch(self, group_id: str) -> ProxyList:
        """Return the proxies of a group, by one request that takes at most ``manager_timeout``.

        This is the time for name service, connecting, TLS, head and body of the answer together.  Raises DiscoveryError
        with one of these codes: MANAGER_TIMEOUT, MANAGER_REFUSED, MANAGER_URL, MANAGER_ANSWER,
        GROUP_REFUSED, NO_PROXIES, UNRESOLVED_HOST, else DISCOVERY.
        """
        from dataproxy.producer.discovery.answer import decode_answer
        from dataproxy.producer.discovery.calls import Calls
        from dataproxy.producer.discovery.limited import within

        calls, self._calls = self._calls or Calls(), None
        try:
            # On a thread: no timeout covers name service together with headers and a body that come byte by byte.
            status, kind, body = within(_THREAD, self._timeout, lambda: self._ask(group_id, calls), calls.end)
            self._calls = calls  # only now: after Ctrl-C or a timeout a thread may still use them
        except DiscoveryError:
            self._calls = calls
            raise
        except TimeoutError:
            raise self._too_late() from None
        except Exception as error:  # noqa: BLE001 - whatever a Manager sends, the error is ours
            raise self._error(
                f"sent an answer that cannot be read: {error!r}", code="MANAGER_ANSWER", hint=_LOG_HINT
            ) from None
        if status != _OK:
            raise self._bad_status(status, body)
        try:
            answer = decode_answer(body)
        except ValueError as error:
            raise self._error(
                f"answered with {kind or 'no content type'} that {error}, starting {_start(body)}",
                code="MANAGER_ANSWER",
                hint="check that the target is a Manager's base URL",
            ) from None
        if isinstance(answer, str):
            raise self._error(
                f"refused group {group_id!r}: {answer!r}",
                code="GROUP_REFUSED",
                hint="check that the group exists and is approved",
            )
        if not answer.endpoints:
            raise self._error(
                f"has no TCP proxy for group {group_id!r}",
                code="NO_PROXIES",
                hint="check that the group's cluster has DataProxy nodes",
            )
        return answer

    def close(self) -> None:
        """Close idle connections; may be called again."""
        calls, self._calls = self._calls, None
        if calls is not None:
            calls.close()

    def _ask(self, group_id: str, calls: Calls) -> tuple[int, str, bytes]:
        from urllib.parse import quote

        import urllib3

        try:
            response = calls.pool.request(
                "POST",
                f"{self._url}{_PATH}{quote(group_id, safe='')}",
                fields={"ip": self._own_address(), "version": _VERSION, "protocolType": "TCP"},
                encode_multipart=False,
                headers=self._headers,
                timeout=urllib3.Timeout(total=self._timeout),
                redirect=False,
                preload_content=False,
            )
            try:
                body = self._read(response)
            finally:
                response.close()
        except urllib3.exceptions.HTTPError as error:
            raise self._unreachable(error) from None
        return response.status, response.headers.get("content-type", ""), body

    def _read(self, response: urllib3.BaseHTTPResponse) -> bytes:
        parts: list[bytes] = []
        size = 0
        for part in response.stream(_CHUNK_BYTES, decode_content=True):
            parts.append(part)
            size += len(part)
            if size > _MAX_ANSWER_BYTES:
                raise self._error(
                    f"answered with more than {_MAX_ANSWER_BYTES} bytes",
                    code="MANAGER_ANSWER",
                    hint="check that the target is a Manager's base URL",
                )
        return b"".join(parts)

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
        from urllib3 import exceptions as kinds

        cause = error.__context__
        why = getattr(cause, "strerror", None) or str(error)
        if isinstance(error, kinds.NameResolutionError):
            return self._error(f"has no address: {why}", code="UNRESOLVED_HOST", hint="check the host name")
        if isinstance(error, kinds.SSLError):
            hint = "check the scheme: the port may speak plain HTTP"
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                hint = "install its authority's certificate, or name it by the variable SSL_CERT_FILE"
            return self._error(f"failed the TLS handshake: {error}", hint=hint)
        if isinstance(error, kinds.TimeoutError) and not isinstance(error, kinds.NewConnectionError):
            return self._too_late()
        if isinstance(error, (kinds.DecodeError, kinds.IncompleteRead, kinds.InvalidChunkLength)):
            return self._error(f"sent an incomplete or invalid answer: {error}", code="MANAGER_ANSWER", hint=_LOG_HINT)
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
            if not self._has_secret:
                hint = "it requires credentials: set manager_secret_id and manager_secret_key"
            return self._error(f"refused the request with HTTP {status}", code="MANAGER_REFUSED", hint=hint)
        code, hint = "MANAGER_URL", "check that the target is a Manager's base URL"
        if status >= _SERVER_ERROR or status in _BUSY:
            code, hint = "MANAGER_ANSWER", _LOG_HINT
        return self._error(f"answered with HTTP {status}, starting {_start(body)}", code=code, hint=hint)

    def _error(self, what: str, *, code: str = "DISCOVERY", hint: str = "") -> DiscoveryError:
        return DiscoveryError(f"the Manager at {self._url} {what}", code=code, hint=hint, details={"url": self._url})


def _start(body: bytes) -> str:
    text = body[: 4 * _SHOWN].decode("utf-8", "replace").strip()
    return repr(text[:_SHOWN] + ("..." if len(text) > _SHOWN else ""))
