"""Server role beyond the vectors: limits, completion, attributes, refusals after the fact."""

import pytest

from dataproxy._core.wire.inlong import message
from tests.native.probe_wire import ProbeError, Server, Wire, pack
from tests.support.reference.frames import binary_frame, join_items, join_pairs, text_frame
from tests.support.reference.vectors import NOW_MS

WIRE = Wire()
IDS = b"groupId=g&streamId=s"
ITEMS = join_items([b"one", b"two"])


def serve(frame, **profile):
    return Server(**profile).serve(frame, NOW_MS)


def reply_text(outcome):
    return WIRE.parse_reply(outcome["reply"])["text"]


def code_of(frame, **profile):
    return serve(frame, **profile)["code"]


def test_a_frame_that_is_not_what_its_length_says_closes():
    frame = binary_frame(ITEMS, IDS)
    for broken in (frame[:-1], frame + b"\0", b"", b"\0\0\0\0", frame[:4]):
        assert serve(broken)["action"] == "close"


@pytest.mark.parametrize("type_byte", [0, 9, 31, 0x20])
def test_unknown_types_and_v1_close(type_byte):
    assert serve(b"\0\0\0\x0a" + bytes([type_byte, 1]) + b"\0" * 8)["action"] == "close"


@pytest.mark.parametrize("compat", [False, True])
@pytest.mark.parametrize("msg_type", [2, 3, 4, 5, 6, 7])
def test_too_short_for_its_layout_closes(msg_type, compat):
    n = 24 if msg_type == 7 else 8
    assert serve(n.to_bytes(4) + bytes([msg_type]) + b"\0" * (n - 1), compat=compat)["action"] == "close"


def test_counts_and_times_are_those_of_the_frame():
    outcome = serve(binary_frame(ITEMS, IDS, seconds=4294967295, count=7))
    assert (outcome["records"], outcome["data_time_ms"]) == (2, 4294967295000)
    outcome = serve(text_frame(5, ITEMS, IDS + b"&dt=1700000000123&cnt=9"))
    assert (outcome["records"], outcome["data_time_ms"]) == (2, 1700000000123)
    outcome = serve(text_frame(3, b"a\nb\n", IDS + b"&dt=x"))
    assert (outcome["records"], outcome["data_time_ms"]) == (1, NOW_MS)
    assert (outcome["group"], outcome["stream"]) == (b"g", b"s")


@pytest.mark.parametrize("compat", [False, True])
def test_a_count_of_zero_is_stored_as_one(compat):
    entry = serve(binary_frame(join_items([b"x"]), IDS, count=0), compat=compat)["entry"]
    assert message.decode(entry).record_count == 1


@pytest.mark.parametrize("past", range(-3, 4))
def test_a_body_length_near_the_end_of_the_frame_is_never_followed(past):
    # Run with an address sanitizer: the frame lies in memory of exactly its size.
    frame = binary_frame(ITEMS, b"")
    broken = frame[:21] + (len(frame) - 25 + past).to_bytes(4) + frame[25:]
    assert code_of(broken) == 95
    assert serve(broken, compat=True)["action"] == "close"


