"""A failing plan made small: actions are left out, by halves and then one by one, while it still fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.sim.cluster import Broken, Cluster
from tests.sim.plan import Action, Plan

__all__ = ["fails", "minimise"]


def fails(plan: Plan) -> str:
    """Return what breaks in a run of the plan, empty when nothing does."""
    try:
        Cluster(plan).run()
    except Broken as problem:
        return str(problem)
    return ""


def minimise(plan: Plan, *, tries: int = 500, broken: Callable[[Plan], str] = fails, law: str | None = None) -> Plan:
    """Return a part of a failing plan that fails by the same law, in at most ``tries`` runs."""
    wanted = law or _law(broken(plan))
    actions: Sequence[Action] = plan.actions
    size = max(1, len(actions) // 2)
    while size >= 1 and tries > 0:
        at, cut = 0, False
        while at < len(actions) and tries > 0:
            rest = (*actions[:at], *actions[at + size :])
            tries -= 1
            if _law(broken(plan.part(rest))) == wanted:
                actions, cut = rest, True
            else:
                at += size
        if not cut or size > len(actions):
            size = size // 2 if size > 1 else 0
    return plan.part(tuple(actions))


def _law(problem: str) -> str:
    """Return the name of the first law in the text of a problem."""
    _, _, text = problem.partition("us: ")
    return text.split(" ", 1)[0]
