"""Names and texts of the nodes in which TubeMQ keeps positions."""

from __future__ import annotations

import pytest

from dataproxy.errors import ConfigError
from dataproxy.hub.zookeeper.nodes import Nodes, Place, plain, position_text, read_position


def test_the_path_of_the_specification() -> None:
    nodes = Nodes("/tubemq", 2130706433)
    assert nodes.path(Place("tboy", "test", 0)) == "/tubemq/consumers-v3/tboy/offsets/test/2130706433-0"
    assert nodes.groups == "/tubemq/consumers-v3"


@pytest.mark.parametrize("text", [b"0-280", b"-1-280", b"17-280", b"280", b" 280\n"])
def test_a_position_is_behind_the_messages_id(text: bytes) -> None:
    assert read_position(text) == 280


@pytest.mark.parametrize("text", [b"", b"-", b"1-", b"-280", b"a-280", b"0-2x", b"1-2-3", b"9" * 20, b"0-" + b"9" * 19])
def test_what_is_no_position(text: bytes) -> None:
    assert read_position(text) is None


def test_what_is_written_is_read() -> None:
    assert position_text(56) == b"0-56"
    assert read_position(position_text(2**63 - 1)) == 2**63 - 1


@pytest.mark.parametrize(
    "name",
    ["a/b", "../..", "..", ".", "a%b", "%2F", "%", "ä/ö", "a\x00b", "\x7f", "\ufff0", "\ue000", "a b", "a-0", "/"],
)
def test_a_name_is_one_part_of_a_path(name: str) -> None:
    path = Nodes("/tubemq", 1).path(Place("g", name, 3))
    parts = path.split("/")
    assert parts[:5] == ["", "tubemq", "consumers-v3", "g", "offsets"]
    assert parts[6:] == ["1-3"]
    assert parts[5] not in ("", ".", "..")
    assert plain(parts[5]) == name
    assert Nodes("/tubemq", 1).path(Place(name, "t", 3)).count("/") == 6


def test_names_that_tubemq_allows_stay_as_they_are() -> None:
    assert Nodes("/a/b", 1).path(Place("Group_1-x", "topic_2", 10003)) == (
        "/a/b/consumers-v3/Group_1-x/offsets/topic_2/1-10003"
    )


def test_partitions_of_other_brokers_are_not_ours() -> None:
    nodes = Nodes("/tubemq", 7)
    assert nodes.partition("7-10001") == 10001
    assert [nodes.partition(name) for name in ("8-1", "7", "7-", "-1", "7-x", "7-1-2", "77-1", "7-2147483648")] == [
        None
    ] * 8


@pytest.mark.parametrize("root", ["", "/", "/a//b", "/a/../b", "/a%b", "/a\x00"])
def test_a_root_that_is_no_path(root: str) -> None:
    with pytest.raises(ConfigError, match="none of ZooKeeper's"):
        Nodes(root, 1)


@pytest.mark.parametrize("root", ["tubemq", "/tubemq", "/tubemq/"])
def test_a_root_is_written_like_tubemqs(root: str) -> None:
    assert Nodes(root, 1).groups == "/tubemq/consumers-v3"
