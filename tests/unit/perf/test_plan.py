"""Plans of arrivals: what texts mean, and when messages are due."""

import numpy as np
import pytest

from dataproxy import ConfigError
from dataproxy.perf import Piece, parse_plan
from tests.native.probe_perf import arrivals


def due(text: str, **options: object) -> np.ndarray:
    """Return the arrivals of a text's plan in seconds."""
    return np.array(arrivals(parse_plan(text).share(1), **options)) / 1e6  # type: ignore[arg-type]


def test_a_constant_rate_has_equal_gaps() -> None:
    times = due("1000:2s")
    assert len(times) == 2000 and times[0] == 0
    assert np.diff(times) == pytest.approx(0.001, abs=2e-6)


def test_threads_take_turns_in_one_constant_rate() -> None:
    plan = parse_plan("900:1s")
    together = sorted(moment for i in range(3) for moment in arrivals(plan.share(3), phase=i / 3))
    assert len(together) == 900
    assert np.diff(together) == pytest.approx(1e6 / 900, abs=3)


@pytest.mark.parametrize(("text", "threads"), [("100:1s", 3), ("0.7:10s", 7), ("1000:0.3", 6), ("33:3s,66:1.5s", 4)])
def test_shares_make_no_message_more_or_less(text: str, threads: int) -> None:
    plan = parse_plan(text)
    counts = [len(arrivals(plan.share(threads), phase=i / threads)) for i in range(threads)]
    assert sum(counts) == round(plan.messages)


def test_steps_have_their_rates_and_their_times() -> None:
    times = due("100:1s,300:500ms,0:1s,50:2s")
    counts, _ = np.histogram(times, [0, 1, 1.5, 2.5, 4.5])
    assert counts.tolist() == [100, 150, 0, 100]


@pytest.mark.parametrize("text", ["0-2000:2s", "2000-0:2s", "500-1500:2s"])
def test_a_ramp_grows_evenly(text: str) -> None:
    times = due(text)
    begin, end = (float(rate) for rate in text.partition(":")[0].split("-"))
    assert len(times) == pytest.approx(2000, abs=1)
    for moment in np.linspace(0, 2, 21):
        expected = begin * moment + (end - begin) / 4 * moment**2
        assert np.count_nonzero(times < moment) == pytest.approx(expected, abs=2)


def test_bursts_are_due_at_once_beside_the_rate() -> None:
    times = due("100+50/500ms:2s")
    assert len(times) == 400
    at, how_many = np.unique(times, return_counts=True)
    assert at[how_many >= 50].tolist() == [0, 0.5, 1, 1.5]


def test_a_last_period_may_be_short() -> None:
    plan = parse_plan("10-30+5/400ms:1s")
    assert plan.seconds == pytest.approx(1) and plan.messages == pytest.approx(20 + 15)
    assert plan.pieces[-1] == Piece(pytest.approx(0.2), pytest.approx(26), pytest.approx(30), 5)


def test_gaps_of_a_poisson_process_are_exponential() -> None:
    times = due("10k:20s", poisson=True, seed=5)
    gaps = np.diff(times) * 10_000
    assert len(times) == pytest.approx(200_000, abs=6 * 200_000**0.5)
    assert gaps.mean() == pytest.approx(1, abs=0.02)
    assert gaps.std() == pytest.approx(1, abs=0.02)
    assert [np.count_nonzero(gaps > x) / len(gaps) for x in (1, 2, 3)] == pytest.approx(
        [0.3679, 0.1353, 0.0498], abs=0.01
    )


def test_neighbouring_seeds_give_independent_arrivals() -> None:
    counts = np.array([len(due("1000:4s", poisson=True, seed=seed)) for seed in range(1, 101)])
    assert abs(counts.mean() - 4000) < 5 * (4000 / len(counts)) ** 0.5
    assert 0.6 < counts.var() / 4000 < 1.6


def test_a_seed_gives_the_same_arrivals_again() -> None:
    assert due("1k:1s", poisson=True, seed=9).tolist() == due("1k:1s", poisson=True, seed=9).tolist()
    assert due("1k:1s", poisson=True, seed=9).tolist() != due("1k:1s", poisson=True, seed=10).tolist()


def test_a_poisson_ramp_has_its_rates() -> None:
    times = due("0-20000:2s", poisson=True, seed=3)
    early = np.count_nonzero(times < 1)
    assert early == pytest.approx(5000, abs=6 * 5000**0.5)
    assert len(times) - early == pytest.approx(15_000, abs=6 * 15_000**0.5)


@pytest.mark.parametrize(
    "wrong",
    ["", "100", "100:", ":5s", "x:5s", "100:5parsecs", "100:-1s", "100:0s", "0:5s", "1-2-3:5s", "100+5:5s",
     "100+5/0s:5s", "1.2.3:5s", "100:5s,", "5G:1s", "1000M:1s", "1+1/1us:10s", "nan:1s", "100:inf", "1e5:1s"],
)  # fmt: skip
def test_what_is_no_plan_is_refused(wrong: str) -> None:
    with pytest.raises(ConfigError):
        parse_plan(wrong)


def test_arrivals_of_another_kind_are_refused() -> None:
    with pytest.raises(ConfigError, match="constant or poisson"):
        parse_plan("1:1s", arrivals="uniform")
