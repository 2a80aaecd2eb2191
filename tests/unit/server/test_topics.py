"""The set of known topics."""

import pytest

from tests.native.probe_hub import TopicSet


def test_whole_groups_and_single_streams():
    topics = TopicSet([b"a", (b"b", b"x"), (b"b", b"y"), (b"c", b"")])
    assert topics.known(b"a", b"any")
    assert topics.known(b"a", b"")
    assert topics.known(b"b", b"x")
    assert topics.known(b"b", b"y")
    assert not topics.known(b"b", b"z")
    assert not topics.known(b"b", b"")
    assert topics.known(b"c", b"")
    assert not topics.known(b"c", b"x")
    assert not topics.known(b"", b"a")


def test_names_do_not_run_into_each_other():
    topics = TopicSet([(b"ab", b"c")])
    assert not topics.known(b"a", b"bc")
    assert not topics.known(b"abc", b"")


@pytest.mark.parametrize("count", [0, 1, 7, 8, 1000])
def test_many_topics(count):
    topics = TopicSet([b"group%d" % i for i in range(count)] * 2)
    assert all(topics.known(b"group%d" % i, b"s") for i in range(count))
    assert not topics.known(b"group%d" % count, b"s")
