"""Pages of rows: each begins behind a key, and a key that is none is refused."""

from __future__ import annotations

import pytest

from dataproxy.hub.overview.pages import Key, cut, read_key, write_key


def test_pages_have_every_row_once_in_their_order() -> None:
    rows = [(f"g{i % 3}", i) for i in range(10)]
    found: list[Key] = []
    start: Key = ()
    while page := cut(rows, lambda row: row, start, 4):
        found += page
        start = read_key(write_key(page[-1]), (str, int))
    assert found == sorted(rows)


@pytest.mark.parametrize(
    "text", ["x", "{}", "[1]", '["a"]', '["a",1,2]', '["a","b"]', '["a",true]', "[" * 100_000, '["a",1.5]']
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a place"):
        read_key(text, (str, int))


def test_the_first_page_has_no_place() -> None:
    assert read_key("", (str,)) == ()
    assert read_key(write_key(("ü",)), (str,)) == ("ü",)
