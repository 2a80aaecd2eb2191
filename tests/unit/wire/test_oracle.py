"""The compiled wire against an independent codec in plain Python, on random input."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproxy._core.wire.inlong import message
from dataproxy.errors import RemoteProtocolError
from dataproxy.numbers import FAMILY_BINARY_LINES
from tests.native.probe_wire import ProbeError, Server, Wire, pack
from tests.support.reference import containers, frames, server
from tests.support.reference.vectors import NOW_MS

WIRE = Wire()
KEYS = ["groupId", "streamId", "dt", "cnt", "cp", "mt", "isAck", "syncSend", "proxySend", "partitionKey", "rt", "rtms",
        "mid", "messageId", "node2ip", "rtime2", "k", "", " x"]  # fmt: skip
VALUES = ["", " ", "g", "true", "false", "FALSE", "1", "-5", "1700000000000", "99999999999999999999", "pb", "x y", "é"]
CHAOS = st.text(alphabet="ab&= \t()é", max_size=12)

attributes = st.lists(
    st.one_of(st.builds("{}={}".format, st.sampled_from(KEYS), st.sampled_from(VALUES)), CHAOS), max_size=7
).map("&".join)
named_attributes = attributes.map(lambda text: "groupId=g&streamId=s&" + text if text else "groupId=g")
texts = st.one_of(attributes, named_attributes).map(str.encode)
bodies = st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=5)
pair_texts = st.lists(st.sampled_from(["a=1", "b=2", "c", "groupId=x", "é=ö"]), min_size=1, max_size=3).map(
    lambda parts: "&".join(parts).encode()
)


@st.composite
def contents(draw):
    """Bodies of every layout, some with a cut or a changed byte."""
    kind = draw(st.sampled_from(["items", "pairs", "lines", "raw"]))
    if kind == "items":
        body = frames.join_items(draw(bodies))
    elif kind == "pairs":
        body = frames.join_pairs(draw(st.lists(st.tuples(st.binary(min_size=1, max_size=9), pair_texts), min_size=1,
                                               max_size=4)))  # fmt: skip
    elif kind == "lines":
        body = b"\n".join(draw(bodies)) + draw(st.sampled_from([b"", b"\n", b"\r\n"]))
    else:
        body = draw(st.binary(max_size=24))
    if draw(st.booleans()) and draw(st.booleans()):
        body = body[: draw(st.integers(0, len(body)))] + draw(st.binary(max_size=5))
    if draw(st.booleans()) and body and draw(st.booleans()):
        body = pack(body)
    return body


@st.composite
def requests(draw):
    """Data frames of types 2 to 7, now and then with a changed byte."""
    text = draw(texts)
    body = draw(contents())
    kind = draw(st.integers(2, 7))
    if kind < 7:
        frame = frames.text_frame(kind | draw(st.sampled_from([0, 0x20, 0xC0])), body, text)
    else:
        frame = frames.binary_frame(
            body, text, uniq=draw(st.integers(0, 2**32 - 1)),
            ext=draw(st.sampled_from([4, 4, 4, 5, 6, 7, 0x24, 12, 0])),
            count=draw(st.sampled_from([0, 1, 3, 65535])), seconds=draw(st.integers(0, 2**32 - 1)),
            flags=draw(st.sampled_from([0, 0, 0x20, 0x40, 0x60, 0x80, 0xA0])),
            group_num=draw(st.sampled_from([0, 0, 7])),
        )  # fmt: skip
    if draw(st.booleans()) and draw(st.booleans()):
        at = draw(st.integers(5, len(frame) - 1))
        frame = frame[:at] + bytes([draw(st.integers(0, 255))]) + frame[at + 1 :]
    return frame


def without_text(reply):
    """Return a reply's fields without the words that the specification leaves open."""
    return {key: value for key, value in WIRE.parse_reply(reply).items() if key not in ("message", "text", "seq")}


def same_reaction(frame, *, compat, known=None, service_code=0):
    ours = Server(compat=compat, groups=known, service_code=service_code).serve(frame, NOW_MS)
    oracle = server.serve(frame, NOW_MS, compat=compat, known=known, service_code=service_code)
    assert (ours["action"], ours["code"]) == (oracle.action, oracle.code)
    if oracle.open_text and oracle.reply:
        assert without_text(ours["reply"]) == without_text(oracle.reply)
        echoed = server.serve(frame, NOW_MS, compat=compat).reply
        assert ours["reply"][:4] or echoed
    else:
        assert ours["reply"] == oracle.reply
    return ours, oracle


@given(requests())
def test_strict_server(frame):
    ours, oracle = same_reaction(frame, compat=False)
    if oracle.action != "store":
        assert ours["entry"] == b""
        return
    found = list(message.records(ours["entry"]))
    assert [body for body, _ in found] == oracle.records
    assert ours["records"] == len(oracle.records)
    assert found == containers.decode(ours["entry"])
    for _, attrs in found:
        for key, value in oracle.attrs.items():
            if frame[4] & 31 != 7 or key not in (b"dt", b"cnt"):
                assert attrs[key.decode("utf-8", "replace")] == value.decode("utf-8", "replace")


@given(requests(), st.sampled_from([None, set(), {b"g"}]), st.sampled_from([0, 0, 1, 2]))
def test_strict_server_refuses_alike(frame, known, service_code):
    same_reaction(frame, compat=False, known=known, service_code=service_code)


