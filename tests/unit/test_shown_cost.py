"""What it costs to show a text grows with its length, and hardly with what is in it.

Cost is processor time of this thread, the least of several tries, compared with that of an ordinary text of the same
length.  The margins are wide: what this guards against, a call for each character, is off by hundreds.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable

import pytest

from dataproxy.shown import json_text, printable
from tests.lab.httppeers.names import HOSTILE_NAMES

SIZE = 1 << 17
# A character as JSON may cost so many times as much as an ordinary one (measured: 2), and as an escape (measured: 30 of
# 200, as an ordinary text is only looked at).
TIMES_JSON = 20
TIMES_PRINTABLE = 100
SANITIZED = 10 if os.environ.get("DATAPROXY_SANITIZER") else 1

TEXTS = {
    **{name: (text * SIZE)[:SIZE] for name, text in HOSTILE_NAMES.items()},
    "deletes alone": "\x7f" * SIZE,
    "every second": "a\x7f" * (SIZE // 2),
    "the last one": "a" * (SIZE - 1) + "\x7f",
    "beside other scripts": "中" * (SIZE - 1) + "\x7f",
    "halves of pairs": "\udc80" * SIZE,
    "beyond the first plane": "\U000e0041" * SIZE,
}


def cost(call: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    best = 1e9
    for _ in range(7):
        begin = time.thread_time()
        call()
        best = min(best, time.thread_time() - begin)
    return best


ORDINARY = "An ordinary text, with nothing to escape. " * (SIZE // 42)


@pytest.mark.parametrize("name", TEXTS)
def test_json_costs_what_an_ordinary_text_costs(name):
    text = TEXTS[name]
    assert json.loads(json_text(text)) == text
    usual = cost(lambda: json_text(ORDINARY)) / len(ORDINARY)
    assert cost(lambda: json_text(text)) / len(text) < SANITIZED * TIMES_JSON * usual


@pytest.mark.parametrize("indent", [None, 2])
def test_json_of_many_texts_costs_what_ordinary_ones_cost(indent):
    usual = [{"group": "g", "stream": f"{i:06}" + "s" * 200} for i in range(500)]
    hostile = [{"group": "g", "stream": f"{i:06}" + "\x7f" * 200} for i in range(500)]
    assert json.loads(json_text(hostile, indent=indent)) == hostile
    least = cost(lambda: json_text(usual, indent=indent))
    assert cost(lambda: json_text(hostile, indent=indent)) < SANITIZED * TIMES_JSON * least


@pytest.mark.parametrize("name", TEXTS)
def test_escapes_cost_little_more_than_an_ordinary_text(name):
    text = TEXTS[name]
    usual = cost(lambda: printable(ORDINARY)) / len(ORDINARY)
    assert cost(lambda: printable(text)) / len(text) < SANITIZED * TIMES_PRINTABLE * usual


def test_a_line_of_json_with_something_to_obey_leaves_the_others_readable():
    text = json_text({"a": "日本", "b": "日\x7f本"}, indent=2)
    assert text.split("\n")[1:3] == ['  "a": "日本",', '  "b": "\\u65e5\\u007f\\u672c"']
