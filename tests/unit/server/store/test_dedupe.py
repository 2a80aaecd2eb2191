"""The de-duplication window of a store, durable and in memory: cases, and a model in plain Python."""

import shutil
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproxy._core.server.store.core import StoreCore
from dataproxy._core.wire.inlong import message
from tests.native.probe_feed import append_entries, retain_once

VARIANTS = 8  # bodies that are remembered of one id


def pack(bodies: list[bytes], sid: str | None = "p") -> tuple[bytes, int]:
    """Return a container of messages without ids of their own, and their number."""
    attrs = {"groupId": "g", "streamId": "s", **({"sid": sid} if sid else {})}
    return message.encode(4, [(attrs, bodies)]), len(bodies)


def named(items: list[tuple[str | None, bytes]], sid: str | None = "p", compress: bool = False) -> tuple[bytes, int]:
    """Return a container of messages of which some (not None) have ids of their own, and their number."""
    attrs = {"groupId": "g", "streamId": "s", **({"sid": sid} if sid else {})}
    pairs = [(body, {"n": "1", **({"msgid": name} if name else {})}) for name, body in items]
    return message.encode(4, [(attrs, pairs)], compress=compress), len(items)


def append(store: StoreCore, *packs: tuple[bytes, int], stream: str = "s", at: int = 1000) -> list[str]:
    return [status for _, status in append_entries(store, [("g", stream, *one) for one in packs], receive_ms=at)]


def stored(store: StoreCore, stream: str | None = None) -> list[tuple[bytes, str | None]]:
    """Return body and own id of every stored message."""
    found = []
    for topic, partition, *_ in store.logs():
        for _, head, value in store.read(topic, partition, 0, max_bytes=1 << 30):
            records = list(message.records(value))
            assert len(records) == head[2]
            if stream in (None, head[3]):
                found += [(body, attrs.get("msgid")) for body, attrs in records]
    return found


def counters(store: StoreCore) -> tuple[int, int]:
    return store.stats()["duplicates"], store.stats()["conflicts"]


def test_a_pack_that_comes_again_is_stored_once(make):
    store = make()
    assert append(store, pack([b"a", b"b"])) == ["ok"]
    assert append(store, pack([b"a", b"b"])) == ["known"]
    assert append(store, pack([b"c"], "q"), pack([b"c"], "q")) == ["ok", "known"]  # in the same commit
    assert stored(store) == [(b"a", None), (b"b", None), (b"c", None)]
    assert counters(store) == (3, 0)
    assert store.stats()["ids"] == 2
    assert store.counts()["g", "s"][:2] == (2, 3)
    assert store.logs()[0][3] == 2  # no offset was used up


def test_a_pack_with_other_bytes_is_stored_and_counted(make):
    store = make()
    append(store, pack([b"a", b"b"]))
    assert append(store, pack([b"a", b"x"])) == ["ok"]
    assert counters(store) == (0, 2)
    assert append(store, pack([b"a", b"x"]), pack([b"a", b"b"])) == ["known", "known"]
    assert counters(store) == (4, 2)


def test_without_ids_nothing_is_removed(make):
    store = make()
    for _ in range(3):
        assert append(store, pack([b"a"], None), named([(None, b"b")], None)) == ["ok", "ok"]
    assert len(stored(store)) == 6
    assert counters(store) == (0, 0)
    assert store.stats()["ids"] == 0


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "packed"])
def test_of_a_mixed_pack_only_what_is_new_is_stored(make, compress):
    store = make()
    append(store, named([("x", b"1"), ("y", b"2")], "p", compress))
    assert append(store, named([("x", b"1"), ("z", b"3"), ("y", b"other"), ("z", b"3")], "q", compress)) == ["ok"]
    assert stored(store) == [(b"1", "x"), (b"2", "y"), (b"3", "z"), (b"other", "y")]
    assert counters(store) == (2, 1)
    assert append(store, named([("z", b"3"), ("y", b"other"), ("x", b"1")], "r", compress)) == ["known"]