@given(requests().filter(lambda frame: frame[4] & 31 != 6), st.sampled_from([None, {b"g"}]))
def test_compat_server(frame, known):
    ours, oracle = same_reaction(frame, compat=True, known=known)
    if oracle.action == "store" and frame[4] & 31 != 7:
        assert [body for body, _ in message.records(ours["entry"])] == oracle.records


@given(bodies, st.sampled_from([(7, 0), (5, 0)]), st.booleans(), st.integers(0, 2**32 - 1), st.integers(0, 2**41))
def test_what_the_client_frames_the_oracle_accepts(items, form, compressed, seq, dt):
    family, layout = form
    body = frames.join_items(items)
    frame = WIRE.frame(pack(body) if compressed else body, b"groupId=g&streamId=s&k=v", family=family, items=layout,
                       compressed=compressed, seq=seq, count=len(items), data_time_ms=dt)  # fmt: skip
    outcome = server.serve(frame, NOW_MS)
    assert (outcome.action, outcome.records) == ("store", items)
    reply = frames.parse_reply(outcome.reply)
    assert (reply.code, reply.seq) == (0, seq)
    ours = Server().serve(frame, NOW_MS)
    assert ours["data_time_ms"] == (dt // 1000 * 1000 if family == 7 else dt)


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=30), st.just(b"k=v")), min_size=1, max_size=4), st.booleans(),
       st.sampled_from([7, 6, 5]))  # fmt: skip
def test_pairs_that_the_client_frames_the_oracle_accepts(pairs, compressed, family):
    body = frames.join_pairs(pairs)
    frame = WIRE.frame(pack(body) if compressed else body, b"groupId=g", family=family, items=1, compressed=compressed)
    assert server.serve(frame, NOW_MS).records == [record for record, _ in pairs]


@given(
    st.lists(st.binary(min_size=1, max_size=30).filter(lambda line: b"\n" not in line), min_size=1, max_size=4),
    st.sampled_from([2, 3, FAMILY_BINARY_LINES]),
    st.booleans(),
    st.sampled_from([b"", b"10.0.0.1", b"fd00::1"]),
)
def test_lines_that_the_client_frames_the_oracle_accepts(lines, family, compressed, origin):
    body = b"\n".join(lines)
    compressed = compressed and family != FAMILY_BINARY_LINES
    frame = WIRE.frame(pack(body) if compressed else body, b"groupId=g&streamId=s", family=family, items=2,
                       compressed=compressed, count=len(lines), origin=origin, origin_ms=1_700_000_000_000)  # fmt: skip
    outcome = server.serve(frame, NOW_MS)
    assert outcome.action == "store"
    ours = list(message.records(Server().serve(frame, NOW_MS)["entry"]))
    assert [record for record, _ in ours] == outcome.records
    if family == FAMILY_BINARY_LINES or not body.endswith(b"\r"):
        assert outcome.records == [body]
    assert ours[0][1].get("node1ip", "") == (origin.decode() if family == FAMILY_BINARY_LINES else "")


reply_texts = st.lists(
    st.one_of(
        st.builds("{}={}".format, st.sampled_from(["dpIp", "dpIP", "errCode", "errMsg", "mid", "messageId", "rt"]),
                  st.sampled_from(["", "0", "115", "-1", "+7", "4294967295", "4294967296", "x=y", " ", "99999999999"])),
        CHAOS,
    ),
    max_size=8,
).map(lambda parts: "&".join(parts).encode())  # fmt: skip


@given(reply_texts, st.sampled_from([2, 3, 4, 5, 6]), st.binary(max_size=3))
def test_text_replies(text, kind, body):
    compare_reply(frames.text_frame(kind, body, text))


@given(reply_texts, st.integers(0, 2**32 - 1))
def test_binary_replies(text, uniq):
    inner = b"\x07" + uniq.to_bytes(4) + len(text).to_bytes(2) + text + b"\xee\x01"
    compare_reply(len(inner).to_bytes(4) + inner)


@given(st.binary(min_size=1, max_size=40))
def test_random_replies(inner):
    compare_reply(len(inner).to_bytes(4) + inner)


@given(st.sampled_from([5, 7, 8]), st.binary(max_size=30))
def test_random_replies_of_known_types(kind, inner):
    compare_reply((len(inner) + 1).to_bytes(4) + bytes([kind]) + inner)


def compare_reply(frame):
    expected = frames.parse_reply(frame)
    if expected is None:
        with pytest.raises(ProbeError):
            WIRE.parse_reply(frame)
        return
    event = WIRE.parse_reply(frame)
    found = frames.Reply(event["msg_type"], event["seq"], event["code"], event["node"], event["text"], event["load"])
    assert found == expected


keys_of_all_widths = st.text(alphabet="kéß中😀\0", min_size=1, max_size=3)
modified = st.dictionaries(keys_of_all_widths, st.text(alphabet="vé😀\0", max_size=4), min_size=1, max_size=3)


@given(st.integers(0, 3), st.lists(st.tuples(modified, bodies), max_size=3), st.booleans())
def test_containers(version, groups, compress):
    if version == 3:
        groups = [(attrs, [(body, {"own": "1"}) for body in items]) for attrs, items in groups]
    data = message.encode(version, groups, create_time_ms=NOW_MS, compress=compress)
    for attrs, _ in groups:
        text = "&".join(f"{key}={value}" for key, value in attrs.items())
        assert containers.modified_utf8(text) in data
    try:
        expected = containers.decode(data)
    except containers.Damaged:  # blanks cut from a key made two keys equal
        with pytest.raises(RemoteProtocolError):
            list(message.records(data))
        return
    assert list(message.records(data)) == expected
