"""The line on the terminal."""

import io
import time
from types import SimpleNamespace

from dataproxy.spark.reporting.counters import Counts
from dataproxy.spark.reporting.progress import WriteProgress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Tracker:
    """Has had stage 1 from before; stage 2 comes with the block."""

    def __init__(self):
        self.asked = 0

    def getActiveStageIds(self):
        self.asked += 1
        return [1] if self.asked == 1 else [1, 2]

    def getStageInfo(self, stage):
        assert stage == 2
        return SimpleNamespace(numCompletedTasks=3, numTasks=4)


class Counters:
    def __init__(self):
        self.found = [Counts(acked=5), Counts(acked=1005)]

    def counts(self):
        return self.found[0] if len(self.found) == 1 else self.found.pop(0)


def session():
    tracker = Tracker()
    return SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))


def test_a_terminal_sees_tasks_and_rows():
    terminal = Terminal()
    with WriteProgress(session(), Counters(), file=terminal, interval=0.001):
        pass
    assert "\r\x1b[K3 of 4 tasks, 1,000 rows acknowledged, " in terminal.getvalue()
    assert terminal.getvalue().endswith(" rows/s\n")


def test_without_counters_there_are_tasks_alone():
    terminal = Terminal()
    with WriteProgress(session(), file=terminal, interval=0.001):
        pass
    assert terminal.getvalue().endswith("\r\x1b[K3 of 4 tasks\n")


def test_a_line_of_a_log_takes_the_place_of_the_unfinished_line():
    terminal = Terminal()
    with WriteProgress(session(), file=terminal, interval=0.001):
        while not terminal.getvalue():
            time.sleep(0.001)
        before = terminal.getvalue()
    assert before.endswith("\r")
    assert terminal.getvalue().endswith("\r\x1b[K3 of 4 tasks\n")


def test_what_is_no_terminal_sees_nothing():
    file = io.StringIO()
    with WriteProgress(session(), file=file):
        pass
    assert file.getvalue() == ""