def test_of_an_id_that_an_application_gave_the_first_body_stays(make):
    store = make(first_wins=True)
    assert append(store, named([("x", b"1")]), named([("x", b"2")], "q")) == ["ok", "known"]  # in the same commit
    assert append(store, named([("x", b"3"), ("y", b"4"), ("y", b"5"), (None, b"6")], "r")) == ["ok"]
    assert append(store, named([("x", b"1"), ("x", b"2")], "s")) == ["known"]
    assert stored(store) == [(b"1", "x"), (b"4", "y"), (b"6", "r.3")]
    assert counters(store) == (1, 4)
    assert store.stats()["ids"] == 3


def test_the_first_body_stays_after_a_restart_too(tmp_path):
    for body in (b"1", b"2", b"3"):
        store = StoreCore(str(tmp_path), dedupe_ids=1000, first_wins=True)
        assert append(store, named([("x", body)], body.decode())) == ["ok" if body == b"1" else "known"]
        assert counters(store) == (0, int(body != b"1"))
        assert stored(store) == [(b"1", "x")]
        store.close()
    store = StoreCore(str(tmp_path), dedupe_ids=1000)  # of those that stay both are known from here on
    assert append(store, named([("x", b"3")]), named([("x", b"1")])) == ["ok", "known"]
    store.close()


def test_a_first_body_that_was_not_stored_is_none(tmp_path):
    store = StoreCore(str(tmp_path), dedupe_ids=1000, max_bytes=1000, first_wins=True)
    assert append(store, named([("x", b"1" * 1000)])) == ["disk full"]
    assert append(store, named([("x", b"2")])) == ["ok"]
    assert stored(store) == [(b"2", "x")]
    store.close()


ROWS = (  # of the sink; each names all bytes of its row, by a digest
    "AbCd-_09.0.AAAAABAbcdefghijk",  # job, partition, row, digest of its block
    "AbCd-_09.127.13.AAAAABP_cdefghijk",  # query, micro-batch, partition, row, digest
)
MADE = (
    "AbCd-_09.0.AAAA!!abcdefghijk",  # of the sink's form, and no number
    "AbCd-_09.~ABCDEFGHIJ-_abcdefghiw",  # of the sink, of columns: job, hash
    "AbCd-_09.127.~ABCDEFGHIJ-_abcdefghiw",  # query, micro-batch, hash
    "4ki5h2z7ihy7e-1.0",  # of a producer that divided a pack
    "4ki5h2z7ihy7e-ff0a.1234",
)
GIVEN = (
    "550e8400-e29b-41d4-a716-446655440000",
    "4ki5h2z7ihy7e-1",
    "4ki5h2z7ihy7e-.0",
    "4ki5h2z7ihy7e-1.0x",
    "4ki5h2z7ihy7e-1.",
    "AbCd-_09..AAAAABabcdefghijkl",
    "AbCd-_09.0.AAAAABabcdefghij",
    "AbCd-_09.x.AAAAABabcdefghijk",
    "AbCd-_09.0..AAAAABabcdefghijk",
    "AbCd-_09.0.1.2.AAAAABabcdefghijk",
    "AbCd-_090.0.AAAAABabcdefghijk",
    "AbCd-_09.~ABCDEFGHIJ-_abcdefghi",
    "AbCd-_09.~ABCDEFGHIJ-_abcdefghiwx",
    "AbCd-_09.~ABCDEFGHIJ-.abcdefghiw",
    "AbCd-_09~.ABCDEFGHIJ-_abcdefghiw",
    "AbCd-_09..~ABCDEFGHIJ-_abcdefghiw",
    "AbCd-_09.x.~ABCDEFGHIJ-_abcdefghiw",
    "AbCd-_09.12~ABCDEFGHIJ-_abcdefghiw",
    "AbCd-_09.1.2.~ABCDEFGHIJ-_abcdefghiw",
    "x",
)


