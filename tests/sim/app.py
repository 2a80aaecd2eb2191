"""A producer on virtual time, its callers, and what they were told."""

from __future__ import annotations

import random
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from dataproxy import Producer
from dataproxy._core.producer.ingest.stream import Stream
from dataproxy._core.producer.results.dispatch import let_go, next_batch
from dataproxy.errors import BufferFullError, ClosedError, DeliveryError
from dataproxy.outcomes import Sent
from dataproxy.producer import lifecycle
from tests.campaigns.histories.bodies import make_body, read_body
from tests.campaigns.histories.history import Accounting, Close, Result, Told
from tests.native.probe_sim import Client
from tests.native.probe_streams import table

__all__ = ["CONTENT_CODES", "App", "outcome_of", "simulated"]

_OUTCOMES = {"DeliveryFailed": "failed", "DeliveryExpired": "expired", "DeliveryDropped": "dropped"}
_BEGIN_MS = 1_700_000_000_000
#: Of a hub that does not take a message.
CONTENT_CODES = (104, 123)
UNKNOWN_CODES = (113, 115, 121)  # of a group or stream that a proxy does not know


def outcome_of(error: DeliveryError) -> str:
    """Return the outcome that an error of a result stands for."""
    return _OUTCOMES[type(error).__name__]


def _maybe(error: DeliveryError) -> bool:
    return bool(error.details["maybe_delivered"])


@contextmanager
def simulated() -> Iterator[None]:
    """Let nothing start a thread (the simulator does their work), and let lists of proxies keep their order."""
    with (
        patch.object(threading.Thread, "start", lambda self: None),
        patch("dataproxy.producer.producer.proxy_order", lambda proxies, seed: proxies),
    ):
        yield


