"""Rows of the Spark sink in the de-duplication window: a bit each, durable and in memory, and a model of them."""

import shutil
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproxy._core.server.store.core import StoreCore
from dataproxy._core.wire.inlong import message
from tests.native.probe_feed import append_entries, retain_once

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
BLOCK = 256


def row_id(number: int, digest: str = "Abcdefghijk", prefix: str = "AbCd-_09.0.") -> str:
    """Return the id of a row as the sink makes it: its number in six digits, then the digest of its block."""
    return prefix + "".join(DIGITS[number >> shift & 63] for shift in range(30, -1, -6)) + digest


def rows(numbers, digest: str = "Abcdefghijk", prefix: str = "AbCd-_09.0.") -> tuple[bytes, int]:
    """Return a container of rows, each with its number as body, and how many they are."""
    pairs = [(b"%d" % n, {"msgid": row_id(n, digest, prefix)}) for n in numbers]
    return message.encode(4, [({"groupId": "g", "streamId": "s"}, pairs)]), len(pairs)


def append(store: StoreCore, *packs: tuple[bytes, int], stream: str = "s", at: int = 1000, group: str = "g"):
    return [status for _, status in append_entries(store, [(group, stream, *one) for one in packs], receive_ms=at)]


def bodies(store: StoreCore) -> list[bytes]:
    """Return the body of every stored message."""
    found = []
    for topic, partition, *_ in store.logs():
        for _, head, value in store.read(topic, partition, 0, max_bytes=1 << 30):
            records = [body for body, _ in message.records(value)]
            assert len(records) == head[2]
            found += records
    return found


def numbers(*spans: tuple[int, int]) -> list[bytes]:
    return [b"%d" % n for first, end in spans for n in range(first, end)]


def test_rows_that_come_again_are_stored_once_however_they_are_packed(make):
    store = make()
    assert append(store, rows(range(700)), rows(range(700, 1000))) == ["ok", "ok"]
    assert append(store, rows(range(100, 900))) == ["known"]
    assert append(store, rows(range(990, 1010))) == ["ok"]
    assert append(store, rows([5, 1012, 7, 1011, 1012])) == ["ok"]  # in another order, and one twice
    assert bodies(store) == [*numbers((0, 1010)), b"1012", b"1011"]
    assert store.stats()["duplicates"] == 800 + 10 + 3
    assert store.stats()["ids"] == 0
    assert store.stats()["row_blocks"] == 4  # 1,012 rows


def test_a_block_of_another_digest_is_another_block(make):
    store = make()
    assert append(store, rows(range(10))) == ["ok"]
    assert append(store, rows(range(10), "AbcdefghijK")) == ["ok"]
    assert append(store, rows(range(BLOCK, BLOCK + 10))) == ["ok"]  # the next block with the same digest
    assert append(store, rows(range(10), prefix="AbCd-_09.1.")) == ["ok"]
    assert append(store, rows(range(10), prefix="AbCd-_09.0.0.")) == ["ok"]
    assert append(store, rows(range(10)), stream="t") == ["ok"]
    assert append(store, rows(range(10)), group="h") == ["ok"]
    assert store.stats()["duplicates"] == 0
    assert store.stats()["row_blocks"] == 7


@pytest.mark.parametrize("number", [0, 63, 64, 255, 256, 65_535, 2**30 + 17, 2**36 - 1])
def test_every_number_of_a_row_is_its_own(make, number):
    store = make()
    near = sorted({n for n in (number - 256, number - 64, number - 1, number, number + 1, number + 256) if n >= 0})
    near = [n for n in near if n < 2**36]
    for n in near:
        assert append(store, rows([n])) == ["ok"]
    for n in near:
        assert append(store, rows([n])) == ["known"]


@pytest.mark.parametrize(
    "name", ["20251123.7.20251123075500123", "orders_1.7.AAAAAAzbcdefghijk", "20251123.7.aAAAAAAbcdefghijk"]
)
def test_ids_that_only_look_like_those_of_rows_are_compared_by_their_bytes(make, name):
    store = make()
    packs = [
        (message.encode(4, [({"groupId": "g", "streamId": "s"}, [(b, {"msgid": name})])]), 1) for b in (b"1", b"2")
    ]
    assert append(store, *packs) == ["ok", "ok"]
    assert append(store, *packs) == ["known", "known"]
    assert store.stats()["conflicts"] == 1
    assert store.stats()["row_blocks"] == 0


