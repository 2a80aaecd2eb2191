"""What a hub with ``dedupe`` says in its answers of messages that it knew, and what a producer makes of it."""

import socket

import pytest

from dataproxy import Producer
from tests.loopback.hub.peer import binary_frame, read_frame, wait_until


@pytest.fixture
def known_hub(start_hub):
    return start_hub(dedupe="ids")


def reach(answer: bytes) -> int:
    """Return for how many seconds an answer says that messages are remembered."""
    return int(answer.partition(b"&dup=")[2].partition(b",")[0])


def send(hub, ids, **options):
    """Send a message for each (id, body) in one frame, with a producer of its own; return its report."""
    with Producer(target=hub.target, group_id="g", linger="1s", **options) as producer:
        for name, body in ids:
            producer.send("s", body, message_id=name)
        producer.flush(timeout=30)
        return producer.report()


def test_a_producer_counts_what_the_hub_had_already(known_hub):
    first = send(known_hub, [("a", b"1"), ("b", b"2")])
    again = send(known_hub, [("b", b"2"), ("c", b"3"), ("a", b"other")])
    assert (first.delivered, first.duplicates_filtered, first.conflicts) == (2, 0, 0)
    assert (again.delivered, again.duplicates_filtered, again.conflicts) == (3, 2, 1)
    assert known_hub.stats()["records"] == 3


def test_both_bodies_of_an_id_are_a_conflict_and_no_duplicate(start_hub):
    hub = start_hub(dedupe="ids", dedupe_conflict="both")
    send(hub, [("a", b"1")])
    again = send(hub, [("a", b"2")])
    assert (again.duplicates_filtered, again.conflicts) == (0, 1)


def test_statistics_have_them_too(known_hub):
    with Producer(target=known_hub.target, group_id="g") as producer:
        for _ in range(2):
            producer.send("s", b"x", message_id="same")
            producer.flush(timeout=30)
        stats = producer.stats()
    assert (stats.duplicates_filtered, stats.conflicts, stats.delivered) == (1, 0, 2)


def test_answers_of_a_hub_without_a_window_say_nothing(start_hub):
    hub = start_hub()
    with socket.create_connection(("127.0.0.1", hub.port)) as connection:
        connection.sendall(binary_frame(1, [b"a"]))
        assert b"dup=" not in read_frame(connection)


def test_answers_in_the_manner_of_the_reference_say_nothing(start_hub):
    hub = start_hub(dedupe="ids", profile="compat")
    with socket.create_connection(("127.0.0.1", hub.port)) as connection:
        for _ in range(2):
            connection.sendall(binary_frame(1, [b"a"], stream="s&sid=p"))
            assert b"dup=" not in read_frame(connection)


def test_of_a_frame_with_more_ids_than_there_is_room_for_not_all_are_remembered(start_hub):
    hub = start_hub(dedupe="ids", dedupe_memory=64 << 10)
    assert send(hub, [(f"id{i}", b"x") for i in range(385)]).delivered == 385
    with socket.create_connection(("127.0.0.1", hub.port)) as connection:
        connection.sendall(binary_frame(1, [b"a"], stream="s&sid=p"))
        assert reach(read_frame(connection)) < 600


def test_the_time_that_is_remembered_shrinks_with_what_had_to_be_forgotten(start_hub, tmp_path):
    """A hub that had to forget says for how long nothing was forgotten, after a restart too."""
    path = str(tmp_path / "store")
    hub = start_hub(path, dedupe="ids", dedupe_memory=64 << 10)
    with socket.create_connection(("127.0.0.1", hub.port)) as connection:
        for i in range(400):
            connection.sendall(binary_frame(1 + i, [b"a"], stream=f"s&sid=p{i}"))
            answer = read_frame(connection)
            assert (reach(answer) == 600) == (i < 384)  # so many have room
    assert reach(answer) < 600
    hub.close()
    hub = start_hub(path, dedupe="ids")  # with room for all of them: what is gone is gone
    with socket.create_connection(("127.0.0.1", hub.port)) as connection:
        connection.sendall(binary_frame(1, [b"a"], stream="s&sid=fresh"))
        assert reach(read_frame(connection)) < 600


def reach_of(hub) -> int:
    """Return for how many seconds the hub says that it remembers."""
    with socket.create_connection(("127.0.0.1", hub.port)) as connection:
        connection.sendall(binary_frame(1, [b"a"], stream="s&sid=fresh"))
        return reach(read_frame(connection))


def test_what_came_while_nobody_remembered_ids_counts_as_forgotten(start_hub, tmp_path):
    path = str(tmp_path / "store")
    hub = start_hub(path, dedupe="ids")
    assert reach_of(hub) == 600
    hub.close()
    hub = start_hub(path)
    send(hub, [("unseen", b"x")])
    hub.close()
    hub = start_hub(path, dedupe="ids")
    assert send(hub, [("unseen", b"x")]).duplicates_filtered == 0  # so it must not say that it knows
    assert reach_of(hub) < 600
    hub.close()
    assert reach_of(start_hub(path, dedupe="ids")) < 600


def test_a_longer_window_knows_nothing_of_what_a_shorter_one_let_go(start_hub, tmp_path):
    path = str(tmp_path / "store")
    hub = start_hub(path, dedupe="ids", dedupe_window="1s")
    send(hub, [("early", b"x")])
    wait_until(lambda: hub.stats()["store"]["ids"] == 0)
    hub.close()
    assert reach_of(start_hub(path, dedupe="ids")) < 600