@pytest.mark.parametrize("name", ROWS)
def test_an_id_with_a_digest_of_its_row_is_believed(make, name):
    store = make()
    append(store, named([(name, b"1")]))
    append(store, named([(name, b"2")], "q"))
    assert stored(store) == [(b"1", name)]
    assert counters(store) == (1, 0)


@pytest.mark.parametrize("name", [*MADE, *GIVEN])
def test_with_ids_that_were_made_a_message_is_never_left_out_for_another(make, name):
    store = make(first_wins=True)
    append(store, named([(name, b"1")]))
    append(store, named([(name, b"2")], "q"))
    append(store, named([(name, b"2")], "r"))
    assert stored(store) == [(b"1", name)] + [(b"2", name)] * (name in MADE)
    assert store.stats()["conflicts"] == (1 if name in MADE else 2)


def test_messages_by_their_place_are_never_left_out_for_others(make):
    store = make(first_wins=True)
    append(store, pack([b"a", b"b"]))
    assert append(store, pack([b"a", b"x"])) == ["ok"]
    assert counters(store) == (0, 2)


def test_messages_named_by_their_place_keep_their_names_when_others_go(make):
    store = make()
    append(store, named([("x", b"1")], "o"))
    mixed = named([("x", b"1"), (None, b"2"), (None, b"3"), ("y", b"4")])
    assert append(store, mixed) == ["ok"]
    assert stored(store) == [(b"1", "x"), (b"2", "p.1"), (b"3", "p.2"), (b"4", "y")]
    assert append(store, mixed) == ["known"]
    later = named([("new", b"5"), (None, b"2"), (None, b"3"), ("y", b"4")])  # the rest of the pack is known
    assert append(store, later) == ["ok"]
    assert stored(store)[4:] == [(b"5", "new")]


def test_the_form_of_a_pack_does_not_matter(make):
    store = make()
    assert append(store, pack([b"a", b"b"])) == ["ok"]
    assert append(store, named([(None, b"a"), (None, b"b")])) == ["known"]
    assert append(store, named([(None, b"a"), (None, b"b"), ("x", b"c")], compress=True)) == ["ok"]
    assert append(store, named([(None, b"a"), ("x", b"c"), (None, b"b")])) == ["ok"]  # b has another index
    assert counters(store) == (5, 2)


def test_ids_belong_to_group_and_stream(make):
    store = make()
    assert append(store, pack([b"a"])) == ["ok"]
    assert append(store, pack([b"a"]), stream="t") == ["ok"]
    assert [status for _, status in append_entries(store, [("h", "s", *pack([b"a"]))])] == ["ok"]
    # Neither do the names run into each other, nor the two kinds of ids.
    assert [s for _, s in append_entries(store, [("gs", "", *pack([b"a"])), ("g", "s", *named([("p", b"a")]))])] == [
        "ok",
        "ok",
    ]


def test_partitions_do_not_matter(make):
    store = make()
    assert append(store, pack([b"a"])) == ["ok"]
    assert append_entries(store, [("g", "s", *pack([b"a"]))], partition=3, receive_ms=1000) == [(-1, "known")]


def test_the_window_ends_after_its_time(make):
    store = make(dedupe_ms=500)
    append(store, pack([b"a"]), at=1000)
    assert append(store, pack([b"a"]), at=1500) == ["known"]
    assert append(store, pack([b"a"]), at=1501) == ["ok"]
    assert append(store, pack([b"a"]), at=2001) == ["known"]


def test_the_window_holds_so_many_ids(make):
    store = make(dedupe_ids=3)
    for name in "abcd":
        append(store, pack([name.encode()], name))
    assert append(store, pack([b"b"], "b"), pack([b"c"], "c"), pack([b"d"], "d")) == ["known"] * 3
    assert append(store, pack([b"a"], "a")) == ["ok"]


