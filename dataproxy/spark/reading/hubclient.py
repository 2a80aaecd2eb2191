"""A hub's Manager server, asked from any machine: the hub's logs, and pages of their entries."""

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dataproxy.errors import ConfigError, HubError, RemoteProtocolError, StoreError, TransportError
from dataproxy.problems import shown
from dataproxy.producer.discovery.limited import within
from dataproxy.stored.entry import StoredEntry

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from dataproxy.producer.discovery.calls import Calls

__all__ = ["HubAddress", "HubClient", "LogState", "Page"]

_THREAD: Final = "dataproxy-hub-read"
#: Largest answer: a page, or one entry of the largest frame that a hub takes, with a margin.
_MOST_BYTES: Final = 64 << 20
#: Attempts for a request whose connection fails or whose answer breaks off; a page can be asked for again.
_TRIES: Final = 3
_PAUSE_S: Final = 0.2
_TURN_S: Final = 1.0  # longest wait, if a hub whose page slots are all taken says how long to wait
_OK, _FORBIDDEN, _BUSY, _BROKEN, _MISSING = 200, 403, 503, 500, 404
_SHOWN: Final = 300
_COLUMNS: Final = ("offset", "receive_ms", "data_time_ms", "stream_id", "source", "value")


@dataclass(frozen=True, slots=True)
class HubAddress:
    """Hold the URL of a hub's Manager server, the credentials, and the time limit of a request (s)."""

    url: str
    authorization: str = field(repr=False)
    timeout: float

    @classmethod
    def of(cls, url: str, token: str, secret_id: str, secret_key: str, timeout: float) -> HubAddress:
        """Return the address with a token, or with an id and a key.  Raises ConfigError if both are given."""
        if token and secret_id:
            raise ConfigError("options token and managerSecretId both authenticate at the hub", hint="keep one")
        if ":" in secret_id or not (token.isascii() and token.isprintable()):
            raise ConfigError(
                "the credentials contain characters that an HTTP header cannot hold",
                hint="check token and managerSecretId",
            )
        if secret_id:
            pair = base64.b64encode(f"{secret_id}:{secret_key}".encode()).decode("ascii")
            return cls(url, f"Basic {pair}", timeout)
        return cls(url, f"Bearer {token}" if token else "", timeout)


class LogState(NamedTuple):
    """Hold the stored offsets of a log: from ``first_offset`` up to, not including, ``next_offset``."""

    partition: int
    first_offset: int
    next_offset: int
    entries: int
    bytes: int
    offset: int | None  # of the time that was asked for


class Page(NamedTuple):
    """Hold entries of a range, the next offset, and the dropped offsets before them: ``lost``, FROM and TO."""

    entries: list[StoredEntry]
    follows: int
    lost: tuple[int, int] | None
    store: str


