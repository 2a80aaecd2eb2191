"""Lists of packs, and the pool that recycles their buffers."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.probe_base import Pool, pack_result_references, random_below, status_text


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("take"), st.just(0), st.integers(64, 5000)),
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
            caps[made] = pool.take(made, 48, b)
            assert caps[made] >= b
            model.append(made)
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
    assert pool.take(2, 48, 120_000) == large
    assert pool.spare_bytes == 0


def test_a_buffer_with_half_of_the_room_is_grown() -> None:
    pool = Pool(1 << 20)
    pool.take(1, 64, 300_000)
    pool.give(1)
    assert pool.take(2, 64, 409_600) == 409_600
    assert pool.spare_bytes == 0  # taken and grown, not left beside a new one
    pool.give(2)
    assert pool.take(3, 64, 1_000_000) == 1_000_000
    assert pool.spare_bytes > 400_000  # too small for that


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


def test_a_result_lives_until_its_last_reference() -> None:
    assert pack_result_references() == [1, 2, 1]


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


def test_what_is_in_use_counts_whole_buffers() -> None:
    pool = Pool(1 << 20)
    cap = pool.take(1, 48, 5000)
    empty = pool.in_use - cap
    assert 256 < empty < 4096  # the pack itself
    cap = pool.room(1, 100_000)
    assert pool.in_use == cap + empty
    pool.give(1)
    assert pool.in_use == 0


def test_a_small_pack_gets_no_large_buffer() -> None:
    pool = Pool(1 << 20)
    for i in range(8):
        pool.take(i, 48, 60_000)
    for i in range(8):
        pool.give(i)
    assert pool.spare_bytes > 8 * 60_000
    for i in range(8):
        assert pool.take(i, 48, 600) < 2048
    assert pool.in_use < 8 * 4096
    assert pool.take(9, 48, 50_000) == 60_000  # fits, and is not much more
    assert pool.take(10, 48, 61_000) == 61_000


def test_a_buffer_is_fitted_to_what_it_holds() -> None:
    pool = Pool(1 << 20)
    pool.take(1, 48, 60_000)
    pool.room(1, 300)
    was = pool.in_use
    assert pool.fit(1) == 348
    assert was - pool.in_use == 60_000 - 348
    assert pool.head(1) == b"\xaa" * 16
    assert pool.fit(1) == 348
    pool.take(2, 48, 1000)
    pool.room(2, 900)
    assert pool.fit(2) == 1000  # little would be won


def test_spare_buffers_give_way() -> None:
    pool = Pool(1 << 20, 500_000)
    for i in range(6):
        pool.take(i, 48, 60_000)
    for i in range(6):
        pool.give(i)
    assert 6 * 60_000 < pool.spare_bytes <= 500_000
    for i in range(10, 15):
        pool.take(i, 48, 90_000)
        assert pool.in_use + pool.spare_bytes <= 500_000
    pool.take(20, 48, 90_000)  # whoever asks gets one; who may ask is the batcher's affair
    assert (pool.spare_bytes, pool.in_use > 500_000) == (0, True)
    pool.give(20)
    assert pool.spare_bytes == 0  # none is kept that would be beyond the bound


_STEPS = st.tuples(st.sampled_from(["take", "give", "room", "fit"]), st.integers(0, 30), st.integers(64, 90_000))


@given(st.lists(_STEPS, max_size=120))
def test_a_pool_keeps_its_account(ops: list) -> None:
    pool, caps, overhead = Pool(200_000, 400_000), {}, None
    for made, (what, which, n) in enumerate(ops):
        known = list(caps)
        if what == "take":
            caps[made] = pool.take(made, 48, n)
            assert n <= caps[made] <= n + n // 4 + 1024
        elif which < len(known):
            ident = known[which]
            if what == "give":
                del caps[ident]
                pool.give(ident)
            else:
                caps[ident] = pool.room(ident, n) if what == "room" else pool.fit(ident)
        if caps:
            overhead = overhead or (pool.in_use - sum(caps.values())) // len(caps)
            assert pool.in_use == sum(caps.values()) + overhead * len(caps)
        else:
            assert pool.in_use == 0
        assert pool.spare_bytes <= max(0, min(200_000, 400_000 - pool.in_use))
