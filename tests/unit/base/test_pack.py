"""Lists of packs, and the pool that recycles their buffers."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproxy._core.testing.probe_base import Pool, random_below, status_text, verdict_references


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("take"), st.booleans(), st.integers(64, 5000)),
            st.tuples(st.just("give"), st.integers(0, 30), st.just(0)),
            st.tuples(st.just("room"), st.integers(0, 30), st.integers(0, 9000)),
        ),
        max_size=120,
    )
)
def test_lists_and_pool_behave_like_a_list(ops: list) -> None:
    pool, model, caps, made = Pool(20_000), [], {}, 0
    for what, a, b in ops:
        if what == "take":
            caps[made] = pool.take(made, 48, b, a)
            assert caps[made] >= b
            model.insert(0 if a else len(model), made)
            made += 1
        elif a < len(model):
            if what == "give":
                pool.give(model.pop(a))
            else:
                assert pool.room(model[a], b) >= b
        assert pool.order() == model
        assert pool.spare_bytes <= 20_000


def test_a_buffer_is_used_again() -> None:
    pool = Pool(1 << 20)
    pool.take(1, 48, 2048)
    large = pool.room(1, 100_000)
    pool.give(1)
    assert large < pool.spare_bytes < large + 2048
    assert pool.take(2, 48, 2048) == large
    assert pool.spare_bytes == 0


def test_more_than_the_pool_keeps_is_released() -> None:
    pool = Pool(10_000)
    for i in range(20):
        pool.take(i, 48, 4096)
    for i in range(20):
        pool.give(i)
    assert 0 < pool.spare_bytes <= 10_000


def test_room_grows_geometrically() -> None:
    pool = Pool(0)
    pool.take(1, 48, 100)
    caps = sorted({pool.room(1, 1000) for _ in range(1000)})
    assert len(caps) < 25
    assert all(large <= 2 * small for small, large in pairwise(caps))


def test_a_large_pack_takes_little_more_than_it_needs() -> None:
    pool = Pool(0)
    pool.take(1, 48, 100)
    assert 262_144 <= pool.room(1, 262_144) <= 1.3 * 262_144


def test_a_verdict_lives_until_its_last_reference() -> None:
    assert verdict_references() == [1, 2, 1]


@pytest.mark.parametrize("n", [1, 2, 7, 1000, 1 << 40])
def test_random_numbers_stay_below_their_bound_and_replay(n: int) -> None:
    values = random_below(42, n, 1000)
    assert all(0 <= value < n for value in values)
    assert values == random_below(42, n, 1000)
    assert len(set(values)) > min(n, 500) * 0.9
    assert random_below(0, 0, 3) == [0, 0, 0]


def test_every_status_has_a_name() -> None:
    names = [status_text(status) for status in range(-8, 7)]
    assert len(set(names)) == len(names)
    assert status_text(99) == "unknown status"