def test_a_pack_with_more_ids_than_the_window(make):
    store = make(dedupe_ids=10)
    many = named([(f"m{i}", b"%d" % i) for i in range(5000)])
    assert append(store, many) == ["ok"]
    assert append(store, named([(f"m{i}", b"%d" % i) for i in range(4990, 5000)])) == ["known"]
    assert append(store, named([("m1", b"1")])) == ["ok"]
    assert len(stored(store)) == 5001


def test_memory_of_old_ids_is_given_back(make):
    store = make(dedupe_ms=100, dedupe_ids=100_000)
    for i in range(30):
        append(store, named([(f"{i}.{k}", b"x") for k in range(1000)]), at=1000 + i)
    assert store.stats()["ids"] == 30_000
    for _ in range(60):
        retain_once(store, 5000)
    assert store.stats()["ids"] == 0
    assert store.stats()["expired_ids"] == 30_000
    store = make(dedupe_ms=100, dedupe_ids=100_000)
    assert store.stats()["ids"] == 0
    assert append(store, pack([b"a"])) == ["ok"]


def test_only_the_youngest_bodies_of_an_id_are_remembered(make):
    store = make()
    for i in range(VARIANTS + 1):
        assert append(store, pack([b"%d" % i])) == ["ok"]
    for i in range(1, VARIANTS + 1):
        assert append(store, pack([b"%d" % i])) == ["known"]
    assert append(store, pack([b"0"])) == ["ok"]


def test_a_durable_window_survives_opening_again(tmp_path):
    for run in range(3):
        store = StoreCore(str(tmp_path), dedupe_ids=1000)
        assert append(store, pack([b"a"]), named([("x", b"1"), ("y", b"2")], None)) == (
            ["ok", "ok"] if run == 0 else ["known", "known"]
        )
        assert append(store, pack([b"a"], f"run{run}")) == ["ok"]
        assert store.stats()["ids"] == 4 + run
        store.close()
    store = StoreCore(str(tmp_path))  # without a window everything is stored, and the one on disk stays
    assert append(store, pack([b"a"])) == ["ok"]
    assert "duplicates" not in store.stats()
    store.close()
    store = StoreCore(str(tmp_path), dedupe_ids=1000)
    assert append(store, pack([b"a"])) == ["known"]
    store.close()


def test_what_a_full_disk_refused_is_not_known(tmp_path):
    store = StoreCore(str(tmp_path), dedupe_ids=1000, max_bytes=1000)
    large = pack([bytes(2000)])
    assert append(store, large) == ["disk full"]
    assert append(store, pack([b"a"], "q"), large) == ["disk full", "disk full"]
    assert append(store, pack([b"a"], "q")) == ["ok"]
    store.close()
    store = StoreCore(str(tmp_path), dedupe_ids=1000)
    assert append(store, large) == ["ok"]
    assert append(store, large) == ["known"]
    store.close()


def test_what_had_no_room_in_memory_is_not_known():
    store = StoreCore(None, dedupe_ids=1000, max_bytes=1000)
    large = pack([bytes(2000)])
    assert append(store, large, large) == ["disk full", "disk full"]
    assert counters(store) == (0, 0)
    assert append(store, pack([b"a"], "q"), pack([b"a"], "q")) == ["ok", "known"]
    store.close()


def test_a_commit_is_judged_again_after_the_map_has_grown(tmp_path):
    store = StoreCore(str(tmp_path), dedupe_ids=1000, map_bytes=1 << 20)
    chain = [pack([bytes([i]) * 200_000], f"p{i}") for i in range(20)]
    assert append(store, *chain, chain[3]) == ["ok"] * 20 + ["known"]
    assert counters(store) == (1, 0)
    assert append(store, *chain) == ["known"] * 20
    store.close()


