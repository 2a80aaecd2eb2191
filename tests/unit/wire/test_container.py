"""InLongMsg containers: golden ones, round trips, every hazard a clean error."""

import struct

import pytest

from dataproxy._core.base.column import Bytes
from dataproxy._core.wire.inlong import message
from dataproxy.errors import InvalidMessageError, RemoteProtocolError
from tests.native.probe_wire import pack
from tests.support.reference import containers
from tests.support.reference.frames import binary_frame, join_items, join_pairs
from tests.support.reference.vectors import by_name, named

IDS = b"groupId=g&streamId=s"
ITEMS = join_items([b"one", b"two"])


def group(attrs, payload, *, flag=0, count=b""):
    return len(attrs).to_bytes(2) + attrs + count + (1 + len(payload)).to_bytes(4) + bytes([flag]) + payload


def container(version, *groups, count=None, total=0):
    head = {0: b"", 1: struct.pack(">q", 5)}.get(version, struct.pack(">qi", 5, total))
    magic = bytes([15, version])
    return magic + head + (len(groups) if count is None else count).to_bytes(4) + b"".join(groups) + magic


def bin4(*args, **kwargs):
    return b"\x0f\x04" + binary_frame(*args, **kwargs) + b"\x0f\x04"


def runs_of(data):
    column = Bytes()
    runs = list(message.runs(data, column))
    ends, raw = map(memoryview, column.take())
    ends = ends.cast("i")
    return runs, [bytes(raw[ends[i] : ends[i + 1]]) for i in range(len(ends) - 1)]


def all_records(data, **options):
    return list(message.records(data, **options))


def all_runs(data, **options):
    return list(message.runs(data, Bytes(), **options))


def unrolled(data):
    runs, bodies = runs_of(data)
    assert sum(count for _, count in runs) == len(bodies)
    return list(zip(bodies, [attrs for attrs, count in runs for _ in range(count)], strict=True))


def test_runs_keep_the_order_of_records():
    pairs = [(b"a", b"k=0"), (b"c", b"k=1"), (b"d", b"k=1"), (b"e", b"k=0"), (b"f", b"k=2")]
    data = bin4(join_pairs(pairs), IDS, ext=5)
    assert unrolled(data) == list(message.records(data))
    assert [count for _, count in runs_of(data)[0]] == [1, 2, 1, 1]


@pytest.mark.parametrize("vector", named("inlongmsg"))
def test_records_are_decoded_as_they_are_asked_for(vector):
    data = bytes.fromhex(vector["hex"])
    whole = list(message.records(data))
    for skip in range(len(whole) + 2):
        assert list(message.records(data, skip=skip)) == whole[skip:]
    reader = message.records(data)
    assert iter(reader) is reader
    assert [next(reader) for _ in whole] == whole
    for _ in range(2):
        assert next(reader, None) is None


def test_what_is_before_the_damage_is_given_and_then_no_more():
    pairs = [(b"a", b"k=0"), (b"b", b"k=1"), (b"c", b"no attribute"), (b"d", b"k=3")]
    data = bin4(join_pairs(pairs), IDS, ext=5)
    for reader in (message.records(data), message.runs(data, Bytes())):
        assert len([next(reader), next(reader)]) == 2
        with pytest.raises(RemoteProtocolError, match="key=value"):
            next(reader)
        assert next(reader, None) is None


@pytest.mark.parametrize("vector", named("inlongmsg"))
def test_golden_containers(vector):
    data = bytes.fromhex(vector["hex"])
    decoded = message.decode(data)
    assert decoded.version == vector["version"]
    assert decoded.create_time_ms == vector["create_time"]
    assert decoded.record_count == vector["msg_cnt"]
    assert decoded.compressed is vector["compressed"]
    groups = [{"attrs": g.attrs, "records": [r.hex() for r in g.records]} for g in decoded.groups]
    assert groups == vector["groups"]
    flat = [(bytes.fromhex(r), g["attrs"]) for g in groups for r in g["records"]]
    assert list(message.records(data)) == flat == containers.decode(data)
    assert unrolled(data) == flat


@pytest.mark.parametrize("vector", named("inlongmsg_invalid"))
def test_what_is_no_container(vector):
    with pytest.raises(RemoteProtocolError, match="not a valid InLongMsg container"):
        message.decode(bytes.fromhex(vector["hex"]))


@pytest.mark.parametrize(
    "name",
    ["v0_plain", "v1_three_records_plain", "v1_three_records_snappy", "v1_two_attr_groups", "v2_with_counts"],
)
def test_writable_containers_are_written_as_the_reference_does(name):
    vector = by_name("inlongmsg", name)
    groups = [(g["attrs"], [bytes.fromhex(r) for r in g["records"]]) for g in vector["groups"]]
    ours = message.encode(vector["version"], groups, create_time_ms=max(vector["create_time"], 0),
                          compress=vector["compressed"])  # fmt: skip
    golden = bytes.fromhex(vector["hex"])
    assert message.decode(ours) == message.decode(golden)
    if not vector["compressed"]:
        assert ours == golden


