"""Names of groups and streams: they count, they are given back, and nobody can make them collide."""

import random

import pytest

from dataproxy._core.server.store.core import StoreCore
from tests.native.probe_feed import append_entries, retain_once

LOGS_MOST = 1 << 16


@pytest.fixture(params=["durable", "memory"])
def path(request, tmp_path):
    return str(tmp_path / "store") if request.param == "durable" else None


def drain(store, now_ms):
    while retain_once(store, now_ms):
        pass


def fill(store, names, at):
    for start in range(0, len(names), 4096):
        said = append_entries(store, [(name, "s", b"x") for name in names[start : start + 4096]], receive_ms=at)
        assert {status for _, status in said} == {"ok"}


def test_names_are_given_back_when_their_data_is_gone(path):
    """Every number of logs is used three times over; each time the data before has gone."""
    store = StoreCore(path, retention_ms=1000)
    for turn in range(3):
        now = turn * 10_000
        fill(store, [f"{turn}-{n}" for n in range(LOGS_MOST - 8)], now)
        assert append_entries(store, [("stays", "s", b"y")], receive_ms=now + 5000)[0][1] == "ok"
        drain(store, now + 2000)
        assert [log[0] for log in store.logs() if log[4]] == ["stays"]
    found = {entry[2] for entry in store.read("stays", 0, 0)}
    assert found == {b"y"}
    store.close()


def test_beyond_the_limit_of_names_one_has_a_status_of_its_own(path):
    store = StoreCore(path)
    fill(store, [f"g{n}" for n in range(LOGS_MOST)], 0)
    assert append_entries(store, [("one more", "s", b"x"), ("g7", "s", b"y")]) == [(0, "over the limit"), (1, "ok")]
    assert append_entries(store, [("g7", "t", b"z")]) == [(2, "ok")]
    store.close()


def test_names_that_are_not_utf8_are_read_as_they_are_counted(path):
    store = StoreCore(path)
    assert append_entries(store, [("g\udcff", "s\udcfe", b"x")])[0][1] == "ok"
    assert [(log[0], store.read(log[0], log[1], 0)[0][2]) for log in store.logs()] == [("g\udcff", b"x")]
    assert len(store.read("g\udcff", 0, 0, stream="s\udcfe")) == 1
    assert store.read("g\udcff", 0, 0, stream="s") == []
    assert store.read("no text \ud800", 0, 0) == []
    store.close()


def test_no_offset_is_used_again_and_no_name_is_taken_for_another(path):
    """Logs and streams come and go at random; a reader that was there before never sees a wrong name."""
    rng = random.Random(4)
    store = StoreCore(path, retention_ms=100, max_bytes=2 << 20)
    used: dict[str, int] = {}
    now = 1000
    for _ in range(120):
        now += 60
        made = [(f"g{rng.randrange(40)}", f"{rng.randrange(4000)}" + "n" * 200, b"b") for _ in range(60)]
        made = [(group, stream, f"{group}/{stream}".encode()) for group, stream, _ in made]
        for (group, _, _), (offset, status) in zip(made, append_entries(store, made, receive_ms=now), strict=True):
            assert status == "ok"
            assert offset >= used.get(group, 0)
            used[group] = offset + 1
        drain(store, now)
        logs = store.logs()
        for group, partition, *_ in logs:
            for _, head, value in store.read(group, partition, 0):
                assert value == f"{group}/{head[3]}".encode()
    assert len(store.counts()) < 4000  # of some 7200 that were used
    store.close()


def test_names_count_against_the_limit_of_the_store(path):
    """Names of 255 bytes with next to no data: they are refused before they fill the store."""
    store = StoreCore(path, max_bytes=1 << 20)
    said = [append_entries(store, [("g" * 240 + f"{n:015}", "s" * 255, b"x")])[0][1] for n in range(3000)]
    assert said.count("ok") < 1000
    assert said[-1] == "over the limit"
    assert append_entries(store, [("g" * 240 + f"{0:015}", "s" * 255, b"x")]) == [(1, "ok")]
    store.close()


def test_a_name_that_is_too_long_has_a_status_of_its_own(path):
    store = StoreCore(path)
    assert append_entries(store, [("g" * 256, "s", b"x"), ("g", "s" * 256, b"x"), ("g", "s", b"x")]) == [
        (0, "over the limit"),
        (0, "over the limit"),
        (0, "ok"),
    ]
    store.close()


def test_after_a_restart_offsets_go_on(tmp_path):
    path = str(tmp_path)
    store = StoreCore(path, retention_ms=1000, max_bytes=1 << 20)
    assert append_entries(store, [("g", "s", b"x")] * 50, receive_ms=0)[-1] == (49, "ok")
    drain(store, 2000)
    names = [f"{n}" + "n" * 200 for n in range(900)]
    said = [append_entries(store, [(name, "s", b"x")], receive_ms=2000)[0] for name in names]
    assert "g" not in {log[0] for log in store.logs()}  # given up for them
    assert {offset for offset, status in said if status == "ok"} == {0, 50}
    store.close()
    del store
    store = StoreCore(path, retention_ms=1000)
    assert append_entries(store, [("g", "s", b"x")], receive_ms=2000) == [(50, "ok")]
    store.close()
