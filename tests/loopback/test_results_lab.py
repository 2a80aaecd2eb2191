"""Short runs of what ``python -m tests.campaigns.results`` shows at full length."""

from dataproxy.hub import KINDS
from tests.campaigns.results.limits import limits
from tests.campaigns.results.refusals import refusals


def test_refusals_are_counted_exactly() -> None:
    facts, problems = refusals(20_000)
    assert problems == []
    assert facts["refused by the hub"]


def test_every_fault_leaves_every_message_its_result() -> None:
    facts, problems = limits(0.2, messages=40)
    assert set(facts) == set(KINDS)
    assert [p for p in problems if "a result after" not in p] == []  # how late it may be is a figure, not a test
