"""Ids read from stored containers, and containers written again without some messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproxy._core.wire.inlong import message
from tests.native.probe_window import stored_ids, without

FRAME = {"groupId": "g", "streamId": "s"}


def container(items, sid="p", version=4, compress=False, **attrs) -> bytes:
    own = {**FRAME, **({"sid": sid} if sid else {}), **attrs}
    return message.encode(version, [(own, items)], create_time_ms=1_700_000_000_000, compress=compress)


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize("version", [0, 1, 2, 4])
def test_messages_without_attributes_share_the_id_of_their_pack(version, compress):
    found = stored_ids(container([b"a", b"bcd"], version=version, compress=compress))
    assert found == (b"p", b"\0\0\0\1a\0\0\0\3bcd", [])


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize("version", [3, 4])
def test_messages_with_attributes_may_have_ids_of_their_own(version, compress):
    items = [(b"a", {"msgid": "x"}), (b"bcd", {"k": "v"}), (b"e", {"k": "v", "msgid": "y"})]
    found = stored_ids(container(items, version=version, compress=compress))
    assert found == (b"p", b"", [(b"x", b"a"), (b"", b"bcd"), (b"y", b"e")])


def test_similar_keys_and_blanks():
    text = "groupId=g&xsid=1&sidx=2& sid=3 &streamId=s"
    one = message.encode(4, [(text, [(b"a", " msgid=q ")])])
    assert stored_ids(one) == (b"3", b"", [(b"q", b"a")])
    assert stored_ids(container([b"a"], sid=None)) == (b"", b"\0\0\0\1a", [])
    assert stored_ids(message.encode(4, [("groupId=g&sid=&streamId=s", [(b"a", "msgid=")])])) == (
        b"",
        b"",
        [(b"", b"a")],
    )


@pytest.mark.parametrize("broken", [b"", b"\x0f\x04", b"\x0f\x09\x0f\x09"], ids=["empty", "short", "unknown"])
def test_what_is_no_container_has_no_ids(broken):
    assert stored_ids(broken) == "protocol error" or isinstance(stored_ids(broken), str)
    assert isinstance(without(broken, b"", False), str)


def test_a_container_of_several_groups_tells_nothing():
    two = message.encode(1, [(FRAME, [b"a"]), ({**FRAME, "x": "y"}, [b"b"])])
    assert isinstance(stored_ids(two), str)


def test_messages_without_attributes_cannot_be_taken_out():
    assert isinstance(without(container([b"a", b"b"]), b"\1\0", True), str)


BODIES = st.binary(min_size=1, max_size=20)
ITEMS = st.lists(st.tuples(BODIES, st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=12)


@given(items=ITEMS, version=st.sampled_from([3, 4]), compress=st.booleans(), plain=st.booleans(), sid=st.booleans())
def test_what_stays_is_what_it_was(items, version, compress, plain, sid):
    pairs = []
    for i, (body, named, extra, _) in enumerate(items):
        attrs = {**({"msgid": f"m{i}"} if named else {}), **({"k": f"v{i}"} if extra or not named else {})}
        pairs.append((body, attrs))
    whole = container(pairs, sid="p" if sid else None, version=version, compress=compress)
    dropped = bytes(drop for _, _, _, drop in items)
    stays = [not (drop if named else plain) for _, named, _, drop in items]
    short = without(whole, dropped, plain)
    if not any(stays):
        return  # nobody asks for nothing
    expected = []
    for i, (body, attrs) in enumerate(message.records(whole)):
        if stays[i]:
            if sid and "msgid" not in attrs:
                attrs = {**attrs, "msgid": f"p.{i}"}
            expected.append((body, attrs))
    found = list(message.records(short))
    for one in (*found, *expected):
        one[1].pop("cnt", None)
    assert found == expected
    before, after = message.decode(whole), message.decode(short)
    assert (after.version, after.create_time_ms, after.compressed) == (version, before.create_time_ms, compress)
    assert after.record_count == sum(stays)


def test_a_blank_text_gets_the_id_alone():
    whole = message.encode(4, [("groupId=g&streamId=s&sid=p", [(b"a", " "), (b"b", "msgid=x")])])
    short = without(whole, b"\0\1", False)
    assert [(body, attrs["msgid"]) for body, attrs in message.records(short)] == [(b"a", "p.0")]