def test_nothing_is_kept_from_the_frame_before():
    server = Server()
    server.serve(text_frame(5, ITEMS, IDS + b"&syncSend=true&partitionKey=k&dt=5"), NOW_MS)
    outcome = server.serve(text_frame(3, b"", IDS), NOW_MS)
    assert outcome == {
        "action": "reply", "code": 105, "msg_type": 3, "group": b"", "stream": b"", "records": 0, "data_time_ms": 0,
        "order": False, "closes": False, "partition_key": b"", "entry": b"", "call": None, "reply": outcome["reply"],
    }  # fmt: skip
    assert server.serve(b"\0\0\0\1\x1f", NOW_MS)["reply"] == b""


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (text_frame(5, ITEMS, b"groupId= \t"), 100),
        (text_frame(5, ITEMS, IDS + b"&=v&k="), 0),
        (text_frame(5, ITEMS, b" groupId=g & streamId=s "), 0),
        (text_frame(5, ITEMS, IDS + b"&x=1&y=2&x=3"), 109),
        (text_frame(5, ITEMS, IDS + b"& "), 109),
        (text_frame(5, ITEMS, IDS + b"&cp= "), 0),
        (text_frame(5, ITEMS, IDS + b"&cp=gzip"), 96),
        (text_frame(5, pack(ITEMS), IDS + b"&cp=snappy"), 0),
        (text_frame(5, b"\0", IDS + b"&cp=snappy"), 96),
        (text_frame(5, pack(b"\0" * 20971521), IDS + b"&cp=snappy"), 96),
        (text_frame(5, join_items([b"a", b""]), IDS), 123),
        (text_frame(6, join_pairs([(b"a", b"k=v"), (b"b", b"k")]), IDS), 123),
        (text_frame(6, join_pairs([(b"a", b"k=v&k=w")]), IDS), 123),
        (text_frame(6, join_pairs([(b"a", b"k=v")]) + join_items([b"odd"]), IDS), 123),
        (binary_frame(join_pairs([(b"a", b"k=v")]), IDS, ext=5), 0),
        (binary_frame(join_pairs([(b"a", b"k")]), IDS, ext=5), 123),
        (binary_frame(pack(join_items([b"a"])), IDS, flags=0x20), 0),
        (binary_frame(pack(b"garbage"), IDS, flags=0x20), 123),
        (binary_frame(pack(b"\0" * 20971521), IDS, flags=0x20), 96),
        (binary_frame(b"secret", IDS, flags=0x40), 0),
        (binary_frame(b"garbage", IDS, flags=0x80), 123),
        (binary_frame(ITEMS, IDS, flags=0x80), 0),
        (binary_frame(ITEMS, IDS, ext=0), 100),
        (binary_frame(ITEMS, IDS, ext=0, group_num=1), 3),
        (binary_frame(ITEMS, IDS + b"&isAck=false&proxySend=TRUE"), 151),
    ],
)
def test_strict_reactions(frame, code):
    outcome = serve(frame)
    assert outcome["code"] == code
    assert outcome["action"] == ("reply" if code else "store")
    assert WIRE.parse_reply(outcome["reply"])["code"] == code
    if not code:
        assert message.decode(outcome["entry"]).groups


@pytest.mark.parametrize(
    ("text", "nums", "code"),
    [
        (b"", (7, 0), 0),
        (b"", (7, 3), 0),
        (b"groupId=g&streamId=s", (7, 3), 0),
        (b"groupId= &streamId= ", (7, 3), 0),
        (b"streamId=t", (7, 3), 122),
        (b"streamId=s", (7, 0), 122),
        (b"groupId=h", (7, 3), 122),
        (b"", (7, 4), 121),
        (b"", (8, 3), 121),
        (b"", (0, 3), 100),
        (b"", (9, 3), 121),  # a name over the limit
    ],
)
@pytest.mark.parametrize("translate", [False, True])
def test_numeric_ids(text, nums, code, translate):
    numbers = {7: (b"g", translate, {3: b"s"}), 9: (b"x" * 256, translate, {3: b"s"})}
    outcome = serve(binary_frame(ITEMS, text, ext=0, group_num=nums[0], stream_num=nums[1]), numbers=numbers)
    assert outcome["code"] == WIRE.parse_reply(outcome["reply"])["code"] == code
    if code:
        return
    (group,) = message.decode(outcome["entry"]).groups
    assert outcome["group"] == b"g"
    if translate and b"groupId= " not in text:
        assert group.attrs["groupId"] == "g"
        assert group.attrs.get("streamId") == ("s" if nums[1] else None)


def test_many_attributes_are_read_without_quadratic_time():
    text = b"&".join(b"k%d=%d" % (i, i) for i in range(5000))
    assert code_of(text_frame(5, ITEMS, IDS + b"&" + text)) == 0
    for again in (b"k0", b"k17", b"k4999", b"groupId", b"a=1&a"):
        assert code_of(text_frame(5, ITEMS, IDS + b"&" + text + b"&" + again + b"=x")) == 109