class App:
    """Send numbered messages through one producer and keep every result."""

    def __init__(
        self, name: str, target: str, options: dict[str, Any], seed: int, wall_offset_ms: int, guilty: float = 0.0
    ) -> None:
        rng = random.Random(f"app {seed}")
        first_seq = random.Random(seed).randrange(1 << 32)
        self.name = name
        self.options = options
        self.limit = float(options["delivery_timeout"])
        heard: dict[str, Any] = {"on_delivery": print} if rng.random() < 0.5 else {}  # called by nobody: see ``tell``
        with simulated():
            self.producer = Producer(target, group_id="g", undelivered_bytes=1 << 26, **options, **heard)
        lifecycle.unregister(self.producer)
        self.client = Client(self.producer, seed=seed * 4 + 1, first_seq=first_seq, wall_offset_ms=wall_offset_ms)
        self.rng = rng
        self.listens = bool(heard)
        self.heard = 0  # messages that on_delivery would have been called for
        self.patience = rng.choice((0.0, 0.02, 0.5))  # how often, after results came, it is called
        if rng.random() < 0.7:  # a pack takes a KiB and, when it is opened, a quarter more than its messages
            size = options["buffer_bytes"]
            self.client.bound_memory(
                2 * size + rng.choice((16 << 10, 64 << 10)), size // 8 + rng.choice((8 << 10, 40 << 10))
            )
        self.client.hold_bodies(random.Random(f"hold {seed}").choice((1, 100, 300, 4096)))
        self.held = self.producer.stream("s0")
        self.sequence = 0
        widths = (0, 0, 400, 900) if options.get("protocol") == "http" else (0,)
        self.wide = random.Random(f"wide {seed}").choice(widths)
        self.guilty = guilty  # share of messages that every hub refuses
        self.marks = random.Random(seed ^ 0x6111)
        self.codes: dict[int, int] = {}  # sequence number of a marked message -> the code
        self.told: dict[int, Told] = {}
        self.waiting: dict[int, Any] = {}  # first sequence number -> (Delivery or BatchDelivery, messages)
        self.accounting: list[Accounting] = []
        self.closes: list[Close] = []
        self.refused = 0
        self.closed = False
        self.stopped = False

    def send(self, now: float, kind: str, args: tuple[Any, ...]) -> None:
        """Do what one action says."""
        many, size, stream, key, when, attrs, own_id = args
        first = self.sequence
        self.sequence += many
        bodies = [make_body(self.name, first + i, key, size, self._mark(first + i)) for i in range(many)]
        extra: dict[str, Any] = {}
        if key:
            extra["key"] = key
        if attrs:
            extra["attrs"] = attrs
        if when is not None:
            extra["dt"] = _BEGIN_MS + when
        if kind == "batch":
            self._batch(now, stream, first, bodies, key, extra)
            return
        for i, body in enumerate(bodies):
            more = {**extra, "message_id": f"{self.name}-{first + i}"} if own_id else extra
            try:
                if kind == "nowait":
                    self._way(stream).send_nowait(body, **more)
                    delivery = None
                else:
                    delivery = self._way(stream).send(body, **more)
            except (BufferFullError, ClosedError) as error:
                self._refuse(error)
                continue
            self._accepted(now, first + i, body, key, stream, delivery)

    def _mark(self, sequence: int) -> bytes:
        """Return what makes every hub refuse a message, or nothing; over HTTP also what grows when it is encoded."""
        wide = b"=" * self.wide
        if self.guilty == 0.0 or self.marks.random() >= self.guilty:
            return wide
        code = self.codes[sequence] = self.marks.choice(CONTENT_CODES)
        return b"!refuse-%d!" % code + wide

    def _refused(self, sequence: int, error: DeliveryError) -> int:
        """Return the code that a message was refused with for its content.  Lines share the fate of all."""
        lines = self.options["message_type"] in (2, 3) or self.options.get("joined_lines")
        lines = lines or self.options.get("protocol", "tcp") != "tcp"
        one = outcome_of(error) == "failed" and error.code in CONTENT_CODES and not lines
        return int(error.code) if one else 0

    def _way(self, stream: str) -> Stream:
        """Return a handle: of one stream it is held, of the other, whose attributes are wide, new for each call."""
        wide = {} if self.options.get("protocol") == "http" else {"wide": "w" * 700}
        return self.held if stream == "s0" else self.producer.stream("s1", attrs=wide)

    def limit_frames(self, limit: int) -> None:
        """Follow a Manager that names ``limit``, 0 for none; a body in a form may take three times its bytes."""
        self.producer._limit_frames(limit * 4 if self.options.get("protocol") == "http" else limit)

    def _batch(self, now: float, stream: str, first: int, bodies: list[bytes], key: str, extra: dict[str, Any]) -> None:
        try:
            delivery = self._way(stream).send_batch(bodies, **extra)
        except (BufferFullError, ClosedError) as error:
            self._refuse(error)
            for i in range(int(error.details.get("accepted", 0)) if isinstance(error, BufferFullError) else 0):
                self._accepted(now, first + i, bodies[i], key, stream, None)
            return
        for i, body in enumerate(bodies):
            self._accepted(now, first + i, body, key, stream, delivery if i == 0 else None, watched=True)
        self.waiting[first] = (delivery, len(bodies))

    def _refuse(self, error: Exception) -> None:
        if isinstance(error, ClosedError) and not self.closed:
            raise error
        self.refused += 1

    def _accepted(
        self, now: float, sequence: int, body: bytes, key: str, stream: str, delivery: Any, *, watched: bool = False
    ) -> None:
        watched = watched or delivery is not None
        told = Told(self.name, sequence, key, zlib.crc32(body), now, (), watched, stream, self.limit)
        self.told[sequence] = told._replace(guilty=self.codes.get(sequence, 0))
        if delivery is not None and sequence not in self.waiting:
            self.waiting[sequence] = (delivery, 1)

    def collect(self, now: float) -> None:
        """Note every result that has come."""
        for first in [first for first, (delivery, _) in self.waiting.items() if delivery.done()]:
            delivery, many = self.waiting.pop(first)
            if hasattr(delivery, "skipped"):
                self._batch_result(now, first, many, delivery.result(0))
            else:
                self._result(now, first, delivery)

    def _result(self, now: float, sequence: int, delivery: Any) -> None:
        try:
            good = delivery.result(0)
            result = Result("sent" if isinstance(good, Sent) else "delivered", now, id=good.id)
        except DeliveryError as error:
            self._tell(
                sequence, Result(outcome_of(error), now, _maybe(error), error.id, self._refused(sequence, error)), error
            )
            return
        self._tell(sequence, result)

    def _has_had_room(self) -> bool:
        """Tell whether no message ever found the buffer full: then what waits for unknown streams never gives way."""
        return self.refused == 0 and self.options["on_full"] in ("block", "raise")

    def _batch_result(self, now: float, first: int, many: int, result: Any) -> None:
        failures = {}
        for failure in result.failures:
            for i in range(failure.first, failure.first + failure.messages):
                failures[i] = failure.error
        assert result.accepted == many, result
        good = "sent" if self.options.get("ack") == "none" else "delivered"
        assert result.sent == (result.accepted - sum(f.messages for f in result.failures) if good == "sent" else 0)
        for i in range(many):
            error = failures.get(i)
            if error is None:
                self._tell(first + i, Result(good, now))
            else:
                refused = self._refused(first + i, error)
                self._tell(first + i, Result(outcome_of(error), now, _maybe(error), refused=refused), error)

    def _tell(self, sequence: int, result: Result, error: DeliveryError | None = None) -> None:
        assert error is None or error.code != "ENCODE", "what was accepted could not be sent"
        told = self.told[sequence]
        if error is not None and error.code in UNKNOWN_CODES and result.outcome == "failed" and self._has_had_room():
            waited = result.at - told.accepted_at
            assert waited >= self.options["unknown_group_timeout"], f"{sequence} failed as unknown after {waited} s"
        self.told[sequence] = told._replace(results=(*told.results, result))

    def tell(self) -> None:
        """Do what the dispatcher does: take what waits for ``on_delivery``, and let go of it."""
        batch = next_batch(self.producer, 0.0)
        while batch is not None and batch[0]:
            for _, _, _, count, _, _, size in batch[0]:
                self.heard += count
                let_go(self.producer, size)
            batch = next_batch(self.producer, 0.0)

    def memory(self) -> str:
        """Return what is wrong with what is allocated now, empty when nothing is."""
        packs, spare, shed, most, results, beyond, most_results = self.client.memory()
        if packs > most + shed or (spare and packs + spare > most):
            return f"packs take {packs} bytes ({shed} given up) and spare ones {spare}: more than {most}"
        if self.options["on_full"] == "block":  # of what was under way, and cannot be left out
            results -= beyond
        return f"{results} bytes of results wait, more than {most_results}" if results > most_results else ""

    def left(self) -> str:
        """Return what is still allocated, or was not told, when all has its result; empty when nothing is."""
        self.tell()
        c = self.producer._counts()
        untold = sum(c["untold"].values())
        settled = c["delivered"] + c["sent"] + c["failed"] + c["expired"] + c["dropped"]
        if self.listens and self.heard + untold != settled:
            return f"on_delivery heard of {self.heard} messages, {untold} are untold, {settled} have results"
        if untold and self.options["on_full"] == "block":
            return f"{untold} messages are untold, and senders wait"
        taken = (c["memory_bytes"], c["results_bytes"])
        return f"{taken} bytes of packs and results are left" if any(taken) else ""

    def look(self, now: float, *, final: bool = False) -> Accounting:
        """Note the producer's own counts."""
        c = self.producer._counts()
        accounting = Accounting(
            self.name, now, c["accepted"], c["delivered"], c["failed"], c["expired"], c["dropped"],
            c["open"] + c["in_flight"], c["buffered_bytes"], self.options["buffer_bytes"], final, c["sent"],
        )  # fmt: skip
        self.accounting.append(accounting)
        return accounting

    def undelivered(self) -> str:
        """Take what was not delivered out of the producer; return what is wrong with it, empty when nothing is."""
        c = self.producer._counts()
        count = 0
        for message in self.producer.undelivered():
            said = read_body(message.body)
            told = self.told.get(said.sequence) if said is not None else None
            if told is None or told.digest != zlib.crc32(message.body):
                return f"{message.id} came back as {message.body[:60]!r}, which nobody sent"
            if message.stream_id != told.stream or any(r.outcome in ("delivered", "sent") for r in told.results):
                return f"{message.id} came back of {message.stream_id}, and was told {told}"
            refused = self._refused(said.sequence, message.error)
            if refused and refused != told.guilty:
                return f"{message.id} was refused with code {refused}, hubs refuse it with {told.guilty or 'none'}"
            count += 1
        lost = c["failed"] + c["expired"] + c["dropped"]
        if count + c["not_kept"] != lost:
            return f"{count} of {lost} came back, {c['not_kept']} were not kept"
        left = set(table(self.producer)) - {("s0", "")}  # everything has its result and was taken back
        return f"streams that nobody holds are kept: {left}" if left else ""

    def leave(self) -> None:
        """Free the core; its executors have ended."""
        self.producer._end_completions()
        self.client.leave()
