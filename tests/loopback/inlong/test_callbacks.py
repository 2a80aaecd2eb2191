"""Callbacks of the module in the place of InLong's own Python SDK: one for each message that was not delivered."""

import threading
import time

import pytest

from dataproxy import Delivered
from dataproxy.hub import Hub
from inlong_dataproxy import Counts
from inlong_dataproxy.api import _own_address
from tests.support.scripted import Scripted, ack, refusal, silent

GROUP, STREAM = "b_app", "s_click"
LONG_MS = 30_000


def moody(peer, frame):
    """Refuse for good what says so, and take the rest."""
    peer.send(refusal(frame, 110) if b"bad" in frame else ack(frame))


@pytest.fixture
def server():
    with Scripted(moody) as server:
        yield server


def wait(event):
    assert event.wait(30)


def test_a_callback_gets_what_the_official_one_gets(server, begun):
    said, heard = [], threading.Event()

    def callback(*given):
        said.append(given)
        heard.set()
        return 0

    before = time.time_ns() // 1_000_000
    api = begun(server.target, ser_ip="10.1.2.3")
    assert api.send(GROUP, STREAM, "bad 中文", 3, callback) == 0
    after = time.time_ns() // 1_000_000
    wait(heard)
    ((group, stream, body, length, sent, address),) = said
    assert (group, stream, body, length, address) == (GROUP, STREAM, "bad 中文", 10, "10.1.2.3")
    assert before <= sent <= after
    assert [type(part) for part in said[0]] == [str, str, str, int, int, str]
    assert api.last_error.code == 110
    assert api.close_api(LONG_MS) == 0  # the callback has said it


def test_the_address_is_found_where_the_file_names_none(server, begun):
    said, heard = [], threading.Event()
    api = begun(server.target)
    assert api.send(GROUP, STREAM, "bad", 3, lambda *given: (said.append(given[5]), heard.set())) == 0
    wait(heard)
    assert said == [_own_address()]


def test_a_machine_without_a_network_is_127_0_0_1(monkeypatch):
    monkeypatch.setattr("inlong_dataproxy.api._NOWHERE", ("255.255.255.255", 9))  # refused without a right to broadcast
    assert _own_address() == "127.0.0.1"


def test_each_message_has_its_own_callback(server, begun):
    said, heard = {}, threading.Barrier(2)
    api = begun(server.target, enable_pack=False)

    def callback(name):
        def tell(_group, _stream, body, *_rest):
            said.setdefault(name, []).append(body)
            if name == "last":
                heard.wait(30)

        return tell

    for name in ("one", "two", "three"):
        assert api.send(GROUP, STREAM, f"bad {name}", 0, callback(name)) == 0
        assert api.send(GROUP, STREAM, f"good {name}", 0, callback("good")) == 0
    assert api.send(GROUP, STREAM, "bad last", 0, callback("last")) == 0
    heard.wait(30)
    assert api.close_api(LONG_MS) == 0
    assert said == {"one": ["bad one"], "two": ["bad two"], "three": ["bad three"], "last": ["bad last"]}


def test_bytes_that_are_no_text_come_back_whole(server, begun):
    said, heard = [], threading.Event()
    api = begun(server.target)
    body = b"bad \0\xff\xfe\n"
    assert api.send(GROUP, STREAM, body, 0, lambda *given: (said.append(given), heard.set())) == 0
    wait(heard)
    assert said[0][2].encode("utf-8", "surrogateescape") == body
    assert said[0][3] == len(body)


def test_a_delivery_is_told_where_it_is_asked_for(server, begun):
    results, failures = [], []
    api = begun(server.target, enable_pack=False)
    for body in ("good", "bad"):
        assert (
            api.send(GROUP, STREAM, body, 0, lambda *given: failures.append(given[2]), on_delivery=results.append) == 0
        )
    assert api.close_api(LONG_MS) in (0, 20)  # the second was told a moment before, or by the closing itself
    good = next(result for result in results if result.error is None)
    bad = next(result for result in results if result.error is not None)
    assert isinstance(good.delivered, Delivered)
    assert good.delivered.node == server.address
    assert bad.error.code == 110
    assert (bad.group_id, bad.stream_id) == (GROUP, STREAM)
    assert failures == ["bad"]


def test_a_message_without_a_callback_that_was_lost_is_told_at_the_end(server, begun):
    api = begun(server.target, enable_pack=False)
    assert api.send(GROUP, STREAM, "bad", 3) == 0
    assert api.send(GROUP, STREAM, "good", 4) == 0
    server.wait_frames(2)
    assert api.close_api(LONG_MS) == 20
    assert api.close_api(LONG_MS) == 20
    assert str(api.last_error).startswith("1 messages were not delivered (1 of 2 were); errors by code: 110 1;")
    assert api.last_error.code == "UNDELIVERED"
    assert api.last_error.report == api.counts()
    assert api.counts() == Counts(2, 1, 1, 0, 0, 0)


def test_what_has_no_result_when_the_time_is_over_is_told_before_close_returns(begun):
    said = []
    with Scripted(silent) as server:
        api = begun(server.target)
        for number in range(3):
            assert api.send(GROUP, STREAM, f"row {number}", 0, lambda *given: said.append(given[2])) == 0
        server.wait_frames(1)
        assert api.close_api(1) == 20
        assert said == ["row 0", "row 1", "row 2"]
        assert api.counts() == Counts(3, 0, 3, 0, 0, 0)


def test_close_returns_as_soon_as_everything_is_delivered(begun):
    """InLong's own SDK sleeps for the whole time; here an hour ends with the last answer."""
    with Hub() as hub:
        api = begun(hub.target, pack_timeout=3000)
        assert api.send(GROUP, STREAM, "x", 1) == 0
        assert api.close_api(3_600_000) == 0
        assert [record.body for record in hub.records(GROUP, STREAM)] == [b"x"]


def test_a_negative_time_is_none(begun):
    with Scripted(silent) as server:
        api = begun(server.target)
        assert api.send(GROUP, STREAM, "x", 1) == 0
        assert api.close_api(-5) == 20


def test_a_callback_may_send_and_close(server, begun):
    codes, heard = [], threading.Event()
    api = begun(server.target, enable_pack=False)

    def callback(_group, _stream, body, *_rest):
        codes.append(api.send(GROUP, STREAM, body.replace("bad", "good"), 0))
        codes.append(api.close_api(0))
        codes.append(api.send(GROUP, STREAM, "late", 4))
        heard.set()

    assert api.send(GROUP, STREAM, "bad", 3, callback) == 0
    wait(heard)
    assert codes[0] == 0
    assert codes[1] in (0, 20)
    assert codes[2] == 22


def test_a_callback_that_raises_hurts_nobody(server, begun, caplog):
    heard = threading.Event()
    api = begun(server.target, enable_pack=False)

    def broken(*_given):
        raise RuntimeError("broken")

    def deaf(_result):
        raise RuntimeError("deaf")

    assert api.send(GROUP, STREAM, "bad 1", 5, broken) == 0
    assert api.send(GROUP, STREAM, "bad 2", 5, lambda *_given: heard.set(), on_delivery=deaf) == 0
    wait(heard)
    assert api.send(GROUP, STREAM, "good", 4) == 0
    assert api.close_api(LONG_MS) == 0
    assert any("broken" in message and "raised" in message for message in caplog.messages)