def test_ids_that_number_no_row_are_ids_like_others(make):
    store = make()
    name = row_id(5)[:-12] + "=" + "Abcdefghijk"  # the last digit of the number is none
    one = message.encode(4, [({"groupId": "g", "streamId": "s"}, [(b"x", {"msgid": name.replace("=", "!")})])]), 1
    assert append(store, one, one) == ["ok", "known"]
    assert store.stats()["ids"] == 1
    assert store.stats()["row_blocks"] == 0


def test_rows_among_other_messages(make):
    store = make()
    mixed = [(b"0", {"msgid": row_id(0)}), (b"x", {"msgid": "x"}), (b"1", {"msgid": row_id(1)}), (b"p", {"n": "1"})]
    pack = message.encode(4, [({"groupId": "g", "streamId": "s", "sid": "p"}, mixed)]), 4
    assert append(store, rows([1]), pack) == ["ok", "ok"]
    assert bodies(store) == [b"1", b"0", b"x", b"p"]
    assert append(store, pack) == ["known"]


def test_rows_are_known_longer_than_ids(make):
    store = make(dedupe_ms=100, dedupe_rows_ms=10_000)
    append(store, rows(range(300)), at=1000)
    retain_once(store, 10_000)
    assert append(store, rows(range(300)), at=11_000) == ["known"]
    for _ in range(3):
        retain_once(store, 11_001)
    assert store.stats()["row_blocks"] == 0
    assert store.stats()["expired_row_blocks"] == 2
    assert store.stats()["forgotten_rows"] == 0  # their time had come
    assert append(store, rows(range(300)), at=11_001) == ["ok"]


def test_a_row_that_comes_late_keeps_its_block(make):
    store = make(dedupe_rows_ms=100)
    append(store, rows([0]), at=1000)
    append(store, rows([1]), at=1090)
    assert append(store, rows([0, 1]), at=1190) == ["known"]
    assert append(store, rows([0]), at=1191) == ["ok"]


def test_what_is_forgotten_for_want_of_room_is_counted(make):
    store = make(dedupe_blocks=4, dedupe_ids=1)
    assert append(store, rows(range(6 * BLOCK))) == ["ok"]
    for _ in range(3):
        append(store, rows([2**20]))
    assert store.stats()["forgotten_rows"] == 3 * BLOCK
    assert append(store, rows(range(5 * BLOCK, 6 * BLOCK))) == ["known"]
    assert append(store, rows(range(BLOCK))) == ["ok"]
    for name in ("a", "b", "c"):
        pairs = [(b"x", {"msgid": name})]
        append(store, (message.encode(4, [({"groupId": "g", "streamId": "s"}, pairs)]), 1))
    assert store.stats()["forgotten_ids"] == 2


def test_rows_survive_opening_again(tmp_path):
    with_rows = StoreCore(str(tmp_path), dedupe_ids=1000)
    assert append(with_rows, rows(range(1000))) == ["ok"]
    with_rows.close()
    for end in (1100, 1200):
        store = StoreCore(str(tmp_path), dedupe_ids=1000)
        assert store.stats()["row_blocks"] == (end - 100 + BLOCK - 1) // BLOCK
        assert append(store, rows(range(end - 150, end))) == ["ok"]  # in a block from before
        assert append(store, rows(range(end))) == ["known"]
        store.close()
    store = StoreCore(str(tmp_path), dedupe_ids=1000)
    assert bodies(store) == numbers((0, 1200))
    store.close()


def test_rows_that_a_full_disk_refused_are_not_known(tmp_path):
    store = StoreCore(str(tmp_path), dedupe_ids=1000, max_bytes=40_000)
    assert append(store, rows(range(100))) == ["ok"]
    assert append(store, rows(range(50, 2000))) == ["disk full"]  # one of its blocks is there, the others are new
    assert append(store, rows(range(50, 150))) == ["ok"]
    assert append(store, rows(range(150))) == ["known"]
    assert bodies(store) == numbers((0, 150))
    store.close()
    store = StoreCore(str(tmp_path), dedupe_ids=1000)
    assert store.stats()["row_blocks"] == 1
    assert append(store, rows(range(100, 200))) == ["ok"]
    assert bodies(store) == numbers((0, 200))
    store.close()


