"""What it costs to show a text grows with its length alone, in C, and hardly with what is in it.

Cost is counted in calls, which no machine changes: one for each different character, and none for each character.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from dataproxy.shown import json_text, printable
from tests.campaigns.httppeers.names import HOSTILE_NAMES

SIZE = 1 << 12
CALLS = 60  # for a text, whatever is in it (measured: 29)
EACH = 8  # for each different character (measured: 4)

TEXTS = {
    **{name: (text * SIZE)[:SIZE] for name, text in HOSTILE_NAMES.items()},
    "deletes alone": "\x7f" * SIZE,
    "every second": "a\x7f" * (SIZE // 2),
    "the last one": "a" * (SIZE - 1) + "\x7f",
    "beside other scripts": "中" * (SIZE - 1) + "\x7f",
    "halves of pairs": "\udc80" * SIZE,
    "beyond the first plane": "\U000e0041" * SIZE,
}


def calls(call: Callable[[], object]) -> int:
    """Return how many calls of Python and of C functions a call makes."""
    made = 0

    def note(_frame: object, event: str, _what: Any) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    call()  # modules are there from here on
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return made


@pytest.mark.parametrize("name", TEXTS)
def test_json_makes_no_call_for_a_character(name):
    text = TEXTS[name]
    assert json.loads(json_text(text)) == text
    assert calls(lambda: json_text(text)) <= CALLS


@pytest.mark.parametrize("indent", [None, 2])
def test_json_of_many_texts_costs_what_ordinary_ones_cost(indent):
    usual = [{"group": "g", "stream": f"{i:06}" + "s" * 200} for i in range(500)]
    hostile = [{"group": "g", "stream": f"{i:06}" + "\x7f" * 200} for i in range(500)]
    assert json.loads(json_text(hostile, indent=indent)) == hostile
    least = calls(lambda: json_text(usual, indent=indent))
    assert calls(lambda: json_text(hostile, indent=indent)) <= 3 * least + CALLS


@pytest.mark.parametrize("name", TEXTS)
def test_escapes_make_no_call_for_a_character(name):
    text = TEXTS[name]
    assert calls(lambda: printable(text)) <= CALLS + EACH * len(set(text))


def test_a_line_of_json_with_something_to_obey_leaves_the_others_readable():
    text = json_text({"a": "日本", "b": "日\x7f本"}, indent=2)
    assert text.split("\n")[1:3] == ['  "a": "日本",', '  "b": "\\u65e5\\u007f\\u672c"']