@pytest.mark.parametrize("name", ["v4_bin_plain", "v4_bin_attr_pairs"])
def test_version_4_is_written_byte_for_byte(name):
    vector = by_name("inlongmsg", name)
    (golden,) = vector["groups"]
    common = {key: golden["attrs"][key] for key in ("rtms", "groupId", "streamId")}
    records = [bytes.fromhex(r) for r in golden["records"]]
    if name.endswith("pairs"):
        own = {key: value for key, value in golden["attrs"].items() if key.startswith("__")}
        records = [(record, own) for record in records]
    assert message.encode(4, [(common, records)], create_time_ms=1700000000999, seq=9).hex() == vector["hex"]


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_round_trip(version, compress):
    groups = [({"groupId": "g", "k": "\0é中😀"}, [b"a", b"", b"\0\xff" * 99]), ({"groupId": "h"}, [b"b"])]
    data = message.encode(version, groups, create_time_ms=1700000000123, compress=compress)
    assert [tuple(g) for g in message.decode(data).groups] == groups
    assert [body for body, _ in message.records(data)] == [b"a", b"", b"\0\xff" * 99, b"b"]


def test_records_of_one_group_share_their_attributes():
    records = list(message.records(container(1, group(IDS, ITEMS))))
    assert records[0][1] is records[1][1]


@pytest.mark.parametrize("version", [3, 4])
def test_pairs_are_grouped_by_their_final_attributes(version):
    data = message.encode(version, [({"groupId": "g", "x": "1"}, [
        (b"a", {"k": "1"}), (b"b", {"k": "2", "x": "own"}), (b"c", "k=1"),
    ])])  # fmt: skip
    first, second = message.decode(data).groups
    assert (first.records, second.records) == ([b"a", b"c"], [b"b"])
    assert (first.attrs["k"], second.attrs["k"], second.attrs["x"]) == ("1", "2", "1")  # the common ones win
    assert [body for body, _ in message.records(data)] == [b"a", b"b", b"c"]


def test_two_groups_of_the_same_attributes_are_both_kept():
    data = container(1, group(IDS, ITEMS), group(IDS, join_items([b"three"])))
    assert [body for body, _ in message.records(data)] == [b"one", b"two", b"three"]


def test_containers_without_records():
    assert message.decode(container(1)).groups == []
    assert message.decode(container(1, group(IDS, b""))).groups == []
    assert message.decode(bin4(b"", IDS)).groups == []


def test_version_4_reads_unsigned_fields():
    decoded = message.decode(bin4(ITEMS, IDS, seconds=4294967295, count=65535))
    assert (decoded.create_time_ms, decoded.record_count) == (4294967295000, 65535)
    assert decoded.groups[0].attrs["cnt"] == "65535"


def test_an_encrypted_body_is_one_record():
    decoded = message.decode(bin4(b"secret", IDS, flags=0x60))
    assert decoded.groups[0].records == [b"secret"]


def test_the_limit_bounds_what_a_payload_unpacks_to():
    data = message.encode(1, [({"groupId": "g"}, [b"x" * 1000])], compress=True)
    assert message.decode(data, limit=1004).groups
    for call in (message.decode, all_records, all_runs):
        with pytest.raises(RemoteProtocolError, match="over the limit"):
            call(data, limit=1003)