def test_silence_covers_every_error_after_the_attributes():
    quiet = IDS + b"&isAck=False"
    for frame in (
        text_frame(5, b"\0\0\0\0\0", quiet),
        text_frame(5, b"xxx", quiet + b"&cp=1"),
        binary_frame(ITEMS, quiet, ext=0x0C),
        binary_frame(b"garbage", quiet),
    ):
        outcome = serve(frame)
        assert outcome["code"] != 0
        assert (outcome["action"], outcome["reply"]) == ("reply", b"")
    assert serve(binary_frame(ITEMS, quiet))["action"] == "store"
    assert serve(binary_frame(ITEMS, quiet), service_code=2)["reply"] == b""


def test_completion_adds_what_is_missing_only():
    node = b"dpIp=127.0.0.1&"
    now = b"%d" % NOW_MS
    assert reply_text(serve(text_frame(5, ITEMS, IDS))) == node + b"rt=" + now + b"&rtms=" + now + b"&" + IDS
    assert reply_text(serve(text_frame(5, ITEMS, IDS + b"&rt=1"))) == node + b"rtms=" + now + b"&" + IDS + b"&rt=1"
    full = IDS + b"&rt=1&rtms=2"
    assert reply_text(serve(text_frame(5, ITEMS, full))) == node + full
    assert reply_text(serve(binary_frame(ITEMS, IDS + b"&rtms=2"))) == node + IDS + b"&rtms=2"
    trace = reply_text(serve(binary_frame(ITEMS, IDS, ext=6)))
    assert trace == node + b"rtms=" + now + b"&node2ip=127.0.0.1&rtime2=" + now + b"&" + IDS
    traced = IDS + b"&node2ip=x&rtime2=y"
    assert reply_text(serve(binary_frame(ITEMS, traced, ext=6))) == node + b"rtms=" + now + b"&" + traced


def test_a_blank_time_is_completed_by_the_reference_only():
    text = IDS + b"&rtms="
    assert reply_text(serve(binary_frame(ITEMS, text))) == b"dpIp=127.0.0.1&" + text
    assert b"rtms=%d&" % NOW_MS in reply_text(serve(binary_frame(ITEMS, text), compat=True))


def test_a_node_without_a_name_answers_like_the_reference():
    assert reply_text(serve(text_frame(3, b"x", IDS), node_ip=b"")).startswith(b"dpIp=0.0.0.0&")
    long = reply_text(serve(binary_frame(ITEMS, IDS, ext=6), node_ip=b"n" * 400))
    assert long.startswith(b"dpIp=" + b"n" * 255 + b"&rtms=")


def test_attributes_that_outgrow_a_binary_frame():
    room = 32767 - len(b"rtms=%d&" % NOW_MS)
    fits = IDS + b"&k=" + b"v" * (room - len(IDS) - 3)
    assert serve(binary_frame(ITEMS, fits))["action"] == "store"
    assert serve(binary_frame(ITEMS, fits), compat=True)["action"] == "store"
    assert serve(binary_frame(ITEMS, fits + b"v"), compat=True)["action"] == "close"
    outcome = serve(binary_frame(ITEMS, fits + b"v"))
    assert outcome["code"] == 104
    assert WIRE.parse_reply(outcome["reply"])["seq"] == 1
    broken = IDS + b"&k" + b"v" * 32700
    assert WIRE.parse_reply(serve(binary_frame(ITEMS, broken))["reply"])["code"] == 109


def test_attributes_that_outgrow_a_container():
    text = IDS + b"&k=" + b"v" * 65480
    outcome = serve(text_frame(5, ITEMS, text + b"v" * 60))
    assert (outcome["action"], outcome["code"], outcome["entry"]) == ("reply", 104, b"")
    assert serve(text_frame(5, ITEMS, text))["code"] == 104  # completed, it is longer
    assert code_of(text_frame(5, ITEMS, b"k" * 65536)) == 104  # before it is read
    assert code_of(text_frame(5, ITEMS, b"k" * 65535)) == 109
    outcome = serve(text_frame(5, ITEMS, text), compat=True)  # the reference loses the message
    assert (outcome["action"], outcome["code"], outcome["entry"]) == ("store", 0, b"")
    assert serve(text_frame(5, ITEMS, text[:-100]))["code"] == 0


