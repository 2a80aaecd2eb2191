"""Short runs of the laboratory's endings and forks, and that they would see what they look for."""

import pytest

from dataproxy.hub import Hub
from tests.campaigns.endings.cases import ENDINGS, HUBS, End, Figures, problems, run_case
from tests.campaigns.forks.rounds import KINDS, check, run_rounds
from tests.campaigns.forks.rounds import Figures as ForkFigures


@pytest.mark.parametrize("state", HUBS)
@pytest.mark.parametrize("ending", ENDINGS)
def test_endings(ending: str, state: str) -> None:
    figures = run_case(ending, state, 1, 1000, slack=30.0)
    assert figures.violations == []
    assert figures.delivered == (0 if state == "down" else 1000)


@pytest.mark.parametrize("kind", KINDS)
def test_forks(kind: str) -> None:
    figures = run_rounds(kind, 1, children=3, messages=50)
    assert figures.violations == []
    assert figures.sent == figures.stored >= 150


ACCOUNTING = {"accepted": 9, "delivered": 9, "failed": 0, "expired": 0, "dropped": 0, "pending": 0}


def test_problems_of_an_ending_are_seen() -> None:
    def seen(
        ending: str = "return", hub: str = "up", status: int = 0, stderr: str = "", seconds: float = 0.0, **accounting
    ):
        return list(problems(End(status, {**ACCOUNTING, **accounting}, stderr, seconds), ending, hub, 9, slack=1.0))

    assert seen() == []
    assert len(seen(pending=1)) == len(seen(status=1)) == len(seen(stderr="x")) == 1
    assert "not everything" in seen(delivered=8, failed=1)[0]
    assert "balance" in seen(accepted=8)[0]
    line = "dataproxy: the process ended with a producer open, and 9 of 9 messages were not delivered (9 CLOSED)\n"
    assert "to end" in seen(hub="down", seconds=2.5)[0]
    assert "0 lines" in seen(hub="down", delivered=0, failed=9)[0]
    assert seen(hub="down", delivered=0, failed=9, stderr=line) == []
    assert "1 lines" in seen(stderr=line)[0]
    own = "Traceback (most recent call last):\nRuntimeError: the application's own error\n"
    assert seen("exception", status=1, stderr=own) == []
    assert "stderr" in seen("exception", status=1, stderr="Traceback of another\n" + own)[0]
    assert "stderr" in seen("exception", status=1, stderr="a word\n" + own)[0]


def test_lost_and_doubled_messages_of_a_round_are_seen() -> None:
    import dataproxy

    accounting = {"sent": [1, 0], "accepted": 1, "delivered": 1, "failed": 0}
    for bodies, lost, twice in (([b"r-p0-0", b"r-c0-0"], 0, 0), ([b"r-p0-0"], 1, 0), ([b"r-p0-0"] * 2, 1, 1)):
        figures = ForkFigures("fork")
        with Hub() as hub:
            with dataproxy.Producer(hub.target, group_id="g") as p:
                p.send_batch("s", bodies)
            check(figures, hub, accounting, "r", 1, 1)
        assert (figures.lost, figures.twice, bool(figures.violations)) == (lost, twice, lost + twice > 0)
    assert Figures("return", "up").violations == []
