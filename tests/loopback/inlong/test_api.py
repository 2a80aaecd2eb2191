"""The module in the place of InLong's own Python SDK: its calls and codes against hubs and scripted proxies."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dataproxy.errors import ConfigError
from dataproxy.hub import Hub
from dataproxy.hub.web.settings import ManagerCluster
from inlong_dataproxy import Counts, InLongApi, SdkCode
from tests.support.scripted import Scripted, silent

GROUP, STREAM = "b_app", "s_click"
LONG_MS = 30_000


@pytest.fixture
def hub():
    with Hub() as hub:
        yield hub


def executors():
    return sum(one.name.startswith("dataproxy-exec") for one in threading.enumerate())


def bodies(hub, group=GROUP, stream=STREAM):
    return [record.body for record in hub.records(group, stream)]


def test_a_program_of_the_official_sdk(hub, begun):
    said = []
    api = begun(hub.manager_url, inlong_group_ids=GROUP)
    for number in range(5):
        text = f"row {number}"
        assert api.send(GROUP, STREAM, text, len(text), lambda *given: said.append(given)) == 0
    assert api.close_api(LONG_MS) == 0
    assert bodies(hub) == [b"row %d" % number for number in range(5)]
    assert said == []
    assert api.last_error is None
    assert api.counts() == Counts(5, 5, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("text", b"text"),
        ("中文", "中文".encode()),
        ("a\0b", b"a\0b"),
        (b"\0\xff\n\0", b"\0\xff\n\0"),
        (bytearray(b"array"), b"array"),
        (memoryview(b"a view")[2:], b"view"),
    ],
)
@pytest.mark.parametrize("length", [0, -1, 1, 999])
def test_a_body_is_sent_whole_whatever_its_length_is_said_to_be(hub, begun, given, stored, length):
    api = begun(hub.target)
    assert api.send(GROUP, STREAM, given, length) == 0
    assert api.close_api(LONG_MS) == 0
    assert bodies(hub) == [stored]


def test_names_may_be_given_as_bytes_and_by_keyword(hub, begun):
    api = begun(hub.target)
    assert api.send(groupId=b"b_app", streamId=b"s_click", msg="x", msgLen=1, pyCallback=None) == 0
    assert api.send(GROUP, STREAM, "y", 1, call_back_func=print) == 0
    assert api.close_api(LONG_MS) == 0
    assert bodies(hub) == [b"x", b"y"]


def test_before_the_start_and_after_the_end(hub, written):
    api = InLongApi()
    assert api.last_error is None
    assert api.send(GROUP, STREAM, "x", 1) == 22
    assert str(api.last_error) == "init_api was not called [CLOSED]"
    assert api.add_bid([GROUP]) == 22
    assert api.close_api(0) == 0
    assert api.counts() == Counts(0, 0, 0, 0, 0, 0)
    path = written(hub.target)
    assert api.init_api(path) == 0
    assert api.init_api(path) == 4
    assert api.last_error.hint == "make another InLongApi()"
    assert api.send(GROUP, STREAM, "x", 1) == 0
    assert api.close_api(LONG_MS) == 0
    assert api.send(GROUP, STREAM, "x", 1) == 22
    assert api.init_api(path) == 4
    assert api.close_api(0) == 0


def test_a_file_that_cannot_be_used_is_code_5_and_can_be_repaired(hub, written, tmp_path):
    api = InLongApi()
    assert api.init_api(None) == 5
    assert api.send(GROUP, STREAM, "x", 1) == 22
    assert api.init_api(str(tmp_path / "none.json")) == 5
    assert "cannot be read: No such file" in str(api.last_error)
    assert isinstance(api.last_error, ConfigError)
    assert api.send(GROUP, STREAM, "x", 1) == 10
    assert api.init_api(written("nonsense")) == 5
    assert api.init_api(written(hub.manager_url, inlong_group_ids="a&b")) == 5
    few = {"inlong_group_ids": "a,b,c", "max_group_id_num": 1, "max_stream_id_num": 1}
    assert api.init_api(written("http://127.0.0.1:9", **few)) == 5
    assert api.init_api(written(hub.target).encode()) == 0
    assert api.send(GROUP, STREAM, "x", 1) == 0
    assert api.close_api(LONG_MS) == 0


def test_a_manager_that_is_away_stops_no_start(begun, caplog):
    with Scripted() as gone:
        url = f"http://{gone.address}"
    api = begun(url, inlong_group_ids=GROUP)
    assert api.send(GROUP, STREAM, "x", 1) == 0
    assert api.close_api(0) == 20
    assert "1 messages were not delivered (0 of 1 were)" in str(api.last_error)
    assert "close_api: 1 messages were not delivered (0 of 1 were); errors by code: CLOSED 1" in caplog.messages


@pytest.mark.parametrize(
    ("group", "stream", "body", "code", "problem"),
    [
        ("", STREAM, "x", 7, "the message has no group"),
        (None, STREAM, "x", 7, "the message has no group"),
        (GROUP, "", "x", 7, "the message has no stream"),
        (GROUP, None, "x", 7, "the message has no stream"),
        (GROUP, STREAM, "", 7, "the message has no body"),
        (GROUP, STREAM, None, 7, "the message has no body"),
        ("a&b", STREAM, "x", 7, "group"),
        (GROUP, "a=b", "x", 7, "stream"),
        (b"\xff", STREAM, "x", 7, "group"),
        (GROUP, STREAM, "x" * 91, 6, "the body has 91 bytes, ext_pack_size allows 90"),
        (None, None, "x" * 91, 6, "ext_pack_size"),
        (GROUP, STREAM, "中" * 31, 6, "the body has 93 bytes"),
    ],
)
@pytest.mark.parametrize("callback", [None, print])
def test_a_message_that_is_refused(hub, begun, group, stream, body, code, problem, callback):
    api = begun(hub.target, ext_pack_size=100)
    assert api.send(group, stream, body, 1, callback) == code
    assert problem in str(api.last_error)
    assert api.send(GROUP, STREAM, "x" * 90, 90, callback) == 0
    assert api.close_api(LONG_MS) == 0
    assert bodies(hub) == [b"x" * 90]


def test_a_body_that_no_frame_can_hold_is_too_long(begun, hub, monkeypatch):
    monkeypatch.setenv("DATAPROXY_MAX_FRAME_BYTES", "8KiB")
    api = begun(hub.target)
    assert api.send(GROUP, STREAM, "x" * 10_000, 0) == 6
    assert api.last_error.code == "BODY_TOO_LARGE"


@pytest.mark.parametrize(
    "call",
    [
        lambda api: api.send(1, STREAM, "x", 1),
        lambda api: api.send(GROUP, 1.5, "x", 1),
        lambda api: api.send(GROUP, STREAM, 7, 1),
        lambda api: api.send(GROUP, STREAM, "\ud800", 1),
        lambda api: api.send(GROUP, STREAM, "x", "1"),
        lambda api: api.send(GROUP, STREAM, "x", 1.0),
        lambda api: api.send(GROUP, STREAM, "x", None),
        lambda api: api.send(GROUP, STREAM, "x", 1 << 31),
        lambda api: api.send(GROUP, STREAM, "x", 1, "no function"),
        lambda api: api.send(GROUP, STREAM, "x", 1, on_delivery=1),
        lambda api: api.send(GROUP, STREAM, "x"),
        lambda api: api.close_api("soon"),
        lambda api: api.close_api(None),
        lambda api: InLongApi().init_api(7),
        lambda api: api.add_bid([7]),
    ],
)
def test_an_argument_of_a_wrong_type_raises_as_it_does_there(hub, begun, call):
    api = begun(hub.target)
    with pytest.raises(TypeError):
        call(api)
    assert api.counts().accepted == 0
    assert api.send(GROUP, STREAM, "x", 1) == 0


def test_a_full_buffer_is_code_8_at_once(begun):
    with Scripted(silent) as server:
        api = begun(server.target, recv_buf_size=4096, pack_timeout=1000)
        codes = [api.send(GROUP, STREAM, "x" * 1000, 1000) for _ in range(20)]
        assert codes[0] == 0
        assert codes[-1] == 8
        assert api.last_error.retriable
        assert api.counts().accepted == codes.count(0)


def test_counts_balance_without_acks(hub, begun):
    api = begun(hub.manager_url, inlong_group_ids=GROUP, ack="none")
    said = []
    assert [api.send(GROUP, STREAM, "x", 1, said.append) for _ in range(3)] == [0] * 3
    assert api.close_api(LONG_MS) == 0
    assert (api.counts(), said) == (Counts(3, 0, 0, 0, 0, 0, sent=3), [])


def test_a_file_may_name_groups_and_others_are_opened_when_they_are_used(hub, begun):
    api = begun(hub.manager_url, inlong_group_ids="g1, g2")
    for group in ("g1", "g2", "g3"):
        for callback in (None, print):
            assert api.send(group, STREAM, group, 2, callback) == 0
    assert api.add_bid(["g4", "g1"]) == 0
    assert api.add_bid(["a&b"]) == 7
    assert api.send("g4", STREAM, "g4", 2) == 0
    assert api.close_api(LONG_MS) == 0
    stored = [bodies(hub, group) for group in ("g1", "g2", "g3", "g4")]
    assert stored == [[b"g1"] * 2, [b"g2"] * 2, [b"g3"] * 2, [b"g4"]]
    assert api.counts() == Counts(7, 7, 0, 0, 0, 0)


def test_the_number_of_groups_is_limited_where_a_manager_is_asked_about_each(hub, begun):
    api = begun(hub.manager_url, max_group_id_num=1, max_stream_id_num=1)
    assert [api.send(group, STREAM, "x", 1) for group in ("g1", "g2", "g3", "g1")] == [0, 0, 18, 0]
    assert "max_group_id_num" in str(api.last_error)
    assert api.add_bid(["g4"]) == 18
    assert api.close_api(LONG_MS) == 0
    many = begun(hub.target, max_group_id_num=1, max_stream_id_num=1)
    assert [many.send(group, STREAM, "x", 1) for group in ("g1", "g2", "g3", "g4")] == [0, 0, 0, 0]
    assert many.close_api(LONG_MS) == 0


def test_one_producer_sends_each_group_to_its_cluster(hub, begun):
    with Hub() as other:
        hub.manager.clusters = {"west": ManagerCluster(7, (("127.0.0.1", other.port),))}
        hub.manager.groups = {"g2": "west", "g4": "west"}
        api = begun(hub.manager_url, inlong_group_ids="g1, g2")
        before = executors()
        assert api.add_bid(["g3"]) == 0
        assert [api.send(group, STREAM, group, 2) for group in ("g1", "g2", "g3", "g4")] == [0] * 4
        assert executors() == before
        assert api.close_api(LONG_MS) == 0
        assert [bodies(hub, group) for group in ("g1", "g2", "g3", "g4")] == [[b"g1"], [], [b"g3"], []]
        assert [bodies(other, group) for group in ("g1", "g2", "g3", "g4")] == [[], [b"g2"], [], [b"g4"]]


def test_two_objects_have_configurations_of_their_own(begun):
    with Hub() as one, Hub() as two:
        first, second = begun(one.target, ext_pack_size=100), begun(two.target)
        assert first.send(GROUP, STREAM, "x" * 200, 0) == 6
        assert second.send(GROUP, STREAM, "x" * 200, 0) == 0
        assert first.send(GROUP, STREAM, "first", 5) == 0
        assert first.close_api(LONG_MS) == 0
        assert second.send(GROUP, STREAM, "second", 6) == 0
        assert second.close_api(LONG_MS) == 0
        assert bodies(one) == [b"first"]
        assert bodies(two) == [b"x" * 200, b"second"]


def test_many_threads_send_and_one_closes(hub, begun):
    api = begun(hub.manager_url)
    begin = threading.Barrier(8)

    def run(number):
        begin.wait()
        return [api.send(f"g{number % 2}", STREAM, f"{number}-{i}", 0, print if i % 2 else None) for i in range(500)]

    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(run, range(8)))
    assert codes == [[0] * 500] * 8
    assert api.close_api(LONG_MS) == 0
    stored = bodies(hub, "g0") + bodies(hub, "g1")
    assert sorted(stored) == sorted(f"{n}-{i}".encode() for n in range(8) for i in range(500))


def test_threads_that_send_while_another_closes_lose_nothing_that_was_accepted(hub, begun):
    api = begun(hub.target)
    accepted = []
    running = threading.Barrier(5)

    def run(number):
        running.wait()
        for i in range(100_000):
            code = api.send(GROUP, STREAM, f"{number}-{i}", 0)
            if code:
                return code
            accepted.append(f"{number}-{i}".encode())
        return 0

    with ThreadPoolExecutor(4) as pool:
        codes = [pool.submit(run, number) for number in range(4)]
        running.wait()
        while len(accepted) < 1000:
            time.sleep(0.001)
        assert api.close_api(LONG_MS) == 0
        assert {code.result() for code in codes} <= {8, 22}
    assert sorted(bodies(hub)) == sorted(accepted)


def test_threads_that_open_groups_while_another_closes_leave_none_open(hub, begun):
    api = begun(hub.manager_url, max_group_id_num=5000)
    running = threading.Barrier(3)
    accepted = []

    def run(number):
        running.wait()
        for i in range(2000):
            if api.send(f"g{number}.{i}", STREAM, "x", 1):
                return
            accepted.append(f"g{number}.{i}")

    with ThreadPoolExecutor(2) as pool:
        tasks = [pool.submit(run, number) for number in range(2)]
        running.wait()
        while len(accepted) < 5:
            time.sleep(0.001)
        assert api.close_api(LONG_MS) == 0
        assert all(task.result() is None for task in tasks)
    assert api.counts().accepted == api.counts().delivered == len(accepted)
    assert all(bodies(hub, group) == [b"x"] for group in accepted)


def test_more_streams_than_are_remembered(hub, begun, monkeypatch):
    monkeypatch.setattr("inlong_dataproxy.groups._MOST_HANDLES", 3)
    api = begun(hub.target)
    for number in range(20):
        assert api.send(GROUP, f"s{number % 10}", "x", 1) == 0
    assert api.close_api(LONG_MS) == 0
    assert all(bodies(hub, GROUP, f"s{number}") == [b"x", b"x"] for number in range(10))


def test_what_the_calls_return_are_the_official_numbers():
    assert {code.name: int(code) for code in SdkCode} == {
        "SUCCESS": 0, "MULTI_INIT": 4, "ERROR_INIT": 5, "MSG_TOO_LONG": 6, "INVALID_INPUT": 7, "RECV_BUFFER_FULL": 8,
        "SEND_AFTER_CLOSE": 10, "FAIL_GET_RECV_GROUP": 18, "FAIL_SEND_PROXY": 20, "SEND_BEFORE_INIT": 22,
    }  # fmt: skip