class HubClient:
    """Ask one hub.  One thread at a time."""

    def __init__(self, address: HubAddress) -> None:
        self._address = address
        self._headers = {"authorization": address.authorization} if address.authorization else {}
        self._calls: Calls | None = None

    def __repr__(self) -> str:
        return f"HubClient({self._address.url!r})"

    def close(self) -> None:
        """Close idle connections; may be called again."""
        calls, self._calls = self._calls, None
        if calls is not None:
            calls.close()

    def logs(self, group: str, time_ms: int | None = None) -> tuple[str, list[LogState]]:
        """Return the name of the hub's store and the logs of a group, with their offsets at ``time_ms`` if it is given.

        Raises TransportError, HubError, StoreError.
        """
        fields = {"group": group} | ({} if time_ms is None else {"time": str(time_ms)})
        body = self._get("/hub/logs", fields)
        try:
            answer = json.loads(body)
            store = answer["store"]
            rows = [
                LogState(
                    partition=int(row["partition"]),
                    first_offset=int(row["first_offset"]),
                    next_offset=int(row["next_offset"]),
                    entries=int(row["entries"]),
                    bytes=int(row["bytes"]),
                    offset=None if time_ms is None else int(row["offset"]),
                )
                for row in answer["logs"]
            ]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise self._no_page(body) from None
        if not isinstance(store, str):
            raise self._no_page(body)
        return store, sorted(rows)

    def entries(self, group: str, stream: str, partition: int, start: int, end: int) -> Page:
        """Return entries from offset ``start`` on, up to and not including ``end``; an empty page ends the range.

        Raises TransportError if the hub cannot be reached or the answer is not complete, RemoteProtocolError if the
        answer is not a page, HubError, StoreError.
        """
        fields = {"group": group, "partition": str(partition), "from": str(start), "to": str(end)}
        if stream:
            fields["stream"] = stream
        body = self._get("/hub/entries", fields)
        batch, facts = self._decode(body)
        try:
            follows, said, store = int(facts["next"]), int(facts["entries"]), facts["store"]
            lost = tuple(map(int, facts["lost"].split("-"))) if "lost" in facts else None
        except (ValueError, LookupError):
            raise self._no_page(body) from None
        if batch.num_rows != said:
            raise self._broken_off(f"it has {batch.num_rows} entries of {said}")
        columns = [batch.column(name).to_pylist() for name in _COLUMNS]
        entries = [
            StoredEntry(group, partition, offset, receive_ms, data_time_ms, stream_id, source, value)
            for offset, receive_ms, data_time_ms, stream_id, source, value in zip(*columns, strict=True)
        ]
        offsets = [entry.offset for entry in entries]
        first = start if lost is None else lost[-1]
        if lost is not None and not (len(lost) == 2 and start == lost[0] < lost[1] <= end):
            raise self._no_page(body)
        order = [first - 1, *offsets, follows]
        if not (start < follows <= end) or any(a >= b for a, b in pairwise(order)):
            raise self._no_page(body)
        if not stream and len(offsets) != follows - first:
            raise StoreError(
                f"the hub at {self._address.url} gave {len(offsets)} of the entries {first} to {follows - 1} of"
                f" partition {partition} of group {group!r}: some are missing",
                code="STORE_DAMAGED",
            )
        return Page(entries, follows, (lost[0], lost[1]) if lost is not None else None, store)

    def _decode(self, body: bytes) -> tuple[pa.RecordBatch, dict[str, str]]:
        """Return the one batch of a page and the metadata of its schema."""
        import pyarrow as pa

        try:
            with pa.ipc.open_stream(body) as stream:
                batch = stream.read_next_batch()
                facts = {key.decode(): value.decode() for key, value in (stream.schema.metadata or {}).items()}
            batch.validate(full=True)
            types = {name: pa.binary() if name == "value" else pa.string() for name in _COLUMNS[3:]}
            types |= dict.fromkeys(_COLUMNS[:3], pa.int64())
            if {field.name: field.type for field in batch.schema} != types or any(
                column.null_count for column in batch.columns
            ):
                raise self._no_page(body)
        except StopIteration:
            raise self._broken_off("it has a head alone") from None
        except (pa.ArrowException, OSError, ValueError):
            raise self._no_page(body) from None
        return batch, facts

    def _get(self, path: str, fields: Mapping[str, str]) -> bytes:
        """Return the body of an answer; the request is repeated if the hub is busy or the connection fails.

        Raises what ``entries`` raises.
        """
        import urllib3

        deadline = time.monotonic() + self._address.timeout
        tries = 0
        while True:
            try:
                status, wait, body = self._within(path, fields, deadline - time.monotonic())
            except urllib3.exceptions.HTTPError as error:
                self.close()
                tries += 1
                if tries == _TRIES or time.monotonic() + _PAUSE_S * tries > deadline:
                    raise self._unreachable(error) from None
                time.sleep(_PAUSE_S * tries)
                continue
            if status == _OK:
                return body
            if status != _BUSY or not wait or time.monotonic() + _TURN_S > deadline:
                raise self._refused(path, status, body)
            time.sleep(_TURN_S if not wait.isdecimal() else min(_TURN_S, int(wait[:2])))

    def _within(self, path: str, fields: Mapping[str, str], seconds: float) -> tuple[int, str, bytes]:
        """Return status, ``Retry-After`` and body of an answer that is complete within ``seconds``."""
        import urllib3

        from dataproxy.producer.discovery.calls import Calls, TooLargeError

        calls, self._calls = self._calls or Calls(most_bytes=_MOST_BYTES), None
        try:
            # On a thread: no timeout covers name service together with headers and a body that come byte by byte.
            answer = within(_THREAD, max(seconds, 0.0), lambda: self._ask(path, fields, calls, seconds), calls.end)
        except TimeoutError:
            raise TransportError(
                f"the hub at {self._address.url} gave no complete answer within {self._address.timeout:g} s",
                hint="check the target and the network, or raise requestTimeout",
            ) from None
        except urllib3.exceptions.HTTPError:
            raise
        except TooLargeError as error:
            raise RemoteProtocolError(
                f"the hub at {self._address.url} answered with {error}",
                hint="check that the target is the Manager port of a hub",
            ) from None
        except Exception as error:  # noqa: BLE001 - whatever a server sends, the error is ours
            raise RemoteProtocolError(
                f"the hub at {self._address.url} sent an answer that cannot be read: {error!r}",
                hint="check that the target is the Manager port of a hub",
            ) from None
        self._calls = calls
        return answer

    def _ask(self, path: str, fields: Mapping[str, str], calls: Calls, seconds: float) -> tuple[int, str, bytes]:
        import urllib3

        response = calls.pool.request(
            "GET",
            self._address.url + path,
            fields=dict(fields),
            headers=self._headers,
            timeout=urllib3.Timeout(total=max(seconds, 0.001)),
            redirect=False,
            preload_content=False,
        )
        body = calls.read(response)
        return response.status, response.headers.get("retry-after", ""), body

    def _unreachable(self, error: Exception) -> TransportError:
        cause = getattr(error, "reason", None) or error.__context__ or error
        why = getattr(cause, "strerror", None) or str(cause) or str(error)
        return TransportError(
            f"the hub at {self._address.url} cannot be reached, or ended in the middle of an answer: {why}",
            hint="check that it runs, and that executors reach the target too",
        )

    def _broken_off(self, why: str) -> TransportError:
        return TransportError(
            f"the answer of the hub at {self._address.url} is incomplete: {why}",
            hint="check HTTP proxies between Spark and the hub: one may cut off answers",
        )

    def _no_page(self, body: bytes) -> RemoteProtocolError:
        return RemoteProtocolError(
            f"the hub at {self._address.url} sent an answer that is not a page: {shown(body[:80])}",
            hint="check that the target is the Manager port of a hub of this version",
        )

    def _refused(self, path: str, status: int, body: bytes) -> HubError:
        try:
            answer: Any = json.loads(body)
            said = answer.get("errMsg") if isinstance(answer, dict) else None
        except (ValueError, RecursionError):
            said = None
        hint = "see the hub's log"
        if status == _FORBIDDEN:
            hint = "set the option token, or managerSecretId and managerSecretKey"
        elif status == _MISSING or said is None:
            hint = "check that the target is the Manager port of a hub of this version"
        words = repr(said[:_SHOWN]) if isinstance(said, str) else shown(body[:_SHOWN])
        kind = StoreError if status == _BROKEN else HubError
        return kind(
            f"the hub at {self._address.url} answered {path} with HTTP {status}: {words}",
            hint=hint,
            retriable=status == _BUSY,
        )
