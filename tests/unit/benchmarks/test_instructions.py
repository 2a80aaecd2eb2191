"""The guard's reading, dividing and judging; nothing is counted here."""

import pytest

from benchmarks.callgrind import inclusive
from benchmarks.instructions import ACKS, BOUNDS, CALLS, COUNTS, LINES, ROWS, bounds, judge, least, per_record

WRITTEN = """\
version: 1
events: Ir

fl=(1) a.c
fn=(1) outer.constprop.0
10 5
+1 2
cfi=(2) b.c
cfn=(2) inner
calls=3 20
+1 30

fn=(2)
20 30

fn=(1)
* 1
cfn=(2)
calls=1 20
-1 10
"""


def test_inclusive_counts_add_up_over_the_places_of_a_function():
    assert inclusive(WRITTEN.splitlines(keepends=True)) == {"outer": 5 + 2 + 30 + 1 + 10, "inner": 30}


def test_costs_are_divided_by_what_was_done():
    costs = {
        "__pyx_f_9dataproxy_6stream__call_bound": 500 * CALLS,
        "__pyx_pw_9dataproxy_6Stream_9send_batch": 200 * ROWS,
        "__pyx_f_9dataproxy_7replies_take_bytes": 600 * ACKS,
        "__pyx_f_other": 1,
    }
    assert per_record(costs, ACKS) == {"send_nowait": 500, "send_batch": 200, "ack": 600}
    with pytest.raises(ValueError, match="0 functions"):
        per_record({}, ACKS)


def test_the_last_entry_holds_and_each_has_its_reason():
    entry = '[[{}]]\nbound = {}\nsince = "2026-01-01"\nreason = "{}"\n'
    whole = "".join(entry.format(name, bound, "why") for name in LINES for bound in (100, 90))
    assert bounds(whole) == dict.fromkeys(LINES, 90)
    with pytest.raises(ValueError, match="reason"):
        bounds(whole + entry.format("ack", 200, " "))
    with pytest.raises(ValueError, match="send_nowait"):
        bounds("")


def test_the_bounds_of_the_checkout_can_be_read():
    assert set(bounds(BOUNDS.read_text())) == set(LINES)


def test_a_passed_bound_is_told_with_both_numbers():
    assert judge({"ack": 600.0}, {"ack": 600.0}) == []
    assert judge({"ack": 601.0}, {"ack": 600.0})[0].startswith("ack costs 601 instructions, the bound is 600")


@pytest.mark.parametrize(
    ("runs", "figures", "counted"),
    [
        ([{"ack": 510.0, "send": 9.0}], {"ack": 510.0, "send": 9.0}, 1),
        ([{"ack": 520.0, "send": 9.0}, {"ack": 505.0, "send": 11.0}], {"ack": 505.0, "send": 9.0}, 2),
        ([{"ack": 530.0 - n, "send": 9.0 - n} for n in range(COUNTS + 1)],
         {"ack": 531.0 - COUNTS, "send": 10.0 - COUNTS}, COUNTS),
    ],
)  # fmt: skip
def test_what_passes_its_bound_is_counted_again_and_the_least_holds(runs, figures, counted):
    left = list(runs)
    assert least(lambda: left.pop(0), {"ack": 510.0, "send": 10.0}) == figures
    assert len(runs) - len(left) == counted
