"""The hub's HTTP API as the commands use it."""

from __future__ import annotations

import base64
import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dataproxy.cli.hub.eventstream import Message, lines, messages
from dataproxy.cli.hub.overtaken import Log, Overtaken
from dataproxy.errors import ConfigError, DataProxyError, HubError, TransportError
from dataproxy.problems import shown
from dataproxy.shown import json_text, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from urllib3 import BaseHTTPResponse

    from dataproxy.producer.discovery.calls import Calls

__all__ = ["DEFAULT_HUB", "HubClient", "find_token"]

DEFAULT_HUB: Final = "http://127.0.0.1:8083"

_THREAD: Final = "dataproxy-hub-call"
_TIMEOUT_S: Final = 30.0  # more than the hub's pause between comments of a stream
_WHOLE_S: Final = 120.0  # for all of an answer
_MOST_BYTES: Final = 64 << 20  # of an answer: a page, or one record of the largest frame that a hub takes
_AGAIN_S: Final = 0.5  # until a stream that has ended is opened again; twice as long each time that this fails
_AGAIN_MOST_S: Final = 8.0
_PART_BYTES: Final = 1 << 16
_PAGE_RECORDS: Final = 5000
_PAGE_STREAMS: Final = 10_000
_STREAM: Final = "text/event-stream"
_CHECK: Final = "check that --hub is the Manager port of a dataproxy hub"
_OK: Final = 200
_FORBIDDEN: Final = 403
_BROKEN: Final = 500
_FOR_A_WHILE: Final = (429, 502, 503, 504)  # of a hub that has no room now, or a proxy before one that starts again
#: For each name of this machine, the addresses that a hub may listen on.
_THIS_MACHINE: Final[dict[str, tuple[str, ...]]] = {
    "127.0.0.1": ("127.0.0.1", "0.0.0.0", "::"),
    "::1": ("::1", "::"),
    "localhost": ("127.0.0.1", "::1", "0.0.0.0", "::"),
}


def find_token(url: str) -> str:
    """Return the token of the hub at ``url``, "" if it cannot be found on this machine.

    A token from this user's folder belongs to a hub on this machine, and is never sent to another machine.
    """
    from urllib.parse import urlsplit

    from dataproxy.hub.tokenfile import read_token, runtime_file

    if given := os.environ.get("DATAPROXY_HUB_TOKEN", "").strip():
        return given
    if file := os.environ.get("DATAPROXY_HUB_TOKEN_FILE", ""):
        return read_token(Path(file))
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    hosts = _THIS_MACHINE.get(parts.hostname or "", ()) if port else ()
    return next(filter(None, (read_token(runtime_file(host, port or 0)) for host in hosts)), "")


class _Answered(NamedTuple):
    """What a hub has answered: its body, or the stream that it goes on with."""

    status: int
    body: bytes
    stream: BaseHTTPResponse | None = None


