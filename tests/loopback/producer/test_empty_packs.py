"""No pack is without a message, and no walk over a pack leaves its bytes, wherever a full buffer stops a call.

The proxies take nothing or answer late, so that batches meet a full buffer with packs in every state.
"""

from __future__ import annotations

import contextlib
from typing import Any

import pyarrow as pa
import pytest

import dataproxy
from dataproxy._core.producer.ingest.columnar.recordbatch import send_record_batch
from tests.support.scripted import Scripted, silent

MODES = ("block", "raise", "drop_newest", "drop_oldest")
TYPES = (7, 6, 5, 3, 2)


@pytest.fixture(scope="module")
def nowhere() -> str:
    with Scripted() as server:
        return server.target


def producer(target: str, **options: Any) -> dataproxy.Producer:
    """Return a producer that never waits long and keeps everything that is not delivered."""
    if options.get("on_full") == "block":
        options["max_block"] = 0.001
    return dataproxy.Producer(
        target, group_id="g", undelivered_bytes="16MiB",
        **{"linger": 60, "buffer_bytes": 2000, "connections": 1, **options},
    )  # fmt: skip


def ended(p: dataproxy.Producer) -> list[dataproxy.Undelivered]:
    """Close and return what comes back: each message that was not dropped on arrival, once."""
    report = p.close(0)
    lost = list(p.undelivered())
    assert report.balanced
    assert "ENCODE" not in report.errors
    assert len(lost) == report.accepted - report.delivered - report.not_kept
    stats = p.stats()
    assert (stats.in_flight_frames, stats.open, stats.undelivered_bytes, stats.buffered_bytes) == (0, 0, 0, 0)
    return lost


CALLS = {
    "batch": lambda p, bodies, extra: p.send_batch("s", bodies, **extra),
    "arrow": lambda p, bodies, extra: p.send_arrow("s", pa.array(bodies), **extra),
    "send": lambda p, bodies, extra: [p.send("s", body, **extra) for body in bodies],
    "nowait": lambda p, bodies, extra: [p.send_nowait("s", body, **extra) for body in bodies],
    "rows": lambda p, bodies, extra: send_record_batch(
        p, pa.record_batch({"v": bodies}), value=0, group="g", stream="s"
    ),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("message_type", TYPES)
@pytest.mark.parametrize("ordering", ["none", "key"])
@pytest.mark.parametrize("mode", MODES)
def test_what_finds_a_full_buffer_leaves_nothing_behind(nowhere, mode, ordering, message_type, call) -> None:
    """The second call has no room for its first message: what it opened for it must not stay."""
    p = producer(nowhere, on_full=mode, ordering=ordering, key_buckets=2, message_type=message_type)
    keys: tuple[dict[str, Any], ...] = ({},) if ordering == "none" or call == "rows" else ({"key": "a"}, {"key": "b"})
    p.send_batch("other", [b"x" * 1500])
    for extra in keys * 2:
        for body in (b"y" * 450, b"z" * 1600):
            with contextlib.suppress(dataproxy.BufferFullError):
                CALLS[call](p, [body], extra)
    assert {m.body[:1] for m in ended(p)} <= {b"x", b"y", b"z"}


@pytest.mark.parametrize("message_type", TYPES)
@pytest.mark.parametrize("mode", MODES)
def test_a_key_queue_that_becomes_idle_sends_no_empty_pack(mode, message_type) -> None:
    """Its first pack is out, the second call finds no room, and then the first one's result comes."""
    with Scripted(silent) as server:
        p = producer(
            server.target, on_full=mode, ordering="key", key_buckets=1, message_type=message_type, linger=0.001,
            delivery_timeout=0.05, ack_timeout=0.025, retry_budget=0,
        )  # fmt: skip
        first = p.send_batch("s", [b"x" * 1900], key="k")
        server.wait_frames(1)
        with contextlib.suppress(dataproxy.BufferFullError):
            p.send_batch("s", [b"y" * 500], key="k")
        assert first.result(20).delivered == 0
        with contextlib.suppress(dataproxy.FlushTimeout):
            p.flush(20)
        assert p.stats().in_flight_frames == 0
        assert {m.body[:1] for m in ended(p)} <= {b"x", b"y"}


@pytest.mark.parametrize("message_type", TYPES)
def test_a_batch_of_which_nothing_is_sent_opens_nothing(nowhere, message_type) -> None:
    p = producer(nowhere, message_type=message_type, ordering="key", null_value="skip", empty_value="skip")
    for bodies in ([], [b""], [None, None], [b"", None]):
        sent = p.send_arrow("s", pa.array(bodies, pa.binary()), key="k")
        assert (len(sent), sent.skipped) == (0, len(bodies))
    assert p.stats().open == 0
    assert ended(p) == []
