"""Load window, in-flight table, connection states and backoff."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.probe_io_parts import Loads, Table, backoff, change_allowed, state_name

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "golden" / "inlong.json").read_text())["load"]
SAMPLES = {vector["name"]: vector for vector in VECTORS if "samples" in vector}
WEIGHTS = next(vector["weights"] for vector in VECTORS if "weights" in vector)
UNKNOWN = -1


def by_age(samples: list[int]) -> int:
    """Return what the window by age has to give."""
    kept = [(load, WEIGHTS[29 - age]) for age, load in enumerate(reversed(samples[-30:])) if load != UNKNOWN]
    if not kept:
        return UNKNOWN
    weights = sum(weight for load, weight in kept if load > 0)
    return sum(load * weight for load, weight in kept) // weights if weights else 0


@pytest.mark.parametrize("name", SAMPLES)
def test_by_slot_equals_the_ancestor(name: str) -> None:
    assert Loads(SAMPLES[name]["samples"]).by_slot == SAMPLES[name]["average"]


@pytest.mark.parametrize("name", SAMPLES)
def test_by_age_follows_its_definition(name: str) -> None:
    assert Loads(SAMPLES[name]["samples"]).by_age == by_age(SAMPLES[name]["samples"])


def test_by_age_and_by_slot_agree_on_one_full_turn_alone() -> None:
    window = Loads(SAMPLES["thirty"]["samples"])
    assert window.by_age == window.by_slot == 28
    window = Loads(SAMPLES["wrapped"]["samples"])
    assert (window.by_slot, window.by_age) == (28, 30)  # by age the two newest, 32 and 31, weigh most
    window = Loads([10, 20, 30, 40, 50])
    assert (window.by_slot, window.by_age) == (30, by_age([10, 20, 30, 40, 50]))
    assert window.by_age == 42


@given(st.lists(st.sampled_from([UNKNOWN, 0, 1, 40, 65534]) | st.integers(0, 65534), max_size=100))
def test_any_samples(samples: list[int]) -> None:
    window = Loads(samples)
    assert window.by_age == by_age(samples)
    known = [load for load in samples[-30:] if load > 0]
    if known:
        assert min(known) <= window.by_age <= max(known)


def test_unknown_zero_and_no_sample_are_told_apart() -> None:
    assert Loads().by_age == UNKNOWN
    assert Loads([UNKNOWN] * 5).by_age == UNKNOWN
    assert Loads([0]).by_age == 0
    assert Loads([0, UNKNOWN, 0]).by_age == 0
    assert Loads([UNKNOWN, 40]).by_age == 40
    window = Loads([40])
    window.clear()
    assert window.by_age == UNKNOWN


def test_a_new_turn_of_the_ring_forgets_the_oldest() -> None:
    window = Loads([50_000] * 30)
    for _ in range(30):
        window.add(1)
    assert (window.by_age, window.by_slot) == (1, 1)


SEQS = st.integers(0, 60).map(lambda x: x * 0x1000) | st.integers(0, 300) | st.integers(0, (1 << 32) - 1)


@given(st.lists(st.tuples(st.sampled_from(["put", "put", "remove", "get", "again"]), SEQS), max_size=700))
def test_the_table_behaves_like_a_dict(ops: list[tuple[str, int]]) -> None:
    table, model = Table(), {}
    for what, seq in ops:
        if what == "put" and seq not in model:
            model[seq] = table.put(seq)
        elif what == "again" and seq in model:
            table.again(model[seq])
        elif what == "remove":
            table.remove(seq)
            model.pop(seq, None)
        assert table.get(seq) == model.get(seq)
        assert len(table) == len(model)
    assert {seq: table.get(seq) for seq in model} == model


def test_the_table_grows_and_keeps_everything() -> None:
    table = Table()
    model = {(seq * 2654435761) & 0xFFFFFFFF: None for seq in range(5000)}
    for seq in model:
        model[seq] = table.put(seq)
    for seq in list(model)[::2]:
        table.remove(seq)
        del model[seq]
    assert all(table.get(seq) == address for seq, address in model.items())
    assert len(table) == 2500


def test_the_table_of_state_changes() -> None:
    idle, connecting, active, backing, closed = range(5)
    allowed = {
        (idle, connecting), (idle, closed),
        (connecting, idle), (connecting, active), (connecting, backing), (connecting, closed),
        (active, idle), (active, backing), (active, closed),
        (backing, idle), (backing, connecting), (backing, closed),
    }  # fmt: skip
    assert {(a, b) for a in range(5) for b in range(5) if change_allowed(a, b)} == allowed
    assert not any(change_allowed(a, b) for a in (-1, 5, 99) for b in range(-1, 7))
    assert [state_name(state) for state in range(5)] == ["idle", "connecting", "active", "backoff", "closed"]


@given(st.integers(1, 100), st.integers(0, 10**8), st.integers(0, 10**10), st.integers(1, 1 << 60))
def test_backoff_bounds(attempt: int, base: int, most: int, seed: int) -> None:
    span = min(base * 2 ** (attempt - 1), max(most, 0)) if base < most else most
    wait = backoff(attempt, base, most, seed)
    assert 0 <= wait <= max(span, 0)


def test_backoff_is_spread() -> None:
    waits = {backoff(5, 1000, 100_000, seed) for seed in range(1, 200)}
    assert len(waits) > 150
