"""Whole producer and hubs on virtual time: ``make sim SEEDS=1000000`` runs more of the same."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from tests.sim.cluster import Broken, Cluster
from tests.sim.minimise import minimise
from tests.sim.plan import FAULTS, NETWORK_FAULTS, Action, Plan, make_plan

# DATAPROXY_SIM_SEEDS=n plays a quarter of n; a sanitizer's run is shorter.
SEEDS = int(os.environ.get("DATAPROXY_SIM_SEEDS", "800" if os.environ.get("DATAPROXY_SANITIZER") else "4000")) // 4
SLICES = 20


@pytest.mark.parametrize("slice_", range(SLICES))
def test_every_law_holds(slice_: int) -> None:
    for seed in range(slice_, SEEDS, SLICES):
        Cluster(make_plan(seed)).run()


def test_a_seed_replays_exactly() -> None:
    assert [Cluster(make_plan(seed)).run() for seed in range(30)] == [
        Cluster(make_plan(seed)).run() for seed in range(30)
    ]


def test_the_seeds_reach_every_outcome_and_every_fault() -> None:
    plans = [make_plan(seed) for seed in range(300)]
    seen = {action.kind for plan in plans for action in plan.actions}
    assert seen >= {*FAULTS, *NETWORK_FAULTS}, {*FAULTS, *NETWORK_FAULTS} - seen
    totals = [Cluster(plan).run() for plan in plans[:100]]
    for key in ("delivered", "failed", "expired", "twice", "refused", "untold"):
        assert sum(total[key] for total in totals) > 20, key


def _loses_after_resets(plan: Plan) -> str:
    """Stand for a client that loses something when a reset follows a batch."""
    kinds = [action.kind for action in plan.actions]
    if "batch" in kinds and "reset" in kinds[kinds.index("batch") :]:
        return "seed 1 at 2 us: S3 lost"
    return "seed 1 at 2 us: S1 other" if not kinds else ""


def test_a_failing_plan_is_made_small() -> None:
    plan = next(p for p in map(make_plan, range(1000)) if _loses_after_resets(p).endswith("lost") and p.faults > 5)
    small = minimise(plan, broken=_loses_after_resets)
    assert [action.kind for action in small.actions] == ["batch", "reset"]


def test_a_lie_is_found() -> None:
    """A hub that answers what it did not store breaks S3, and the run says so."""
    plan = replace(
        make_plan(0),
        nodes=1,
        first_list=(0,),
        close_after=None,
        actions=(Action(0, "send", (1, 0, "s0", "", None, None, False)),),
    )
    cluster = Cluster(plan)
    cluster.hubs[0].stored = lambda: iter(())  # type: ignore[method-assign]
    with pytest.raises(Broken, match=r"S3 .* was reported delivered and is at no hub"):
        cluster.run()


def test_only_the_guilty_are_refused_for_their_content() -> None:
    """Every hub refuses marked messages, alone or among others; what becomes of the others is as it was."""
    totals = [Cluster(replace(make_plan(seed), guilty=0.2)).run() for seed in range(2000, 2060)]
    assert sum(total["failed"] for total in totals) > 300
    assert sum(total["delivered"] for total in totals) > 1000
