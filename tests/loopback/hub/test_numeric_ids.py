"""Requests that name group and stream by numbers, and a hub that knows the names."""

import pytest

from dataproxy.errors import ConfigError
from dataproxy.hub import Hub
from tests.loopback.hub.peer import mask_times, read_frame

NUMBERS = ["100=test_group", "100/10=test_stream", "200=test_group", "200/20=test_stream", "300=other"]


def test_numbers_become_names(start_hub, connect, vectors):
    hub = start_hub(numeric_ids=NUMBERS)
    connection = connect(hub)
    wanted = [entry for entry in vectors["requests"] if "numeric" in entry["name"]]
    assert len(wanted) == 2
    for entry in wanted:
        connection.sendall(bytes.fromhex(entry["hex"]))
        assert b"&groupId=test_group&streamId=test_stream" in read_frame(connection)
    assert list(hub.counts()) == [("test_group", "test_stream")]
    records = list(hub.records("test_group", "test_stream"))
    assert [(r.group_id, r.stream_id, r.body) for r in records] == [("test_group", "test_stream", b"x")] * 2


def test_numbers_that_are_wrong_are_refused_as_the_server_does(start_hub, connect, vectors):
    connection = connect(start_hub(numeric_ids=NUMBERS))
    wanted = [e for e in vectors["malformed"] if "numeric" in e["name"] and not e.get("server_mode")]
    assert len(wanted) == 5
    for entry in wanted:
        connection.sendall(bytes.fromhex(entry["hex"]))
        assert mask_times(read_frame(connection)) == mask_times(bytes.fromhex(entry["reply_hex"])), entry["name"]


def test_without_the_option_numbers_are_refused(start_hub, connect, vectors):
    connection = connect(start_hub())
    [entry] = [e for e in vectors["malformed"] if e.get("server_mode") == "no_number_mapping"]
    connection.sendall(bytes.fromhex(entry["hex"]))
    assert read_frame(connection) == bytes.fromhex(entry["reply_hex"])


def test_names_of_numbers_have_to_be_known_topics(start_hub, connect, vectors):
    connection = connect(start_hub(numeric_ids=NUMBERS, topics=["other"]))
    connection.sendall(bytes.fromhex(next(e["hex"] for e in vectors["requests"] if e["name"] == "bin7_numeric_ids")))
    assert b"errCode=115" in read_frame(connection)


def test_many_numbers(start_hub, connect, vectors):
    made = [line for g in range(1, 400) for line in (f"{g}=g{g}", *(f"{g}/{s}=s{g}.{s}" for s in (1, 9, 65535)))]
    hub = start_hub(numeric_ids=made)
    connection = connect(hub)
    frame = bytearray.fromhex(next(e["hex"] for e in vectors["requests"] if e["name"] == "bin7_numeric_ids"))
    for group, stream in ((1, 1), (399, 65535), (200, 9)):
        frame[5:9] = group.to_bytes(2, "big") + stream.to_bytes(2, "big")
        connection.sendall(frame)
        assert f"groupId=g{group}&streamId=s{group}.{stream}".encode() in read_frame(connection)


def test_a_wrong_line_is_a_configuration_error():
    with pytest.raises(ConfigError, match="numeric_ids"):
        Hub(numeric_ids=["x"])
