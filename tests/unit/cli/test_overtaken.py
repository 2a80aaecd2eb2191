"""What is said of requests that a store has dropped before a command that follows it could read them."""

from __future__ import annotations

from dataproxy.cli.hub.overtaken import Log, Overtaken


class Told:
    """A command at a time of its own."""

    def __init__(self) -> None:
        self.now = 100.0
        self.lines: list[str] = []
        self.overtaken = Overtaken("g", self.lines.append, lambda: self.now)

    def look(self, first: int, end: int, *read: int, partition: int = 0) -> int:
        """Look at one log behind a page with entries of these offsets; return how many lines there are now."""
        self.overtaken.look([Log(partition, first, end)], [(partition, offset) for offset in read])
        return len(self.lines)


def test_what_was_gone_before_the_first_look_is_not_missing() -> None:
    told = Told()
    assert told.look(50, 60) == 0
    assert told.look(50, 70) == 0
    assert told.look(60, 80) == 0  # the page that was empty has seen so far: it was others'


def test_what_was_read_is_not_missing() -> None:
    told = Told()
    told.look(0, 3, 0, 1, 2)
    assert told.look(8, 9, 3, 3, 4, 8) == 1
    assert told.lines == ["up to 3 requests of group 'g' are missing here: the store dropped them unread"]


def test_a_log_that_is_new_is_missed_from_its_beginning_on() -> None:
    told = Told()
    told.look(0, 1, 0)
    assert told.look(1, 2, partition=5) == 1
    assert told.lines[0].startswith("up to 1 request of group 'g' is missing here")


def test_the_end_behind_an_empty_page_is_seen_with_the_next_empty_page() -> None:
    """What came between a page and the look behind it has not been read."""
    told = Told()
    told.look(0, 10, 8)
    told.look(0, 10)
    assert told.look(10, 11) == 0
    told.look(10, 15, 10)
    assert told.look(12, 15) == 1 and told.lines[0].startswith("up to 1 request")


def test_lines_come_ten_seconds_apart_with_all_that_is_missing_since() -> None:
    told = Told()
    told.look(0, 1, 0)
    assert told.look(2, 2) == 1
    told.now += 4
    assert told.look(5, 5) == 1
    told.now += 4
    assert told.look(7, 7) == 1
    told.now += 4
    assert told.look(7, 7) == 2
    assert told.lines[1].startswith("up to 5 requests")
