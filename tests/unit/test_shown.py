"""Texts of others as they are shown: nothing to obey, nothing lost, no secret."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproxy.errors import DataProxyError, HubError
from dataproxy.shown import foreign, json_text, printable, without_secrets
from tests.campaigns.httppeers.names import HOSTILE_NAMES

TEXTS = st.text(st.characters(codec=None, exclude_categories=())) | st.sampled_from(sorted(HOSTILE_NAMES.values()))


@given(TEXTS)
def test_nothing_is_left_to_obey(text):
    assert printable(text).isprintable()
    if text.isprintable():
        assert printable(text) == text


@given(TEXTS)
def test_what_a_server_says_is_shown_in_one_short_line(text):
    assert foreign(text) == printable(text)
    long = foreign(text + "x" * 100_000)
    assert long.isprintable()
    assert long.endswith(f"... ({len(text) + 100_000} characters)")
    assert len(long) < 12_000  # escapes are longer than what they stand for


@pytest.mark.parametrize("name", [name for name, text in HOSTILE_NAMES.items() if "\\" not in text])
def test_escapes_can_be_read(name):
    text = HOSTILE_NAMES[name]
    assert printable(text).encode("ascii", "backslashreplace").decode("unicode_escape") == text


@given(st.recursive(TEXTS | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)))
def test_json_says_the_same_and_nothing_to_obey(value):
    for indent in (None, 2):
        text = json_text(value, indent=indent)
        assert text.replace("\n", "").isprintable()
        text.encode()
        assert json.loads(text) == json.loads(json.dumps(value))
    assert "\n" not in json_text(value)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_errors_are_one_line(name):
    for error in (
        DataProxyError(HOSTILE_NAMES[name]),
        HubError("x", hint=HOSTILE_NAMES[name], code=HOSTILE_NAMES[name]),
    ):
        assert str(error).isprintable()
        assert repr(error).isprintable()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://user:s3cret@h:8083/x", "http://***@h:8083/x"),
        ("http://user:s3@cret@h", "http://***@h"),
        ("http://s3cret@", "http://***@"),
        ("tcp://h1:1,user:s3cret@h2:2", "tcp://***@h2:2"),
        ("user:s3cret@h:8083", "***@h:8083"),
        ("http://u:s3cret://x@h", "***@h"),
        ("http://h/x?token=s3cret", "http://h/x?***"),
        ("http://h/x?token=s3cret#s3cret", "http://h/x?***"),
        ("http://h/x#s3cret", "http://h/x#***"),
        ("http://h/?a=s3cret@x", "http://***@x"),
        ("tcp://h?s3cret", "tcp://h?***"),
        ("tcp://h1:1,h2:2", "tcp://h1:1,h2:2"),
        ("http://h:8083/gate", "http://h:8083/gate"),
        ("", ""),
    ],
)
def test_secrets_of_urls(url, shown):
    assert without_secrets(url) == shown


SECRET = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1).map("s3cret".__add__)


@given(
    SECRET, st.sampled_from(("http", "https", "tcp", "ftp", "")), st.sampled_from(("{}@h", "u:{}@h", "h/?{}", "h#{}"))
)
def test_no_form_shows_the_secret(secret, scheme, form):
    assert "s3cret" not in without_secrets((f"{scheme}://" if scheme else "") + form.format(secret))
