"""The laboratory of crash points: a short run, and that it would see what it looks for."""

import pytest

from dataproxy._core.server.store.core import StoreCore
from dataproxy._core.wire.inlong import message
from tests.campaigns.crashpoints.hubs import Nursery, build_killer
from tests.campaigns.crashpoints.ledger import Ledger
from tests.campaigns.crashpoints.rounds import EVENTS, Rounds, events
from tests.native.probe_crash import STAGES
from tests.native.probe_feed import append_entries


@pytest.fixture(scope="module")
def nursery(tmp_path_factory):
    with Nursery(build_killer(tmp_path_factory.mktemp("killer"))) as one:
        yield one


def test_every_stage_is_an_event():
    assert set(STAGES) < set(EVENTS)


@pytest.mark.parametrize("seed", [11, 12])
def test_nothing_acknowledged_is_lost_and_nothing_is_stored_twice(nursery, tmp_path, seed):
    rounds = Rounds(nursery, tmp_path / "store", seed)
    rounds.run(events(seed, 12))
    assert rounds.problems == []
    assert rounds.kills.total() == 12
    assert rounds.ledger.read == rounds.accepted + len(rounds.canary.done)


@pytest.mark.parametrize("event", sorted({*EVENTS} - {"any time", "dropped", "forgotten"}))
def test_a_hub_ends_at_this_event(nursery, tmp_path, event):
    rounds = Rounds(nursery, tmp_path / "store", 1)
    rounds.run([event, event])
    assert rounds.problems == []
    assert rounds.kills == {event: 2}


def store_of(path, *numbers: int) -> None:
    store = StoreCore(str(path))
    for number in numbers:
        value = message.encode(4, [({"groupId": "g", "streamId": "s"}, [b"%d." % number])])
        assert append_entries(store, [("g", "s", value)])[0][1] == "ok"
    store.close()


def test_the_ledger_tells_what_is_lost(tmp_path):
    store_of(tmp_path / "store", 1, 2)
    ledger = Ledger(tmp_path / "store")
    ledger.check({1, 2})
    assert ledger.problems == []
    ledger.check({1, 2, 3})
    assert ledger.problems == ["1 acknowledged messages are not in the store: [3]"]


def test_the_ledger_tells_what_is_stored_twice(tmp_path):
    store_of(tmp_path / "store", 1, 2, 1)
    ledger = Ledger(tmp_path / "store")
    ledger.check({1, 2})
    assert [problem.partition(" (")[0] for problem in ledger.problems] == ["message 1 is stored twice"]


def test_the_ledger_tells_when_there_is_no_store(tmp_path):
    ledger = Ledger(tmp_path / "store")
    ledger.check(set())
    assert ledger.problems == []
    ledger.check({1})
    assert len(ledger.problems) == 2
