"""Keys that a producer refuses, in every call that takes one."""

import pytest

import dataproxy
from tests.support.scripted import Scripted

ONE_TO = "give bytes or text of 1 to 1024 bytes, or leave the key out if the order does not matter [BAD_KEY]"
BAD = [
    ("", f"a key is empty; {ONE_TO}"),
    (b"", f"a key is empty; {ONE_TO}"),
    (7, "a key is bytes or text, not 'int'; give bytes or text, e.g. str(key) [BAD_KEY]"),
    (("a", "b"), "a key is bytes or text, not 'tuple'; give bytes or text, e.g. str(key) [BAD_KEY]"),
    (b"k" * 1025, "a key of 1025 bytes is over the limit of 1024 bytes; give a digest of it [BAD_KEY]"),
    ("é" * 513, "a key of 1026 bytes is over the limit of 1024 bytes; give a digest of it [BAD_KEY]"),
    ("a\ud800", "the key 'a\\ud800' holds half of a surrogate pair; give valid text, or bytes [BAD_KEY]"),
]


@pytest.mark.parametrize(("key", "text"), BAD)
def test_bad_keys(key, text):
    with Scripted() as server, dataproxy.Producer(server.target, group_id="g", ordering="key") as p:
        s = p.stream("s")
        for call in (
            lambda: s.send(b"x", key=key),
            lambda: s.send_nowait(b"x", key=key),
            lambda: p.send("s", b"x", key=key),
            lambda: p.send_nowait("s", b"x", key=key),
            lambda: p.send_batch("s", [b"x"], key=key),
        ):
            with pytest.raises(dataproxy.InvalidMessageError) as caught:
                call()
            assert str(caught.value) == text
        assert p.report().accepted == 0
        s.send(b"x", key=b"k" * 1024).result()


def test_a_key_without_ordering():
    with Scripted() as server, dataproxy.Producer(server.target, group_id="g") as p:
        for call in (p.send, p.send_nowait, lambda stream, body, key: p.send_batch(stream, [body], key=key)):
            with pytest.raises(dataproxy.ConfigError) as caught:
                call("s", b"x", key="k")
            assert str(caught.value) == (
                "key= was given, but ordering is 'none'; open the producer with ordering='key', or leave the key out: "
                "without ordering it has no effect [CONFIG]"
            )
        assert p.report().accepted == 0