V1 = container(1, group(IDS, ITEMS))
HAZARDS = {
    "nothing": b"",
    "head cut off": b"\x0f\x01" + b"\0" * 6 + b"\x0f\x01",
    "negative group count": container(1, group(IDS, ITEMS), count=0xFFFFFFFF),
    "2 GB of groups": container(1, group(IDS, ITEMS), count=0x7FFFFFFF),
    "more groups than there are": container(1, group(IDS, ITEMS), count=2),
    "fewer groups than there are": container(1, group(IDS, ITEMS), group(IDS, ITEMS), count=1),
    "attribute text longer than the rest": container(1, b"\xff\xff" + IDS + b"\0" * 9),
    "group cut off after its text": container(1, b"\0\3k=v" + b"\0" * 4),
    "count cut off": container(2, b"\0\7k=vwxyz"),
    "payload length zero": container(1, b"\0\3k=v" + b"\0" * 5),
    "payload length negative": container(1, b"\0\3k=v\xff\xff\xff\xff\0"),
    "payload longer than the rest": container(1, b"\0\3k=v\0\0\0\x09\0abc"),
    "item beyond the payload": container(1, group(IDS, b"\0\0\0\5abcd")),
    "negative item": container(1, group(IDS, b"\xff\xff\xff\xffabcd")),
    "2 GB item": container(1, group(IDS, b"\x7f\xff\xff\xffabcd")),
    "item tail": container(1, group(IDS, ITEMS + b"\0")),
    "no snappy block": container(1, group(IDS, b"garbage", flag=1)),
    "empty snappy payload": container(1, group(IDS, b"", flag=1)),
    "block of nothing": container(1, group(IDS, b"\0", flag=1)),
    "entry without =": container(1, group(b"k", ITEMS)),
    "key twice": container(1, group(b"k=1&k=2", ITEMS)),
    "not UTF-8": container(1, group(b"k=\xff", ITEMS)),
    "plain UTF-8 of four bytes": container(1, group("k=😀".encode(), ITEMS)),
    "half of a surrogate pair": container(1, group(b"k=\xed\xa0\x80", ITEMS)),
    "v3 record without pairs": container(3, group(IDS, b"\0\0\0\0")),
    "v3 pair cut off": container(3, group(IDS, join_items([join_items([b"a"])]))),
    "v3 pair beyond its record": container(3, group(IDS, join_items([b"\0\0\0\x30a"]) + join_pairs([(b"a", b"k=v")]))),
    "v3 empty record in a pair": container(3, group(IDS, join_items([join_pairs([(b"", b"k=v")])]))),
    "v3 empty text in a pair": container(3, group(IDS, join_items([join_pairs([(b"a", b"")])]))),
    "v4 length": b"\x0f\x04" + binary_frame(ITEMS, IDS)[:-1] + b"\x0f\x04",
    "v4 too short": b"\x0f\x04\0\0\0\x05\7abcd\x0f\x04",
    "v4 of another type": bin4(ITEMS, IDS)[:6] + b"\5" + bin4(ITEMS, IDS)[7:],
    "v4 magic": b"\x0f\x04" + binary_frame(ITEMS, IDS)[:-2] + b"\xee\2\x0f\x04",
    "v4 body length": b"\x0f\x04" + binary_frame(ITEMS, IDS).replace(b"\0\0\0\x0e", b"\0\0\0\x0f") + b"\x0f\x04",
    "v4 negative body length": b"\x0f\x04" + binary_frame(ITEMS, IDS).replace(b"\0\0\0\x0e", b"\xff" * 4) + b"\x0f\x04",
    "v4 key twice": bin4(ITEMS, b"k=1&k=1"),
    "v4 item": bin4(b"garbage", IDS),
    "v4 no snappy": bin4(b"garbage", IDS, flags=0x20),
    "v4 pair": bin4(ITEMS, IDS, ext=5),
    "v4 own text": bin4(join_pairs([(b"a", b"k")]), IDS, ext=5),
}  # fmt: skip


@pytest.mark.parametrize("name", HAZARDS)
def test_every_hazard_is_a_clean_error(name):
    if name == "v4 pair":
        assert len(list(message.records(bin4(join_pairs([(b"a", b"k=v")]), IDS, ext=5)))) == 1
    for call in (message.decode, all_records, all_runs):
        with pytest.raises(RemoteProtocolError) as info:
            call(HAZARDS[name])
        assert not info.value.retriable
        assert info.value.details["reason"] in str(info.value)
    with pytest.raises(containers.Damaged):
        containers.decode(HAZARDS[name])


@pytest.mark.parametrize("vector", named("inlongmsg"))
def test_every_truncation_and_every_changed_byte_is_judged_like_the_oracle(vector):
    data = bytes.fromhex(vector["hex"])
    versions = [data[:n] for n in range(len(data))] + [data[:n] + data[-2:] for n in range(2, len(data) - 2)]
    for at in range(len(data)):
        versions += [data[:at] + bytes([value]) + data[at + 1 :] for value in {0, 0x26, 0x3D, 0xFF, data[at] ^ 1}]
    for changed in versions:
        try:
            expected = containers.decode(changed)
        except containers.Damaged:
            with pytest.raises(RemoteProtocolError):
                list(message.records(changed))
            continue
        assert list(message.records(changed)) == expected
        assert unrolled(changed) == expected


@pytest.mark.parametrize(
    ("version", "groups", "what"),
    [
        (5, [], "5"),
        (-1, [], "-1"),
        (4, [], "one group"),
        (4, [({"k": "v"}, [])], "1 to 65535 records"),
        (4, [({"k": "é"}, [b"a"])], "ASCII"),
        (1, [({"k": "a&b"}, [b"a"])], "'a&b'"),
        (1, [({"k=": "v"}, [b"a"])], "'k='"),
        (1, [({"k": "v" * 65536}, [b"a"])], "65535"),
        (3, [({"k": "v"}, [(b"", {"x": "1"})])], "not empty"),
        (3, [({"k": "v"}, [(b"a", {})])], "not empty"),
    ],
)
def test_what_a_version_cannot_hold_is_refused(version, groups, what):
    with pytest.raises(InvalidMessageError, match=what):
        message.encode(version, groups)


def test_packed_payloads_unpack_to_what_was_stored():
    data = container(2, group(IDS, pack(ITEMS), flag=1, count=b"\0\0\0\2"), total=2)
    assert message.decode(data).record_count == 2
    assert [body for body, _ in message.records(data)] == [b"one", b"two"]