class HubClient:
    """Ask a hub by HTTP.  ``url`` is that of its Manager server; credentials are its Manager's.

    Without credentials the hub's token is sent, if it can be found: in ``DATAPROXY_HUB_TOKEN``, in the file that
    ``DATAPROXY_HUB_TOKEN_FILE`` names, or in the file that ``dataproxy hub`` of the same user on this machine wrote.
    Raises ConfigError if ``url`` is not a URL, or if the credentials or the token cannot be sent.
    """

    def __init__(self, url: str, secret_id: str = "", secret_key: str = "") -> None:
        if not url.startswith(("http://", "https://")):
            raise ConfigError(f"hub {without_secrets(url)!r} is not a URL", hint=f"write e.g. {DEFAULT_HUB}")
        if any(mark in url for mark in "@?#"):
            raise ConfigError(
                f"hub {without_secrets(url)!r} holds more than an address",
                hint="give its base URL, and credentials as --secret-id and --secret-key",
            )
        import urllib3

        try:
            named = bool(urllib3.util.parse_url(url).host)
        except urllib3.exceptions.LocationParseError:
            named = False
        if not named:
            raise ConfigError(f"hub {without_secrets(url)!r} names no host and port", hint=f"write e.g. {DEFAULT_HUB}")
        self._url = url.rstrip("/")
        self._calls: Calls | None = None
        self._headers = {}
        if secret_id:
            try:
                pair = base64.b64encode(f"{secret_id}:{secret_key}".encode()).decode("ascii")
            except UnicodeEncodeError:
                raise ConfigError("the credentials are not valid UTF-8", hint="check both options") from None
            self._headers["authorization"] = f"Basic {pair}"
        elif token := find_token(self._url):
            self._headers["authorization"] = _bearer(token)

    def get(self, path: str, fields: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the JSON object at ``path``.

        Raises TransportError when the hub cannot be reached, HubError for any other answer.
        """
        return self._answer(path, "GET", self._headers, fields=dict(fields or {}))

    def change(self, method: str, path: str, body: object = None, **fields: str) -> dict[str, Any]:
        """Send what changes something, with the hub's token, and return the JSON object of the answer.

        Raises ConfigError if the token cannot be found or sent, and what ``get`` raises.
        """
        token = find_token(self._url)
        if not token:
            raise ConfigError(
                f"changes at {self._url} need the hub's token, which is not on this machine",
                hint="set DATAPROXY_HUB_TOKEN to what the hub printed at its start",
            )
        headers = {"authorization": _bearer(token), "content-type": "application/json"}
        from urllib.parse import urlencode

        shown = f"{path}?{urlencode(fields)}" if fields else path
        data = None if body is None else json_text(body).encode()
        return self._answer(shown, method, headers, body=data)

    def _answer(
        self, path: str, method: str, headers: dict[str, str], *, again: bool = False, **request: Any
    ) -> dict[str, Any]:
        answered = self._answered(path, method, headers, **request)
        answer = _object(answered.body, lambda found: _Answer(found, lambda: self._refused(path, answered)))
        if answered.status != _OK or answer is None or answer.get("success") is False:
            raise self._refused(path, answered, again=again)
        return answer

    def rows(self, path: str, name: str, **fields: str) -> Iterator[dict[str, Any]]:
        """Yield the objects under ``name`` of all pages at ``path``.  Raises what ``get`` raises."""
        start: str | None = ""
        while start is not None:
            page = self.get(path, {"start": start, **fields})
            yield from self.objects(page, name)
            start = self._following(page, start)

    def objects(self, page: dict[str, Any], name: str) -> list[dict[str, Any]]:
        """Return the objects under ``name`` of a page.  Raises HubError."""
        found = page[name]
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise HubError(f"the hub at {self._url} sent no list of objects as {name!r}: {shown(found)}", hint=_CHECK)
        return found

    def _following(self, page: dict[str, Any], start: str) -> str | None:
        """Return where the page after one begins, None behind the last.  Raises HubError."""
        found = page["next"]
        if found is None or (isinstance(found, str) and found != start):
            return found
        raise self.no_place(found)

    def no_place(self, found: object) -> HubError:
        """Return the error for something that the hub gave as the place of a next page."""
        return HubError(f"the hub at {self._url} sent no place of a next page: {shown(found)}", hint=_CHECK)

    def _refused(self, path: str, answered: _Answered, *, again: bool = False) -> DataProxyError:
        """Return the error for an answer that is not the one that was asked for.

        ``again``: who asks comes again, and for him a hub that has no room for now is one that cannot be reached.
        """
        answer = _object(answered.body)
        reason = None if answer is None else answer.get("errMsg")
        hint = _CHECK
        if reason is not None and _OK < answered.status < _BROKEN:
            hint = ""
        if answer is not None and reason is not None and answered.status >= _BROKEN:
            behind = answer.get("next")
            hint = "see the hub's log" if behind is None else f"continue with --start {behind}"
        if answered.status == _FORBIDDEN:
            hint = "give --secret-id and --secret-key, or DATAPROXY_HUB_TOKEN"
        text = f"the hub at {self._url} answered {path} with HTTP {answered.status}: {reason or answered.body[:80]!r}"
        return TransportError(text) if again and answered.status in _FOR_A_WHILE else HubError(text, hint=hint)

    def _answered(self, path: str, method: str, headers: dict[str, str], **request: Any) -> _Answered:
        """Return an answer, whatever it says; all of it has come, unless it is a stream.

        Raises TransportError when the hub cannot be reached, or does not end its answer; HubError for one that is too
        large; ConfigError for a request that is no text.
        """
        import urllib3

        from dataproxy.producer.discovery.calls import Calls, TooLargeError
        from dataproxy.producer.discovery.limited import within

        calls, used = self._calls or Calls(most_bytes=_MOST_BYTES), self._calls is not None
        self._calls = None
        try:
            # On a thread: no timeout covers name service together with headers and a body that come byte by byte.
            found = within(_THREAD, _WHOLE_S, lambda: self._ask(calls, path, method, headers, request), calls.end)
        except TimeoutError:
            raise TransportError(
                f"the hub at {self._url} gave no complete answer to {path} within {_WHOLE_S:g} s",
                hint="check that it runs, the network, and --hub",
            ) from None
        except TooLargeError as error:
            raise HubError(f"the hub at {self._url} answered {path} with {error}", hint=_CHECK) from None
        except UnicodeEncodeError as error:  # of what is asked for: an argument that is no text
            raise ConfigError(f"{shown(error.object)} is not valid UTF-8", hint="check the arguments") from None
        except (urllib3.exceptions.HTTPError, OverflowError, ValueError) as error:  # the last two: sizes that are none
            if used and method == "GET" and isinstance(error, urllib3.exceptions.ProtocolError):
                return self._answered(path, method, headers, **request)  # it was closed between two requests
            why = getattr(error.__context__, "strerror", None) or str(error)
            raise TransportError(
                f"the hub at {self._url} cannot be reached: {why}", hint="check that it runs, and --hub"
            ) from None
        self._calls = calls
        return found

    def _ask(self, calls: Calls, path: str, method: str, headers: dict[str, str], request: dict[str, Any]) -> _Answered:
        response = calls.pool.request(
            method, self._url + path, headers=headers, timeout=_TIMEOUT_S, redirect=False, preload_content=False,
            decode_content=False, **request,
        )  # fmt: skip
        if _is_stream(response):
            return _Answered(response.status, b"", response)
        return _Answered(response.status, calls.read(response))

    def follow(self, path: str, after: int, tell: Callable[[str], None]) -> Iterator[Message]:
        """Yield the messages of a stream of events, from those behind the number ``after`` on, without end.

        A connection that ends is made again, and the stream goes on behind the last message.  A hub that could be
        reached before, and cannot now, or has no room, is asked again and again; ``tell`` gets a line when that begins
        and one when it is over.  Raises TransportError when the hub cannot be reached at first, HubError for any other
        answer that is no stream.
        """
        import time

        import urllib3

        last, patience = "", _Patience(self._url, tell)
        while True:
            try:
                stream = self._stream(path, after, last, again=patience.reached)
            except TransportError as error:
                patience.wait(error)
                continue
            patience.answered()
            # A connection that breaks ends the stream; whether the hub is there is seen with the next one.
            with stream, contextlib.suppress(urllib3.exceptions.HTTPError):
                for message in messages(lines(self._parts(stream))):
                    if not (message.id.isascii() and message.id.isprintable()):  # no header can have it
                        raise self.no_event(message)
                    last = message.id or last
                    yield message
            time.sleep(_AGAIN_S)

    def _stream(self, path: str, after: int, last: str, *, again: bool) -> BaseHTTPResponse:
        """Open a stream of events behind the id ``last``.

        Raises TransportError when the hub cannot be reached, or (``again``) has no room for now; HubError for any other
        answer that is no stream.
        """
        headers = {**self._headers, "accept": _STREAM, **({"last-event-id": last} if last else {})}
        answered = self._answered(path, "GET", headers, fields={"after": str(after)})
        if answered.stream is not None:
            return answered.stream
        raise self._refused(path, answered, again=again)

    def _parts(self, stream: BaseHTTPResponse) -> Iterator[bytes]:
        """Yield what comes, as it comes: whoever waits for lines has to bound them.  Raises HubError."""
        from dataproxy.producer.discovery.calls import TooLargeError

        try:
            while part := stream.read1(_PART_BYTES):
                yield part
                if self._calls is not None:
                    self._calls.renew()
        except TooLargeError as error:
            raise HubError(f"the hub at {self._url} went on with {error} between two events", hint=_CHECK) from None

    def _same_store(self, found: object, before: object) -> object:
        """Return the name of a page's store.  Raises HubError if it is another one than that of the page before."""
        if before not in (None, found):
            raise HubError(
                f"the hub at {self._url} has another store now, in which places of the one before mean nothing",
                hint="begin again, without --start; a hub in memory loses its store when it ends",
            )
        return found

    def no_event(self, found: object) -> HubError:
        """Return the error for something that the hub gave as an event, or as a message of a stream of them."""
        return HubError(
            f"the hub at {self._url} sent what is no event: {shown(found)}",
            hint=_CHECK,
        )

    def counts(self) -> list[dict[str, Any]]:
        """Return group, stream, entries, records and bytes of each stream.  Raises what ``get`` raises."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for row in self.rows("/hub/counts", "streams", limit=str(_PAGE_STREAMS)):
            group, stream = str(row["group"]), str(row["stream"])
            known = found.setdefault(
                (group, stream), {"group": group, "stream": stream, "entries": 0, "records": 0, "bytes": 0}
            )
            for name in ("entries", "records", "bytes"):
                known[name] += self._number(row[name])
        return [row for _, row in sorted(found.items())]

    def _number(self, found: object) -> int:
        if isinstance(found, int):
            return found
        raise HubError(f"the hub at {self._url} sent no count: {shown(found)}", hint=_CHECK)

    def _bytes(self, found: object) -> bytes:
        if isinstance(found, str):
            with contextlib.suppress(ValueError):
                return base64.b64decode(found)
        raise HubError(f"the hub at {self._url} sent no body of a message: {shown(found)}", hint=_CHECK)

    def records(
        self, group: str, stream: str, start: int | str, tell: Callable[[str], None] | None = None
    ) -> Iterator[dict[str, Any] | None]:
        """Yield records with ``body`` as bytes, and None whenever there are no more records for now.

        ``start`` is an offset, or a place in the hub's form (``START[,PARTITION:OFFSET[.RECORDS]]...``).  Raises what
        ``get`` raises; HubError if the hub has another store than before.  With ``tell`` a hub that was reached, and
        cannot be now, or has no room, is asked again as by ``follow``; and ``tell`` gets a line, once in a while, with
        the number of requests that were dropped unread.
        """
        place, store = str(start), None
        patience = None if tell is None else _Patience(self._url, tell)
        overtaken = None if tell is None else Overtaken(group, tell)
        while True:
            fields = {"group": group, "stream": stream, "start": place, "limit": str(_PAGE_RECORDS)}
            again = patience is not None and patience.reached
            try:
                page = self._answer("/hub/records", "GET", self._headers, again=again, fields=fields)
                logs = [] if overtaken is None else self._logs(group, again=again)
            except TransportError as error:
                if patience is None:
                    raise
                patience.wait(error)
                continue
            if patience is not None:
                patience.answered()
            store = self._same_store(page.get("store"), store)
            records = self.objects(page, "records")
            if overtaken is not None:
                overtaken.look(logs, [(self._number(one["partition"]), self._number(one["offset"])) for one in records])
            for record in records:
                record["body"] = self._bytes(record["body"])
                yield record
            if not page["records"]:
                yield None
            found = page["next"]
            if not isinstance(found, str) or (page["records"] and found == place):
                raise self.no_place(found)
            place = found

    def _logs(self, group: str, *, again: bool) -> list[Log]:
        """Return the logs of a group.  Raises what ``get`` raises."""
        found = self._answer("/hub/logs", "GET", self._headers, again=again, fields={"group": group})
        names = ("partition", "first_offset", "next_offset")
        return [Log(*(self._number(row[name]) for name in names)) for row in self.objects(found, "logs")]


class _Patience:
    """Wait for a hub that was reached, and cannot be now; ``tell`` gets a line when that begins, and one at its end."""

    def __init__(self, url: str, tell: Callable[[str], None]) -> None:
        self._url, self._tell = url, tell
        self.reached = self._away = False
        self._pause = _AGAIN_S

    def wait(self, error: TransportError) -> None:
        """Wait a while after an error, longer each time; raise it if the hub was never reached."""
        import time

        if not self.reached:
            raise error
        if not self._away:
            self._away = True
            self._tell(f"{error.message}; it is asked again until it answers")
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, _AGAIN_MOST_S)

    def answered(self) -> None:
        """Note that the hub has answered."""
        if self._away:
            self._tell(f"the hub at {self._url} answers again")
        self.reached, self._away, self._pause = True, False, _AGAIN_S


def _bearer(token: str) -> str:
    """Return a header with the hub's token.  Raises ConfigError, without the token, if no header can have it."""
    if not (token.isascii() and token.isprintable()):
        raise ConfigError(
            "the hub's token has characters that an HTTP header cannot have",
            hint="check DATAPROXY_HUB_TOKEN, or the file that DATAPROXY_HUB_TOKEN_FILE names",
        )
    return f"Bearer {token}"


class _Answer(dict[str, Any]):
    """Hold an object of an answer; to ask for a name that it has not got raises ``error()``: it is another server's."""

    def __init__(self, found: dict[str, Any], error: Callable[[], DataProxyError]) -> None:
        super().__init__(found)
        self._error = error

    def __missing__(self, name: str) -> Any:
        raise self._error()


def _is_stream(response: BaseHTTPResponse) -> bool:
    return response.status == _OK and response.headers.get("content-type", "") == _STREAM


def _object(body: bytes, made: Callable[[dict[str, Any]], dict[str, Any]] | None = None) -> dict[str, Any] | None:
    """Return the JSON object of an answer, None if it is none; ``made`` gives each object in it its class."""
    try:
        answer = json.loads(body.decode(), object_hook=made)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None