def test_rows_are_judged_again_after_the_map_has_grown(tmp_path):
    store = StoreCore(str(tmp_path), dedupe_ids=1000, map_bytes=1 << 20)
    large = [
        (message.encode(4, [({"groupId": "g", "streamId": "s"}, [(bytes([i]) * 200_000, {"msgid": row_id(i)})])]), 1)
        for i in range(20)
    ]
    assert append(store, rows([200])) == ["ok"]  # so that their block stays when the first try is taken back
    assert append(store, *large, large[3]) == ["ok"] * 20 + ["known"]
    assert append(store, *large) == ["known"] * 20
    assert store.stats()["duplicates"] == 21
    store.close()


def test_a_million_rows_of_one_task_take_a_block_for_256(tmp_path):
    """256 rows share one block: what is remembered of them does not grow with their number of ids."""
    store = StoreCore(str(tmp_path), dedupe_ids=1000, dedupe_blocks=100_000)
    for first in range(0, 1_000_000, 5000):
        append(store, rows(range(first, first + 5000)))
    assert store.stats()["row_blocks"] == -(-1_000_000 // BLOCK)
    assert store.stats()["ids"] == store.stats()["forgotten_rows"] == 0
    assert append(store, rows(range(5000)), rows(range(995_000, 1_000_000))) == ["known", "known"]
    store.close()


# --- the model

ROWS = st.lists(st.integers(0, 3 * BLOCK), min_size=1, max_size=6)
RUNS = st.tuples(st.integers(0, 3 * BLOCK), st.integers(1, 300)).map(lambda span: list(range(span[0], sum(span))))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(st.tuples(st.sampled_from("AB"), ROWS | RUNS), min_size=1, max_size=4)),
        st.tuples(st.just("refused"), st.tuples(st.sampled_from("AB"), RUNS)),
        st.tuples(st.just("wait"), st.integers(1, 60)),
        st.tuples(st.just("retain"), st.integers(1, 3)),
        st.tuples(st.just("reopen"), st.none()),
    ),
    max_size=20,
)
KEEP_MS = 100
MOST = 3


class Model:
    """Remember rows by their block: a set of rows, the time of the last new one, and its place in line."""

    def __init__(self) -> None:
        self.blocks: list[tuple[tuple[str, int], set[int], list[int]]] = []  # in the order of their coming

    def take(self, digest: str, number: int, now: int) -> bool:
        """Tell whether a row is new, and remember it."""
        key = digest, number // BLOCK
        held = [one for i, one in enumerate(self.blocks) if len(self.blocks) - i <= MOST and now - one[2][0] <= KEEP_MS]
        block = next((one for one in held if one[0] == key), None)
        if block is None:
            block = key, set(), [now]
            self.blocks.append(block)
        if number in block[1]:
            return False
        block[1].add(number)
        block[2][0] = now
        return True


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "memory"])
@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_rows_agree_with_the_model(durable, steps):
    path = tempfile.mkdtemp() if durable else None
    options = {"dedupe_rows_ms": KEEP_MS, "dedupe_blocks": MOST, "dedupe_ids": 10}
    store = StoreCore(path, **options)
    model, expected, now = Model(), [], 1000
    try:
        for kind, argument in steps:
            if kind == "append":
                chain = []
                for letter, wanted in argument:
                    chain.append(("g", "s", *rows(wanted, letter * 11)))
                    expected += [b"%d" % n for n in wanted if model.take(letter, n, now)]
                append_entries(store, chain, receive_ms=now)
            elif kind == "refused":  # a name that is too long refuses its entry alone
                append_entries(store, [("g", "n" * 256, *rows(argument[1], argument[0] * 11))], receive_ms=now)
            elif kind == "wait":
                now += argument
            elif kind == "retain":
                for _ in range(argument):
                    retain_once(store, now)
            elif durable:
                store.close()
                store = StoreCore(path, **options)
            assert bodies(store) == expected
    finally:
        store.close()
        if durable:
            shutil.rmtree(path)
