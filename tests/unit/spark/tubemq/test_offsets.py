"""Offsets of partitions: what options say, parts of a micro-batch, parts of a range."""

import itertools
import random

import pytest

from dataproxy.consumer.group.asking import Address
from dataproxy.consumer.ranges.places import Place
from dataproxy.errors import ConfigError
from dataproxy.spark.tubemq.offsets import Bound, known_bound, limited, read_bound, split_range
from dataproxy.spark.tubemq.plan import divided
from dataproxy.spark.tubemq.ranges import TopicRange

INDEX = 28
WORDS = {"earliest": {"a": 0, "b": 28}, "latest": {"a": 280, "b": 560}, "stored": {"a": 56, "b": 84}}


def read(text, option="startingOffsets"):
    return read_bound(option, text, "latest", ["orders"])


@pytest.mark.parametrize("word", ["earliest", "latest", "stored", " Stored "])
def test_words(word):
    bound = read(word)
    assert known_bound(bound, ["a", "b"], WORDS) == WORDS[word.strip().lower()]
    assert bound.needs_stored == (word.strip().lower() == "stored")


def test_partitions_that_are_not_named_have_the_default():
    bound = read('{"b": 112}')
    assert known_bound(bound, ["a", "b"], WORDS) == {"a": 280, "b": 112}
    assert known_bound(read('{"a": "stored"}'), ["a", "b"], WORDS) == {"a": 56, "b": 560}
    assert read('{"a": "STORED"}').needs_stored
    assert known_bound(read(""), ["a", "b"], WORDS) == WORDS["latest"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("soon", "startingOffsets='soon' is not allowed; give earliest, latest, stored, or JSON"),
        ("[1]", "is not allowed"),
        ("{}", "is not allowed"),
        ("[" * 100_000, "is not allowed"),
        ("280", r'such as {"1:orders:0": 280}'),
        ('{"a": -1}', "has -1 for partition 'a'; give an offset from 0 on"),
        ('{"a": true}', "has True for partition 'a'"),
        ('{"a": 1.5}', "has 1.5 for partition 'a'"),
        ('{"a": "soon"}', "has 'soon' for partition 'a'"),
        ('{"a": 9223372036854775808}', "has 9223372036854775808 for partition 'a'"),
        ('{"a": 30}', "no message begins there; offsets are multiples of 28: one before it is 28"),
    ],
)
def test_bad_offsets(text, told):
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert told in str(caught.value)


def test_an_end_is_not_the_earliest():
    with pytest.raises(ConfigError, match="endingOffsets='earliest' is not allowed"):
        read("earliest", "endingOffsets")


def test_partitions_that_are_not_there():
    with pytest.raises(ConfigError, match="names the partitions c, d, and the topics have a, b"):
        known_bound(Bound("startingOffsets", "latest", (("a", 0), ("d", 0), ("c", 0))), ["b", "a"], WORDS)


def test_parts_of_a_micro_batch():
    begins, ends = {"a": 0, "b": 0, "c": 280}, {"a": 100 * INDEX, "b": 300 * INDEX, "c": 280}
    assert limited(begins, ends, 400) == ends
    assert limited(begins, ends, 40) == {"a": 10 * INDEX, "b": 30 * INDEX, "c": 280}
    assert limited(begins, ends, 1) == {"a": 0, "b": INDEX, "c": 280}


def test_every_part_of_a_micro_batch_is_within_its_limits_and_the_end_is_reached():
    source = random.Random(3)
    for _ in range(200):
        keys = "abcdef"[: source.randrange(1, 7)]
        begins = {key: INDEX * source.randrange(50) for key in keys}
        ends = {key: begins[key] + INDEX * source.choice([0, 0, 1, source.randrange(2000)]) for key in keys}
        most = source.randrange(1, 700)
        for _ in range(100_000):
            if begins == ends:
                break
            step = limited(begins, ends, most)
            moved = sum(step[key] - begins[key] for key in keys) // INDEX
            left = sum(ends[key] - begins[key] for key in keys) // INDEX
            assert moved == min(most, left)
            assert all(begins[key] <= step[key] <= ends[key] for key in keys)
            begins = step
        assert begins == ends


def test_ranges_are_divided_without_gaps():
    assert split_range(28, 28 * 4, 2) == [(28, 56), (56, 112)]
    assert split_range(0, 28, 5) == [(0, 28)]
    source = random.Random(4)
    for _ in range(100):
        begin, end = sorted(INDEX * source.randrange(1000) for _ in range(2))
        parts = split_range(begin, end, source.randrange(1, 30)) if begin < end else [(begin, end)]
        assert parts[0][0] == begin
        assert parts[-1][1] == end
        assert all(one[1] == other[0] for one, other in itertools.pairwise(parts))
        assert all(one % INDEX == 0 for part in parts for one in part)


def whole(key, begin, end, *, alone=True):
    return TopicRange(Place(1, key, 0, Address("h", 1), alone), begin, end)


def test_partitions_of_a_data_frame():
    ranges = [whole("a", 0, 300 * INDEX), whole("b", 0, 100 * INDEX), whole("c", 0, 900 * INDEX, alone=False)]
    assert divided(ranges, 0) == divided(ranges, 3) == ranges
    more = divided(ranges, 11)
    assert [one.place.topic for one in more].count("a") == 7
    assert [one.place.topic for one in more].count("b") == 3
    assert [(one.begin, one.end) for one in more if one.place.topic == "c"] == [(0, 900 * INDEX)]
    assert len(more) == 11
    assert divided([whole("a", None, 300 * INDEX)], 9)[0].begin is None
