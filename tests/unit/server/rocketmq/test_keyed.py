"""The table whose keys peers choose, beside a dictionary."""

import random

import pytest

from tests.native.probe_remoting import Table

SECRET = b"0123456789abcdef"


def test_rows_are_new_once_and_found_until_they_are_dropped():
    table = Table(SECRET, 10)
    assert (table.find(b"a"), table.rows(), table.count) == (None, [], 0)
    assert table.make(b"a", 5) == 0
    assert table.make(b"a", 6) == 5
    assert (table.find(b"a"), table.find(b"aa"), table.find(b"")) == (6, None, None)
    assert table.make(b"", 7) == 0
    table.drop(b"b")
    assert table.count == 2
    table.drop(b"a")
    assert table.rows() == [(b"", 7)]
    assert table.make(b"a", 8) == 0


def test_a_full_table_takes_no_new_row_and_changes_those_it_has():
    table = Table(SECRET, 3)
    for key in (b"a", b"b", b"c"):
        table.make(key, 1)
    assert table.make(b"d", 1) is None
    assert table.make(b"c", 2) == 1
    table.drop(b"a")
    assert table.make(b"d", 1) == 0
    assert sorted(table.rows()) == [(b"b", 1), (b"c", 2), (b"d", 1)]


@pytest.mark.parametrize("seed", range(5))
def test_it_is_a_dictionary(seed):
    chance, table, model = random.Random(seed), Table(SECRET, 600), {}
    keys = [chance.randbytes(chance.choice((1, 2, 8, 40))) for _ in range(900)]
    for step in range(6000):
        key = chance.choice(keys)
        if chance.random() < (0.7 if step < 3000 else 0.4):
            before = table.make(key, step + 1)
            if key not in model and len(model) == 600:
                assert before is None
            else:
                assert before == model.get(key, 0)
                model[key] = step + 1
        else:
            table.drop(key)
            model.pop(key, None)
        assert table.find(key) == model.get(key)
        assert table.count == len(model)
    assert sorted(table.rows()) == sorted(model.items())
    assert table.buckets >= 256  # it has grown, and no row was lost by that


def test_the_secret_chooses_the_buckets():
    keys = [bytes([i]) for i in range(64)]
    orders = set()
    for i in range(4):
        table = Table(bytes([i]) * 16, 64)
        for key in keys:
            table.make(key, 1)
        orders.add(tuple(key for key, _ in table.rows()))
    assert len(orders) == 4
