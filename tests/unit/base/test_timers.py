"""The deadline heap against a sorted list."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.probe_base import TimerHeap

N = 8  # few, so that a timer that is armed is often moved
OPS = st.lists(
    st.one_of(
        st.tuples(st.just("arm"), st.integers(0, N - 1), st.integers(0, 50)),
        st.tuples(st.just("cancel"), st.integers(0, N - 1), st.just(0)),
        st.tuples(st.just("pop"), st.integers(0, 50), st.just(0)),
    ),
    max_size=300,
)


def play(ops: list[tuple[str, int, int]]) -> None:
    """Do the same to the heap and to a dict, and compare after each step."""
    heap = TimerHeap()
    model: dict[int, int] = {}
    for what, a, b in ops:
        if what == "arm":
            heap.arm(a, b)
            model[a] = b
        elif what == "cancel":
            heap.cancel(a)
            model.pop(a, None)
        else:
            got = heap.pop(a)
            due = min((at for at in model.values() if at <= a), default=None)
            assert (got is None) == (due is None)
            if got is not None:
                number, at = got
                assert at == due == model.pop(number)
        assert len(heap) == len(model)
        assert heap.next() == (min(model.values()) if model else -1)
        assert all(heap.armed(i) == (i in model) for i in range(N))


@given(OPS)
def test_any_sequence_of_calls_behaves_like_a_sorted_list(ops: list[tuple[str, int, int]]) -> None:
    play(ops)


@pytest.mark.parametrize("seed", range(20))
def test_long_sequences_behave_like_a_sorted_list(seed: int) -> None:
    chance = random.Random(seed)
    kinds = ("arm", "arm", "arm", "cancel", "pop")
    play([(chance.choice(kinds), chance.randrange(N), chance.randrange(50)) for _ in range(1000)])


def test_many_timers_come_out_in_order() -> None:
    heap = TimerHeap()
    for i in range(5000):
        heap.arm(i, (i * 7919) % 5003)
    came = []
    while (got := heap.pop(10_000)) is not None:
        came.append(got[1])
    assert came == sorted(came)
    assert len(came) == 5000
