"""Filters of SQL92: what they match, unknown values, and expressions that are none."""

import pytest

from dataproxy.hub.rocketmq.sql import SqlError, read_filter

PROPERTIES = {"a": "3", "b": "x", "t": "true", "TAGS": "red", "neg": "-2.5"}


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        ("a > 2", True), ("a >= 4", False), ("a < 3.5", True), ("a <= 3", True), ("a = 3", True), ("a <> 3", False),
        ("a = '3'", True), ("2 < a", True), ("a < 1e3", True), ("neg > -3", True), ("neg=-2.5", True),
        ("a BETWEEN 1 AND 3", True), ("a between 4 and 9", False), ("a NOT BETWEEN 4 AND 9", True),
        ("b IN ('x', 'y')", True), ("b NOT IN ('x')", False), ("b in ('y')", False), ("a IN (1, 3)", True),
        ("c IS NULL", True), ("a IS NULL", False), ("c IS NOT NULL", False), ("a is not null", True),
        ("t = TRUE", True), ("t", True), ("b", False), ("NOT t = FALSE", True), ("TAGS = 'red'", True),
        ("a > 2 AND b = 'x'", True), ("a > 5 OR b = 'x'", True), ("a > 5 OR b = 'y' AND t = TRUE", False),
        ("(a > 5 OR b = 'x') AND t = TRUE", True), ("NOT (a > 5)", True), ("NOT NOT a > 5", False),
        ("b = 'it''s' OR a = 3", True),
    ],
)  # fmt: skip
def test_what_matches(expression, matches):
    assert read_filter(expression).matches(PROPERTIES) is matches


@pytest.mark.parametrize(
    "expression",
    [
        "c > 1", "NOT c > 1", "c = 'x'", "c <> 'x'", "NOT c = 'x'", "c BETWEEN 1 AND 2", "c NOT BETWEEN 1 AND 2",
        "c IN ('x')", "c NOT IN ('x')", "c > 1 AND a = 3", "b > 1", "NOT b > 1", "b > 'a'", "a = TRUE", "a IN (NULL)",
    ],
)  # fmt: skip
def test_what_is_unknown_does_not_match(expression):
    assert not read_filter(expression).matches(PROPERTIES)


def test_unknown_and_false_is_false_and_unknown_or_true_is_true():
    assert read_filter("NOT (c > 1 AND a = 4)").matches(PROPERTIES)
    assert read_filter("c > 1 OR a = 3").matches(PROPERTIES)
    assert not read_filter("c > 1 OR a = 4").matches(PROPERTIES)


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("", "at character 0 there is the end; expected a property"),
        ("a >", "at character 3 there is the end"),
        ("a b", "at character 2 there is 'b'; expected AND, OR or the end"),
        ("(a = 1", "expected ')'"),
        ("a = 1)", "there is ')'"),
        ("a LIKE 'x'", "there is 'LIKE'"),
        ("a BETWEEN 1", "expected 'AND'"),
        ("a NOT 1", "expected BETWEEN or IN"),
        ("a IN ()", "there is ')'"),
        ("a = 1 && b = 2", "at character 5"),
        ("3a = 1", "at character 0"),
        ("a = 'x", "at character 3"),
        ("a IS 3", "expected 'NULL'"),
        ("(" * 60 + "a = 1" + ")" * 60, "48 levels"),
        ("a = 1 OR " * 1000 + "a = 2", "4096 are the most"),
    ],
)
def test_what_is_no_filter_is_refused_with_its_place(expression, says):
    with pytest.raises(SqlError, match=None) as caught:
        read_filter(expression)
    assert says in str(caught.value)


def test_a_long_chain_of_not_is_read_without_depth():
    assert read_filter("NOT " * 1000 + "a = 3").matches(PROPERTIES)


def test_a_number_that_is_longer_than_python_reads_is_unknown_or_infinite():
    assert not read_filter("a > 1").matches({"a": "9" * 400 + "x"})
    assert read_filter("a > 1").matches({"a": "9" * 5000})
