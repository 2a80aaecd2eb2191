"""Whose clock is off."""

import pytest

from dataproxy.doctor import Level, ManagerReport, ProxyReport
from dataproxy.doctor.clocks import clock_findings, span


def proxy(name, offset):
    return ProxyReport(name, name, name, 1, clock_offset=offset)


def found(manager, *proxies):
    managers = [ManagerReport("http://m", clock_offset=manager)]
    return clock_findings(managers, [proxy(f"p{i}", offset) for i, offset in enumerate(proxies)])


def test_clocks_that_agree():
    (one,) = found(0.4, -0.2, 1.1)
    assert (one.level, one.text) == (Level.OK, "within 1 s of http://m, p0, p1")


def test_nobody_told_a_time():
    assert clock_findings([ManagerReport("http://m")], [proxy("p", None)]) == []


@pytest.mark.parametrize(("offset", "way"), [(312.0, "behind"), (-312.0, "ahead of")])
def test_this_machine_is_off_where_most_others_say_so(offset, way):
    (one,) = found(offset, offset + 1, offset)
    assert (one.subject, one.level) == ("this machine", Level.WARNING)
    assert one.text.startswith(f"312 s (5.2 minutes) {way} http://m, p0, p1")
    assert "data time" in one.means


def test_more_than_an_hour_is_an_error():
    (one,) = found(8000.0)
    assert one.level is Level.ERROR


def test_one_proxy_among_several_is_off():
    (one,) = found(0.0, 0.0, 90.0)
    assert (one.subject, one.level, one.text) == ("p1", Level.WARNING, "its clock is 90 s ahead of this machine's")


def test_this_machine_and_one_proxy_that_differs_in_the_other_way():
    mine, other = found(100.0, 100.0, -100.0)
    assert mine.text.endswith("(2 of 3 say so)")
    assert (other.subject, other.level) == ("p1", Level.WARNING)


def test_two_halves_are_named_one_by_one():
    assert [one.subject for one in found(0.0, 50.0)] == ["p0"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(7.4, "7 s"), (119, "119 s"), (600, "600 s (10.0 minutes)"), (200_000, "200,000 s (2.3 days)")],
)
def test_spans(seconds, text):
    assert span(seconds) == text
