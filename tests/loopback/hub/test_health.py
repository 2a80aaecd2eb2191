"""What ``/healthz`` and the log say while a hub cannot keep what it is sent."""

import json
import logging
from http.client import HTTPConnection

import pytest

import dataproxy.hub.health as health_module
from tests.loopback.hub.peer import binary_frame, read_frame, wait_until


@pytest.fixture
def health():
    def ask(hub):
        connection = HTTPConnection("127.0.0.1", hub.manager_port, timeout=30)
        try:
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    return ask


def test_a_hub_whose_directory_went_away_acks_nothing_and_says_so(start_hub, connect, health, tmp_path, caplog):
    hub = start_hub(str(tmp_path / "store"))
    connection = connect(hub)
    connection.sendall(binary_frame(1, [b"a"]))
    assert b"errCode" not in read_frame(connection)
    assert health(hub) == (200, {"ok": True})
    with caplog.at_level(logging.WARNING, "dataproxy.hub"):
        (tmp_path / "store").rename(tmp_path / "elsewhere")
        connection.sendall(binary_frame(2, [b"b"]))
        assert b"errCode=114" in read_frame(connection)
        status, said = health(hub)
        assert (status, said["ok"]) == (503, False)
        assert "removed or replaced" in said["store"]["trouble"]
        wait_until(lambda: "the store accepts nothing" in caplog.text)
        (tmp_path / "elsewhere").rename(tmp_path / "store")
        wait_until(lambda: health(hub) == (200, {"ok": True}))  # without a request: the hub tries by itself
        wait_until(lambda: "the store accepts data again" in caplog.text)
    connection.sendall(binary_frame(3, [b"c"]))
    assert b"errCode" not in read_frame(connection)
    assert [record.body for record in hub.records("g")] == [b"a", b"c"]


def test_a_full_store_is_not_well(start_hub, connect, health, tmp_path):
    hub = start_hub(str(tmp_path / "store"), max_store_bytes=1 << 20)
    connection = connect(hub)
    n = 0
    answer = b""
    while b"errCode=114" not in answer:
        n += 1
        connection.sendall(binary_frame(n, [b"x" * 200_000]))
        answer = read_frame(connection)
    assert n > 2
    assert health(hub)[0] == 503


def test_what_was_forgotten_before_its_time_is_logged_once_a_minute(monkeypatch, caplog):
    now = [0.0]
    monkeypatch.setattr(health_module.time, "monotonic", lambda: now[0])
    log = health_module.ForgottenLog()
    for at, ids, rows in ((0, 0, 0), (1, 5, 512), (2, 9, 512), (62, 9, 1024), (200, 9, 1024)):
        now[0] = at
        log.note({"forgotten_ids": ids, "forgotten_rows": rows})
    assert [record.args for record in caplog.records] == [(5, 512), (4, 512)]
    assert "raise dedupe_memory" in caplog.text


def test_a_hub_whose_window_is_too_small_says_so(start_hub, connect, caplog):
    hub = start_hub(dedupe="ids", dedupe_memory=64 << 10)
    connection = connect(hub)
    for i in range(400):  # of 384 that have room
        connection.sendall(binary_frame(1 + i, [b"a"], stream=f"s&sid=p{i}"))
        read_frame(connection)
    wait_until(lambda: "forgotten before" in caplog.text)
    assert hub.stats()["store"]["forgotten_ids"] > 0