def test_names_over_their_limit_leave_no_id(make):
    store = make()
    assert append(store, pack([b"a"]), stream="n" * 256) == append(store, pack([b"a"]), stream="m" * 256)
    assert append(store, pack([b"a"]), stream="n" * 256) != ["known"]
    assert store.stats()["ids"] == 0


# --- the model

SIDS = st.sampled_from([None, "p", "q"])
NAMES = st.sampled_from([None, "x", "y", "z"])
BODIES = st.sampled_from([b"1", b"2"])
PLAIN = st.tuples(SIDS, st.lists(BODIES, min_size=1, max_size=2))
OWN = st.tuples(SIDS, st.lists(st.tuples(NAMES, BODIES), min_size=1, max_size=4))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(st.tuples(st.sampled_from("st"), PLAIN | OWN), min_size=1, max_size=5)),
        st.tuples(st.just("wait"), st.integers(1, 60)),
        st.tuples(st.just("retain"), st.integers(1, 3)),
        st.tuples(st.just("reopen"), st.none()),
    ),
    max_size=25,
)
KEEP_MS = 100
MOST = 12


class Window:
    """Remember ids by (stream, kind, text): the youngest bodies of each with their place and time."""

    def __init__(self) -> None:
        self.known: dict[tuple, list[tuple[int, int, object]]] = {}
        self.next = 0
        self.duplicates = self.conflicts = 0

    def is_new(self, key: tuple, body: object, messages: int, now: int) -> bool:
        variants = self.known.setdefault(key, [])
        valid = [b for place, at, b in variants if self.next - place <= MOST and now - at <= KEEP_MS]
        if body in valid:
            self.duplicates += messages
            return False
        if valid:
            self.conflicts += messages
        variants.append((self.next, now, body))
        del variants[:-VARIANTS]
        self.next += 1
        return True

    def take(self, stream: str, sid: str | None, items: list, now: int) -> list[tuple[bytes, str | None]]:
        """Return what is to be stored of a pack."""
        rest = [(i, body) for i, (name, body) in enumerate(items) if name is None]
        new = {}
        for i, (name, body) in enumerate(items):
            if name is not None:
                new[i] = self.is_new((stream, "own", name), body, 1, now)
        if sid is not None and rest:
            rest_new = self.is_new((stream, "pack", sid), tuple(rest), len(rest), now)
            new.update({i: rest_new for i, _ in rest})
        kept = [(i, *item) for i, item in enumerate(items) if new.get(i, True)]
        if len(kept) == len(items):
            return [(body, name) for _, name, body in kept]
        return [(body, name or (sid and f"{sid}.{i}")) for i, name, body in kept]


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "memory"])
@settings(max_examples=30, deadline=None)
@given(steps=STEPS)
def test_the_window_agrees_with_the_model(durable, steps):
    path = tempfile.mkdtemp() if durable else None
    options = {"dedupe_ms": KEEP_MS, "dedupe_ids": MOST, "max_bytes": 0}
    store = StoreCore(path, **options)
    model = Window()
    expected = []
    now = 1000
    base = [0, 0]
    try:
        for kind, argument in steps:
            if kind == "append":
                chain = []
                for stream, (sid, items) in argument:
                    own = isinstance(items[0], tuple)
                    chain.append(("g", stream, *(named(items, sid) if own else pack(items, sid))))
                    plain = [(None, body) for body in items] if not own else items
                    expected += model.take(stream, sid, plain, now)
                append_entries(store, chain, receive_ms=now)
            elif kind == "wait":
                now += argument
            elif kind == "retain":
                for _ in range(argument):
                    retain_once(store, now)
            elif durable:
                base = [base[0] + counters(store)[0], base[1] + counters(store)[1]]
                store.close()
                store = StoreCore(path, **options)
            assert stored(store) == expected
            assert [a + b for a, b in zip(base, counters(store), strict=True)] == [model.duplicates, model.conflicts]
    finally:
        store.close()
        if durable:
            shutil.rmtree(path)
