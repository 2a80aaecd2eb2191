"""The batcher with every way of a full buffer against a model in plain Python, message by message.

The producer's proxies refuse every connection, so that nothing is ever written and every pack may be given up.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dataproxy
from dataproxy._core.producer.accumulate.keys import bucket_of
from tests.support.scripted import Scripted

STREAMS = ("a", "b", "c")
KEYS = ("", "", "k0", "k1")
BUCKETS = {"": None, **{key: bucket_of(key, 2) for key in KEYS if key}}
FRAMING = {7: 4, 6: 10, 5: 4, 3: 1, 2: 1}
KEY_QUEUE = tuple[str, int | None]  # a stream and the bucket of a key, None without one


@pytest.fixture(scope="module")
def nowhere() -> str:
    with Scripted() as server:
        return server.target


@dataclass
class Pack:
    opened: int
    key_queue: KEY_QUEUE
    items: list[int] = field(default_factory=list)  # numbers of messages
    size: int = 0


class Model:
    """What becomes of each message: ``fate`` by number, None while it is pending."""

    def __init__(
        self, mode: str, limit: int, most: int, batch_bytes: int, batch_messages: int, message_type: int
    ) -> None:
        self.framing = FRAMING[message_type]
        self.mode, self.limit, self.most = mode, limit, most
        self.batch_bytes, self.batch_messages = batch_bytes, batch_messages
        self.open: dict[KEY_QUEUE, Pack] = {}
        self.sealed: list[Pack] = []
        self.fate: list[str | None] = []
        self.opened = 0

    def packs(self) -> list[Pack]:
        return [*self.sealed, *self.open.values()]

    def fits(self, need: int, extra: tuple[int, int] = (0, 0)) -> bool:
        used = sum(p.size for p in self.packs()) - extra[0]
        held = sum(len(p.items) for p in self.packs()) - extra[1]
        return used + need <= self.limit and (not self.most or held < self.most)

    def oldest(self) -> list[Pack]:
        sealed = list(self.sealed)
        young = sorted(self.open.values(), key=lambda p: p.opened)
        out = []
        while sealed or young:
            source = sealed if sealed and (not young or sealed[0].opened < young[0].opened) else young
            out.append(source.pop(0))
        return out

    def make_room(self, need: int) -> bool:
        gone: list[Pack] = []
        for pack in self.oldest():
            if self.fits(need, (sum(p.size for p in gone), sum(len(p.items) for p in gone))):
                break
            gone.append(pack)
        if not self.fits(need, (sum(p.size for p in gone), sum(len(p.items) for p in gone))):
            return False
        for pack in gone:
            if pack in self.sealed:
                self.sealed.remove(pack)
            else:
                del self.open[pack.key_queue]
            for number in pack.items:
                self.fate[number] = "displaced"
        return True

    def seal(self, key_queue: KEY_QUEUE) -> None:
        self.sealed.append(self.open.pop(key_queue))

    def pack_for(self, key_queue: KEY_QUEUE, need: int) -> Pack:
        pack = self.open.get(key_queue)
        if pack is not None and pack.size + need > self.batch_bytes:
            self.seal(key_queue)
            pack = None
        if pack is None:
            self.opened += 1
            pack = self.open[key_queue] = Pack(self.opened, key_queue)
        return pack

    def append(self, pack: Pack, need: int) -> None:
        pack.items.append(len(self.fate))
        pack.size += need
        self.fate.append(None)

    def send_batch(self, key_queue: KEY_QUEUE, sizes: list[int]) -> bool:
        """Offer a batch; False when nothing of it is accepted."""
        needs = [size + self.framing for size in sizes]
        if self.mode == "raise" and not self.fits(sum(needs), (0, 1 - len(needs))):
            return False
        at = 0
        while at < len(needs):
            pack = self.pack_for(key_queue, 1)
            full = False
            while at < len(needs) and not full:
                if (pack.size + needs[at] > self.batch_bytes and pack.items) or len(pack.items) >= self.batch_messages:
                    break
                full = not self.fits(needs[at])
                if not full:
                    self.append(pack, needs[at])
                    at += 1
            whole = pack.size >= self.batch_bytes or len(pack.items) >= self.batch_messages
            if not pack.items:
                del self.open[key_queue]
            elif (at < len(needs) and not full) or whole:
                self.seal(key_queue)
            if full and not (self.mode == "drop_oldest" and self.make_room(needs[at])):
                while at < len(needs) and not self.fits(needs[at]):
                    self.fate.append("refused")
                    at += 1
        return True

    def send(self, key_queue: KEY_QUEUE, size: int) -> bool:
        """Offer one message; False when it is not accepted."""
        need = size + self.framing
        if not self.fits(need) and not (self.mode == "drop_oldest" and self.make_room(need)):
            if self.mode == "raise":
                return False
            self.fate.append("refused")
            return True
        pack = self.pack_for(key_queue, need)
        self.append(pack, need)
        if pack.size + need > self.batch_bytes or len(pack.items) >= self.batch_messages:
            self.seal(key_queue)
        return True


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.sampled_from(STREAMS), st.sampled_from(KEYS), st.integers(1, 150)),
        st.tuples(
            st.just("batch"), st.sampled_from(STREAMS), st.sampled_from(KEYS),
            st.lists(st.integers(1, 200), min_size=1, max_size=9),
        ),
        st.tuples(st.just("flush"), st.just(""), st.just(""), st.none()),
    ),
    min_size=1, max_size=80,
)  # fmt: skip


def check(p: dataproxy.Producer, model: Model, sent: list[tuple[int, dataproxy.Delivery]]) -> None:
    stats = p.stats()
    dropped = sum(fate is not None for fate in model.fate)
    assert (stats.accepted, stats.dropped, stats.pending) == (len(model.fate), dropped, len(model.fate) - dropped)
    assert stats.buffered_bytes == sum(pack.size for pack in model.packs()) <= model.limit
    assert stats.open == sum(len(pack.items) for pack in model.open.values())
    assert stats.in_flight_frames == len(model.sealed)
    assert stats.balanced
    assert all(delivery.done() == (model.fate[number] is not None) for number, delivery in sent)


def body(number: int, size: int) -> bytes:
    """Return a body that tells messages apart, without a line feed."""
    return bytes([32 + number % 200]) * size


def came_back(p: dataproxy.Producer, model: Model, sizes: list[int]) -> None:
    """Check that every message that was in a pack comes back whole, and none twice."""
    lost = Counter((m.body, m.error.code) for m in p.undelivered())
    codes = {"displaced": "DROPPED", None: "CLOSED"}
    assert lost == Counter(
        (body(number, sizes[number]), codes[fate]) for number, fate in enumerate(model.fate) if fate != "refused"
    )


def fates_of(batch: dataproxy.BatchDelivery) -> list[bool]:
    """Tell for each message of a batch whether it was dropped."""
    result = batch.result(0)
    out = [False] * result.accepted
    for failure in result.failures:
        for number in range(failure.first, failure.first + failure.messages):
            out[number] = isinstance(failure.error, dataproxy.DeliveryDropped)
    return out


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(("raise", "drop_newest", "drop_oldest")),
    st.integers(1024, 1100), st.sampled_from((0, 0, 1, 5, 20)), st.sampled_from((1, 200, 500)),
    st.sampled_from((2, 65535)), st.sampled_from((7, 6, 5, 3, 2)), STEPS,
)  # fmt: skip
def test_every_message_has_the_fate_of_the_model(
    nowhere, mode, limit, most, batch_bytes, batch_messages, message_type, steps
) -> None:
    model = Model(mode, limit, most, batch_bytes, batch_messages, message_type)
    sizes: list[int] = []  # of what was accepted, by number
    results: list[dataproxy.DeliveryResult] = []
    p = dataproxy.Producer(
        nowhere, group_id="g", linger=60, on_full=mode, buffer_bytes=limit, buffer_messages=most,
        batch_bytes=batch_bytes, batch_messages=batch_messages, on_delivery=results.append, ordering="key",
        key_buckets=2, message_type=message_type, undelivered_bytes="16MiB",
    )  # fmt: skip
    sent: list[tuple[int, dataproxy.Delivery]] = []
    batches: list[tuple[int, dataproxy.BatchDelivery]] = []
    try:
        for kind, stream, key, size in steps:
            key_queue = (stream, BUCKETS[key])
            extra = {"key": key} if key else {}
            if kind == "flush":
                with contextlib.suppress(dataproxy.FlushTimeout):
                    p.flush(0)
                for pack in sorted(model.open.values(), key=lambda pack: pack.opened):
                    model.seal(pack.key_queue)
                continue
            number = len(model.fate)
            expected = model.send(key_queue, size) if kind == "send" else model.send_batch(key_queue, size)
            try:
                if kind == "send":
                    sent.append((number, p.send(stream, body(number, size), **extra)))
                else:
                    bodies = [body(number + i, n) for i, n in enumerate(size)]
                    batches.append((number, p.send_batch(stream, bodies, **extra)))
                assert expected
                sizes += [size] if kind == "send" else size
            except dataproxy.BufferFullError:
                assert not expected
            check(p, model, sent)
    finally:
        report = p.close(0)
    fates = {number: isinstance(delivery.exception(0), dataproxy.DeliveryDropped) for number, delivery in sent}
    for number, batch in batches:
        fates.update(enumerate(fates_of(batch), number))
    assert [fates[number] for number in range(len(fates))] == [fate is not None for fate in model.fate]
    assert report.errors.get("DROPPED", 0) == report.dropped == sum(fate is not None for fate in model.fate)
    ids = [r.error.details["id"] for r in results]
    assert len(set(ids)) == len(ids) == len(model.fate)
    assert {delivery.id for _, delivery in sent} <= set(ids)
    came_back(p, model, sizes)
