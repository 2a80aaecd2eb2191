"""Ages are time that passed: by the store's own clock, which no wall clock moves."""

import pytest

from dataproxy._core.server.store.core import StoreCore
from dataproxy._core.wire.inlong import message
from tests.native.probe_feed import append_entries, retain_once
from tests.native.probe_net import set_time
from tests.native.probe_store import OwnClock, follow_set_time

S = 1_000_000
HOUR = 3600 * S
WALL = 1_700_000_000_000
YEARS = 10 * 365 * 86_400_000
BOOT = bytes(range(16))


def at(us: int, jump: int = 0) -> None:
    """Set the time since boot, and a wall clock that is off by ``jump`` milliseconds."""
    set_time(us, WALL + us // 1000 + jump)


@pytest.fixture(params=["durable", "memory"])
def make(request, tmp_path):
    opened = []

    def open_store(**options) -> StoreCore:
        at(HOUR)
        opened.append(StoreCore(str(tmp_path) if request.param == "durable" else None, **options))
        follow_set_time(opened[-1])
        return opened[-1]

    yield open_store
    for store in opened:
        store.close()


def kept(store: StoreCore) -> int:
    while retain_once(store):
        pass
    return sum(log[4] for log in store.logs())


@pytest.mark.parametrize("jump", [YEARS, -YEARS, 86_400_000])
def test_a_wall_clock_that_jumps_deletes_nothing(make, jump):
    store = make(retention_ms=3_600_000)
    for n in range(10):
        at(HOUR + n * S, jump if 3 <= n < 7 else 0)
        append_entries(store, [("g", "s", b"%d" % n)])
        assert kept(store) == n + 1
    at(HOUR + 600 * S, jump)
    assert kept(store) == 10


@pytest.mark.parametrize("jump", [0, YEARS, -YEARS])
def test_time_that_passed_deletes_whatever_the_wall_clock_says(make, jump):
    store = make(retention_ms=3_600_000)
    append_entries(store, [("g", "s", b"first")])
    at(2 * HOUR - S, jump)
    append_entries(store, [("g", "s", b"second")])
    assert kept(store) == 2
    at(2 * HOUR + S, jump)
    assert kept(store) == 1
    at(3 * HOUR + S, jump)
    assert kept(store) == 0


@pytest.mark.parametrize("jump", [YEARS, -YEARS])
def test_a_wall_clock_that_jumps_does_not_end_the_window_of_ids(make, jump):
    store = make(dedupe_ids=100, dedupe_ms=600_000)
    one = message.encode(4, [({"groupId": "g", "streamId": "s", "sid": "p"}, [b"a"])])
    assert append_entries(store, [("g", "s", one)]) == [(0, "ok")]
    at(HOUR + S, jump)
    assert append_entries(store, [("g", "s", one)]) == [(-1, "known")]
    at(HOUR + 601 * S)
    assert append_entries(store, [("g", "s", one)]) == [(1, "ok")]


def test_between_two_runs_it_goes_on_by_what_both_clocks_say():
    at(HOUR)
    first = OwnClock(BOOT)
    at(HOUR + 5 * S)
    assert first.now() == 5000
    row = first.row()
    for passed_s, jump, gained_ms in ((60, 0, 60_000), (60, YEARS, 60_000), (60, -10_000, 50_000), (60, -YEARS, 0)):
        at(HOUR + 5 * S + passed_s * S, jump)
        assert OwnClock(BOOT, row).now() == 5000 + gained_ms


def test_over_a_reboot_it_stands_still():
    at(HOUR)
    first = OwnClock(BOOT)
    at(2 * HOUR)
    row = first.row()
    for boot in (BOOT[::-1], None):
        at(30 * HOUR, YEARS)
        second = OwnClock(boot, row)
        assert second.now() == 3_600_000
        at(31 * HOUR, YEARS)
        assert second.now() == 7_200_000


def test_a_clock_that_goes_back_stands_still():
    at(HOUR)
    clock = OwnClock(BOOT)
    at(HOUR + 10 * S)
    assert clock.now() == 10_000
    at(HOUR)
    assert clock.now() == 10_000


def test_a_durable_store_keeps_it(tmp_path):
    at(HOUR)
    store = StoreCore(str(tmp_path), retention_ms=3_600_000)
    follow_set_time(store)
    append_entries(store, [("g", "s", b"x")])
    at(HOUR + HOUR // 2)
    assert kept(store) == 1  # and the clock is written down
    store.close()
    del store
    again = StoreCore(str(tmp_path), retention_ms=3_600_000)
    follow_set_time(again)
    at(2 * HOUR + S, YEARS)
    assert kept(again) == 0
    again.close()