def test_text_that_is_not_ascii_is_stored_as_modified_utf8():
    text = IDS + "&k=é中😀".encode() + b"&z=a\0b"
    entry = serve(text_frame(5, ITEMS, text))["entry"]
    attrs = message.decode(entry).groups[0].attrs
    assert (attrs["k"], attrs["z"]) == ("é中😀", "a\0b")
    assert b"\xed\xa0\xbd\xed\xb8\x80" in entry
    assert b"a\xc0\x80b" in entry


@pytest.mark.parametrize(
    "bad",
    [
        b"\xff",
        b"\xed\xa0\x80",
        b"\xc0\x80",
        b"\xc3",
        b"\xe0\x80\x80",
        b"\xf0\x80\x80\x80",
        b"\xf4\x90\x80\x80",
        b"\xe4\xb8",
    ],
)
def test_text_that_is_not_utf8_is_refused_by_strict_only(bad):
    text = IDS + b"&padding=12345678&bad=" + bad
    for frame in (text_frame(5, ITEMS, text), binary_frame(ITEMS, text)):
        assert code_of(frame) == 109
    assert code_of(text_frame(6, join_pairs([(b"a", b"k=" + bad)]), IDS)) == 123
    attrs = message.decode(serve(text_frame(5, ITEMS, text), compat=True)["entry"]).groups[0].attrs
    assert set(attrs["bad"]) == {"\ufffd"}
    good = IDS + b"&padding=1234567&good=" + "é中😀\U0010ffff\ud7ff\ue000\u0800".encode()
    assert code_of(binary_frame(ITEMS, good)) == 0


def test_stored_attributes_are_completed():
    def attrs_of(msg_type, text):
        body = join_pairs([(b"a", b"k=v")]) if msg_type == 6 else ITEMS
        return message.decode(serve(text_frame(msg_type, body, text))["entry"]).groups[0].attrs

    now = str(NOW_MS)
    assert attrs_of(3, IDS) == {"groupId": "g", "streamId": "s", "dt": now, "cnt": "1", "rt": now, "rtms": now}
    assert attrs_of(3, IDS + b"&cnt=4&dt=77")["cnt"] == "4"
    assert attrs_of(3, IDS + b"&cnt=4&dt=77")["dt"] == "77"
    assert attrs_of(5, IDS + b"&cnt=4")["cnt"] == "1"
    assert attrs_of(6, IDS + b"&cnt=4")["k"] == "v"
    assert attrs_of(3, IDS + b"&cnt=-4&dt=-9")["cnt"] == "-4"


@pytest.mark.parametrize("body", [b"\n", b"\r\n"])
def test_a_record_of_nothing_but_its_line_end_is_kept(body):
    assert next(message.records(serve(text_frame(3, body, IDS))["entry"]))[0] == body


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("compress", [False, True])
def test_single_records_are_stored_packed_or_plain(packed, compress):
    body = b"line\n" * 100
    frame = text_frame(3, pack(body) if packed else body, IDS + (b"&cp=snappy" if packed else b""))
    decoded = message.decode(serve(frame, compress_entries=compress)["entry"])
    assert decoded.groups[0].records == [body[:-1]]
    assert decoded.compressed is compress


def test_a_returning_acknowledgement_carries_the_body_as_received():
    block = pack(b"x" * 50)
    reply = serve(text_frame(4, block, IDS + b"&cp=1"))["reply"]
    assert reply[5 : 9 + len(block)] == len(block).to_bytes(4) + block


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (text_frame(5, ITEMS, IDS), b"dpIp=127.0.0.1&errCode=114&errMsg=full&rt="),
        (text_frame(5, ITEMS, IDS + b"&syncSend=true"), b"errCode=114&errMsg=full&rt="),
        (binary_frame(ITEMS, IDS), b"dpIp=127.0.0.1&errCode=114&errMsg=full&rtms="),
        (binary_frame(ITEMS, IDS + b"&proxySend=true"), b"errCode=114&errMsg=full&rtms="),
    ],
)
def test_a_success_can_be_turned_into_a_refusal(frame, expected):
    server = Server()
    reply = server.serve(frame, NOW_MS)["reply"]
    refused = WIRE.parse_reply(server.refuse(reply, 114, b"full"))
    accepted = WIRE.parse_reply(reply)
    assert refused["text"].startswith(expected)
    assert (refused["code"], refused["message"], refused["seq"]) == (114, b"full", accepted["seq"])
    assert WIRE.parse_reply(server.refuse(reply, 114))["message"] == b""


