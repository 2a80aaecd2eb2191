"""Headers of control messages as records, codes, and names: those of the vectors, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproxy.errors import RemoteProtocolError
from dataproxy.wire.rocketmq import headers, names
from dataproxy.wire.rocketmq.codes import LANGUAGES, Answer, Code, answer_name, code_name, shown_version, version_name
from dataproxy.wire.rocketmq.headers import ANSWERS, REQUESTS, header_fields, read_header
from dataproxy.wire.rocketmq.names import ClientId, MessageId
from tests.support.reference import rocketmq as plain
from tests.support.reference.rocketvectors import CAPTURED, FRAMES, VECTORS

COMPILED = {10, 11, 310, 320}
BODIES_ALONE = {34, 41, 42, 46, 106, 200}


def all_fields() -> list[tuple[int, int | None, dict[str, str]]]:
    found = []
    for vector in FRAMES:
        found.append((vector["code"], vector.get("in_reply_to_code"), vector["fields"]["extFields"] or {}))
    for vector in CAPTURED:
        command = plain.read_frame(bytes.fromhex(vector["hex"]))
        fields = {name.decode(): value.decode() for name, value in command["fields"] or ()}
        found.append((vector["code"], vector.get("in_reply_to_code"), fields))
    return found


def kind_of(code: int, answered: int | None) -> Any:
    if answered is not None:
        return ANSWERS.get(answered) if code == 0 else None
    return REQUESTS.get(code)


TYPED = [(kind_of(code, answered), fields) for code, answered, fields in all_fields() if kind_of(code, answered)]


@pytest.mark.parametrize(("kind", "fields"), TYPED)
def test_every_header_of_the_vectors(kind: Any, fields: dict[str, str]) -> None:
    record = read_header(kind, fields)
    written = header_fields(record)
    assert read_header(kind, written) == record
    known = {name: value for name, value in fields.items() if name in written}
    assert known == written
    left = {name: value for name, value in fields.items() if name not in written and value}
    defaults = dict.fromkeys(("fromTransactionCheck", "jstackEnable", "unitMode", "order"), "false")
    others = {"AccessKey", "Signature", "OnsChannel", "topicSysFlag", "ReqT", "clientID"}
    assert {name for name, value in left.items() if defaults.get(name) != value} <= others | {"bname"}


def test_every_request_of_the_vectors_has_its_record() -> None:
    codes = {code for code, answered, fields in all_fields() if answered is None and fields}
    assert codes - set(REQUESTS) - COMPILED - BODIES_ALONE <= {0, 2, 3}


def test_names_of_codes() -> None:
    for vector in FRAMES:
        name = code_name(vector["code"]) if vector["kind"] != "response" else answer_name(vector["code"])
        assert name == vector["code_name"]
    assert (code_name(9999), answer_name(-5)) == ("", "")
    assert LANGUAGES == plain.LANGUAGES
    assert (Code.HEART_BEAT, Answer.FLOW_CONTROL) == (34, 215)


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("TRUE", True), ("1", False), ("0", False), ("yes", False)]
)
def test_booleans_are_javas(text: str, value: bool) -> None:
    fields = {"topic": "t", "group": "g", "timestamp": "-1", "isForce": text}
    assert read_header(headers.ResetOffset, fields).is_force is value


@pytest.mark.parametrize(
    "text", ["", "x", "1.0", "٣", "1_0", " 1", "0x10", "9223372036854775808", "9" * 5000, "-", "+"]
)
def test_a_number_that_is_none_is_named(text: str) -> None:
    with pytest.raises(RemoteProtocolError, match="the field 'offset'") as caught:
        read_header(headers.MessageAt, {"offset": text})
    assert caught.value.details["field"] == "offset"
    assert "VIEW_MESSAGE_BY_ID" in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_number_has_its_size() -> None:
    fields = {"topic": "t", "queueId": "2147483648"}
    with pytest.raises(RemoteProtocolError, match="a number from -2147483648 to 2147483647"):
        read_header(headers.TopicQueue, fields)
    assert read_header(headers.MessageAt, {"offset": "-9223372036854775808"}).offset == -(2**63)


@pytest.mark.parametrize("kind", sorted({*REQUESTS.values(), *ANSWERS.values()}, key=lambda kind: kind.__name__))
def test_a_field_that_is_missing_is_named(kind: Any) -> None:
    with pytest.raises(RemoteProtocolError, match="it is missing"):
        read_header(kind, {})


@given(st.dictionaries(st.sampled_from(["topic", "group", "timestamp", "isForce", "x"]), st.text(max_size=8)))
def test_any_fields_are_a_record_or_refused(fields: dict[str, str]) -> None:
    try:
        record = read_header(headers.ResetOffset, fields)
    except RemoteProtocolError:
        return
    assert read_header(headers.ResetOffset, header_fields(record)) == record


@pytest.mark.parametrize("vector", VECTORS["message_ids"], ids=lambda v: v["ip"])
def test_message_ids(vector: dict[str, Any]) -> None:
    one = MessageId(vector["ip"], vector["port"], vector["offset"])
    assert MessageId.read(vector["id"]) == MessageId.read(vector["id"].lower()) == one
    assert str(one) == vector["id"]


@pytest.mark.parametrize("text", ["", "0" * 31, "0" * 33, "g" + "0" * 31, " " + "0" * 31, "00 " * 10 + "00", "٣" * 32])
def test_what_is_no_message_id(text: str) -> None:
    with pytest.raises(ValueError, match="is no message id"):
        MessageId.read(text)


@pytest.mark.parametrize("vector", VECTORS["java_string_hash"], ids=lambda v: v["s"])
def test_hashes_of_tags(vector: dict[str, Any]) -> None:
    assert names.tag_hash(vector["s"]) == vector["hash"]


def test_client_ids() -> None:
    for text, one in (
        ("192.0.2.10@4711#123", ClientId("192.0.2.10", "4711#123")),
        ("192.0.2.10@4711#123@unit@STREAM", ClientId("192.0.2.10", "4711#123", "unit", True)),
        ("192.0.2.10@4711@STREAM", ClientId("192.0.2.10", "4711", "", True)),
        ("4711-192.0.2.10@DEFAULT", ClientId("4711-192.0.2.10", "DEFAULT")),
        ("alone", ClientId("alone", "")),
    ):
        assert ClientId.read(text) == one
        assert str(one) == text


def test_topics() -> None:
    assert names.is_name("%RETRY%CG-1_a|b")
    assert names.is_name("x" * 127)
    assert not any(map(names.is_name, ("", "x" * 128, "a b", "é", "a\n", "a/b", "a@b")))
    assert names.retry_topic("g") == "%RETRY%g"
    assert names.dead_letter_topic("g") == "%DLQ%g"


@pytest.mark.parametrize(
    ("version", "name"),
    [
        (17, "V3_0_1"), (28, "V3_0_7_SNAPSHOT"), (36, "V3_0_11_SNAPSHOT"), (45, "V3_0_15"), (46, "V3_1_0_SNAPSHOT"),
        (62, "V3_1_8_SNAPSHOT"), (63, "V3_1_8"), (85, "V3_2_9"), (86, "V3_3_1_SNAPSHOT"), (121, "V3_4_9"),
        (211, "V3_9_9"), (212, "V4_0_0_SNAPSHOT"), (232, "V4_1_0_SNAPSHOT"), (293, "V4_4_0"), (317, "V4_5_2"),
        (333, "V4_6_0"), (355, "V4_7_1"), (373, "V4_8_0"), (393, "V4_9_0"), (397, "V4_9_2"), (401, "V4_9_4"),
        (409, "V4_9_8"), (433, "V5_1_0"), (473, "V5_3_0"), (611, "V5_9_9"),
    ],
)  # fmt: skip
def test_versions_are_numbers_with_names(version: int, name: str) -> None:
    assert (version_name(version), shown_version(version)) == (name, name)


@pytest.mark.parametrize("version", [-1, 0, 15, 612, 32767])
def test_a_version_that_is_unknown_is_shown_with_its_number(version: int) -> None:
    assert (version_name(version), shown_version(version)) == ("", f"unknown ({version})")
