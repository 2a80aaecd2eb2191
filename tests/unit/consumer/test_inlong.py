"""Records in the containers that DataProxies put into the queue."""

from __future__ import annotations

from typing import Any

import pytest

from dataproxy import inlong_records
from dataproxy._core.wire.inlong import message
from dataproxy.errors import RemoteProtocolError


class Message:
    """A message of a pack."""

    def __init__(self, index: int, body: bytes) -> None:
        self.index, self.body, self.id = index, body, 7


class Pack(list[Any]):
    """A pack, as far as it is looked at."""

    topic, partition, offset = "t", "1:t:0", 280


def pack_of(*bodies: bytes) -> Any:
    return Pack(Message(i, body) for i, body in enumerate(bodies))


ATTRS = {"groupId": "g", "streamId": "s", "dt": "1767225600000"}


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize("compress", [False, True])
def test_all_records_of_all_versions(version: int, compress: bool) -> None:
    records: list[Any] = [b"a", b"bb"] if version != 3 else [(b"a", {"k": "v"}), (b"bb", {"k": "v"})]
    body = message.encode(version, [(ATTRS, records)], create_time_ms=1767225600000, compress=compress)
    found = list(inlong_records(pack_of(body, body)))
    assert [(one.body, one.index, one.number) for one in found] == [
        (b"a", 0, 0), (b"bb", 0, 1), (b"a", 1, 0), (b"bb", 1, 1)
    ]  # fmt: skip
    assert {(one.group_id, one.stream_id, one.data_time_ms) for one in found} == {("g", "s", 1767225600000)}


def test_what_a_record_has() -> None:
    attrs = {**ATTRS, "msgid": "id-1", "dtMs": "1767225600123", "app": "web"}
    (one,) = inlong_records(pack_of(message.encode(1, [(attrs, [b"a"])])))
    assert (one.group_id, one.stream_id, one.data_time_ms, one.message_id) == ("g", "s", 1767225600123, "id-1")
    assert one.attributes["app"] == "web"
    (bare,) = inlong_records(pack_of(message.encode(1, [({"groupId": "g", "dt": "x"}, [b"a"])])))
    assert (bare.data_time_ms, bare.message_id, bare.stream_id) == (0, "", "")


@pytest.mark.parametrize("own", [None, {"k": "v"}])
def test_what_is_done_to_the_attributes_of_a_record_is_not_seen_in_others(own: dict[str, str] | None) -> None:
    attrs = {**ATTRS, "msgid": "id-1"}
    records: list[Any] = [b"a", b"b", b"c"] if own is None else [(b"a", own), (b"b", own), (b"c", own)]
    found = []
    for one in inlong_records(pack_of(message.encode(3 if own else 1, [(attrs, records)]))):
        found.append((one.group_id, one.stream_id, one.data_time_ms, one.message_id, dict(one.attributes)))
        one.attributes.clear()
        one.attributes["streamId"] = "another"
    assert found == [("g", "s", 1767225600000, "id-1", attrs | (own or {}))] * 3


def test_what_is_no_container_is_one_error_that_names_it() -> None:
    good = message.encode(1, [(ATTRS, [b"a"])])
    found = inlong_records(pack_of(good, b"nothing", good))
    assert next(found).body == b"a"
    with pytest.raises(RemoteProtocolError, match=r"message 1 of the pack at 280 of 1:t:0") as caught:
        next(found)
    assert caught.value.details == {"topic": "t", "partition": "1:t:0", "offset": 280, "index": 1, "id": 7}


def test_what_is_no_container_goes_where_it_is_wanted() -> None:
    good = message.encode(1, [(ATTRS, [b"a"])])
    kept: list[Any] = []

    def keep(one: Any, error: RemoteProtocolError) -> None:
        kept.append((one.index, str(error)))

    found = list(inlong_records(pack_of(good, b"", good[:-3], good), keep))
    assert (found[0].index, found[-1].index) == (0, 3)
    assert [index for index, _ in kept] == [1, 2]