@pytest.mark.parametrize(
    "frame",
    [
        text_frame(5, ITEMS, IDS),
        text_frame(4, ITEMS, IDS + b"&cp=1"),
        text_frame(5, ITEMS, IDS + b"&syncSend=true"),
        binary_frame(ITEMS, IDS),
        binary_frame(ITEMS, IDS + b"&proxySend=true"),
    ],
)
@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((0, 0, 600), b"dup=600,0,0&"),
        ((7, 0, 0), b"dup=0,7,0&"),
        ((0, 1, 5), b"dup=5,0,1&"),
        ((2**63 - 1, 2**63 - 1, 2**63 - 1), b",".join([b"%d" % (2**63 - 1)] * 3)),
    ],
)
def test_a_success_can_say_what_was_known(frame, numbers, words):
    server = Server()
    reply = server.serve(frame, NOW_MS)["reply"]
    before, told = WIRE.parse_reply(reply), WIRE.parse_reply(server.tell_known(reply, *numbers))
    assert words in told["text"].split(b"rt")[0]
    assert (told["known"], told["differed"], told["reach"]) == tuple(min(one, 2**31 - 1) for one in numbers)
    assert (before["known"], before["differed"], before["reach"]) == (0, 0, -1)
    same = ("code", "message", "seq", "node", "msg_type", "has_seq")
    assert [told.get(name) for name in same] == [before.get(name) for name in same]


def test_of_what_was_known_the_servers_own_word_counts_and_no_nonsense():
    server = Server()
    echoing = binary_frame(ITEMS, IDS + b"&dup=99,99,9")
    told = WIRE.parse_reply(server.tell_known(server.serve(echoing, NOW_MS)["reply"], 3, 2, 1))
    assert (told["known"], told["differed"], told["reach"]) == (3, 2, 1)
    for nonsense in (
        b"x",
        b"",
        b"1",
        b"1,2",
        b"1,2,3,4",
        b"1,,3",
        b"-3,0,0",
        b"0,-1,0",
        b"1,2,99999999999999999999",
        b",,",
    ):
        reply = server.serve(binary_frame(ITEMS, IDS + b"&dup=" + nonsense), NOW_MS)["reply"]
        told = WIRE.parse_reply(reply)
        assert (told["code"], told["known"], told["differed"], told["reach"]) == (0, 0, 0, -1)
    for broken in (b"", b"\0\0\0\1\7"):
        with pytest.raises(ProbeError):
            server.tell_known(broken, 1, 1, 1)


def test_refusals_of_bare_replies():
    server = Server()
    bare = bytes.fromhex("00000009 07 00000006 0000 ee01")
    assert WIRE.parse_reply(server.refuse(bare, 118, b"m"))["text"] == b"errCode=118&errMsg=m"
    alone = bytes.fromhex("0000000f 05 00000001 32 00000006") + b"dpIp=x"
    alone = (len(alone) - 4).to_bytes(4) + alone[4:]
    assert WIRE.parse_reply(server.refuse(alone, 118, b"m"))["text"] == b"dpIp=x&errCode=118&errMsg=m"
    for broken in (b"", b"\0\0\0\1\7", bytes.fromhex("00000009 05 00000100 00000000")):
        with pytest.raises(ProbeError):
            server.refuse(broken, 118)


@pytest.mark.parametrize(
    "hexes",
    [
        "00000010 08 00000000 01 00000002 ee01 fffc ee01",  # a negative length that finds a magic
        "00000010 08 00000000 01 00000002 ee01 0001 ee01",
        "0000000e 08 00000000 01 fffffffe 0000 ee01",
        "0000000e 08 00000000 01 00000001 0000 ee01",
    ],
)
def test_malformed_heartbeats_close(hexes):
    assert serve(bytes.fromhex(hexes))["action"] == "close"
