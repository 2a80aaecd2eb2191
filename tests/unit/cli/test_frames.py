"""``dataproxy frames``: its inputs, what it prints, and its codes."""

import json
import sys
import tracemalloc
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dataproxy.cli.app import app
from tests.support.reference import frames
from tests.support.reference.rocketvectors import FRAMES as ROCKET_FRAMES
from tests.support.reference.tubevectors import FRAMES as TUBE_FRAMES
from tests.support.reference.vectors import VECTORS, by_name

NAMES = b"groupId=g&streamId=s"
FRAME = frames.text_frame(5, frames.join_items([b"\x1b[31mred\n", b"b" * 200]), NAMES + b"&k=\xe2\x80\xae")
WRONG = frames.binary_frame(frames.join_items([b"x"]), NAMES)[:-1] + b"\2"


def run(*arguments, **options):
    return CliRunner().invoke(app, ["frames", *map(str, arguments)], **options)


@pytest.fixture
def place(tmp_path):
    def put(data):
        path = tmp_path / "frames"
        path.write_bytes(data)
        return path

    return put


def test_every_form_of_input_prints_the_same(place):
    expected = run(FRAME.hex()).stdout
    assert "groupId = g" in expected
    digits = FRAME.hex(" ", 2)
    lines = "\r\n".join(digits[at : at + 47] for at in range(0, len(digits), 47))
    for arguments, stdin in (
        ([place(FRAME)], None),
        (["-"], FRAME),
        (digits.split(), None),
        ([f"0x{FRAME.hex().upper()}"], None),
        ([FRAME.hex(":")], None),
    ):
        if stdin is None:
            result = run(*arguments)
            assert (result.exit_code, result.stdout) == (0, expected)
    assert run(place(lines.encode())).stdout == expected


def test_all_vectors_of_one_side_in_a_row(place):
    data = b"".join(bytes.fromhex(vector["hex"]) for vector in VECTORS["acks"])
    result = run(place(data), "--sender", "server")
    assert result.exit_code == 0
    assert result.stdout.count("\nframe ") + 1 == len(VECTORS["acks"])
    assert "answer to 7: 115 TOPIC_IS_BLANK" in result.stdout


def test_nothing_is_obeyed_by_the_terminal():
    result = run(FRAME.hex())
    assert all(character.isprintable() or character == "\n" for character in result.stdout)
    assert "\\x1b[31mred\\n" in result.stdout
    assert "\\u202e" in result.stdout
    assert run(FRAME.hex(), "--json").stdout.strip().isprintable()


def test_bodies_are_shortened_without_full():
    assert "b" * 80 + "..." in run(FRAME.hex()).stdout
    assert "b" * 200 in run(FRAME.hex(), "--full").stdout
    short, whole = (json.loads(run(FRAME.hex(), "--json", *more).stdout)["items"][1] for more in ([], ["--full"]))
    assert (short["bytes"], len(short["body"]), short["shortened"]) == (200, 80, True)
    assert (len(whole["body"]), "shortened" in whole) == (200, False)


def test_a_character_is_never_divided():
    for lead in range(4):
        frame = frames.text_frame(5, frames.join_items([b"a" * lead + "中".encode() * 60]), NAMES)
        assert "\\x" not in run(frame.hex()).stdout


def test_many_items_are_counted():
    frame = frames.text_frame(5, frames.join_items([b"x"] * 50), NAMES)
    assert "... 30 more items; --full prints them" in run(frame.hex()).stdout
    assert run(frame.hex(), "--full").stdout.count("1 byte: x") == 50
    assert json.loads(run(frame.hex(), "--json").stdout)["item_count"] == 50


def test_json_has_a_line_for_each_frame():
    golden = bytes.fromhex(by_name("requests", "bin7_snappy")["hex"])
    ack = bytes.fromhex(by_name("acks", "bin_err")["hex"])
    first, second, third = map(json.loads, run((golden + ack + WRONG).hex(), "--json").stdout.splitlines())
    assert [item.get("body") for item in first["items"]] == ["hello", "in long", None]
    assert first["items"][2]["body_base64"] == "AAH/"
    assert (first["sender"], first["unpacked_bytes"], first["problems"]) == ("client", 27, [])
    assert second["answer"] == {"code": 1, "sequence": 5, "node": "127.0.0.1", "message": ""}
    assert third["at"] == len(golden + ack)
    assert third["problems"][0]["field"] == "magic"


def test_json_has_the_bytes_of_attributes_that_are_no_text():
    frame = frames.text_frame(5, frames.join_items([b"x"]), NAMES + b"&\\xfe=\\xff&\xfe=\xff&k")
    *_, literal, raw, bare = json.loads(run(frame.hex(), "--json").stdout)["attributes"]
    assert literal == {"key": "\\xfe", "value": "\\xff"}
    assert raw == {**literal, "key_base64": "/g==", "value_base64": "/w=="}
    assert bare == {"key": "k", "value": None}


def test_a_file_of_frames_is_held_once(place):
    source = place(FRAME + bytes(32 << 20))
    run(source)
    tracemalloc.start()
    try:
        run(source)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 80 << 20  # the input, and the slice of what is left behind the wrong length


def test_a_wrong_frame_is_told():
    result = run((FRAME + WRONG + FRAME).hex())
    assert result.exit_code == 1
    at = len(FRAME + WRONG) - 2
    told = f"magic, at byte {at}: it is 0xee02; expected 0xee01"
    assert f"   wrong: {told}\n" in result.stdout
    assert result.stderr == f"dataproxy: 1 of 3 frames wrong; frame 2 at byte {len(FRAME)}: {told}\n"
    assert result.stdout.count("\nframe ") == 2


def test_the_limit_of_unpacking():
    golden = by_name("requests", "bin7_snappy")["hex"]
    assert run(golden, "--limit", "27").exit_code == 0
    result = run(golden, "--limit", "26")
    assert result.exit_code == 1
    assert "announces 27 bytes, the limit is 26" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["abc"], 2, "3 hex digits are no whole number of bytes"),
        (["/no/such"], 2, "'/no/such' is not hex digits and cannot be read as a file: No such file"),
        (["/"], 2, "Is a directory"),
        (["00", "zz"], 2, "of several arguments each is hex digits; give one file"),
        (["00", "--sender", "me"], 2, "--sender 'me' is unknown; choose client, server or auto"),
        ([""], 1, "the input is empty"),
        (["00"], 1, "only 1 of its 4 bytes are there"),
    ],
)
def test_wrong_arguments(arguments, code, words):
    result = run(*arguments)
    assert result.exit_code == code
    assert words in result.stderr
    assert result.stderr.startswith("dataproxy: ")


@pytest.mark.parametrize(
    ("text", "hinted"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", True),
        (b"\t0x0000:  4500 0041 0000 4000  E..A..@.\n", True),
        (b"frame 1 at byte 0: 97 bytes", True),
        (FRAME[:40], False),
        (FRAME + b"GET / HTTP/1.1\r\n", False),
        (bytes(40), False),
    ],
)
def test_text_that_is_no_frame_gets_a_hint(place, text, hinted):
    result = run(place(text))
    assert result.exit_code == 1
    assert ("; these bytes are text: no frames, no hex digits" in result.stderr) == hinted


def test_the_example_of_the_page():
    page = (Path(__file__).parents[3] / "docs" / "cli.md").read_text()
    assert run(by_name("requests", "bin7_snappy")["hex"]).stdout in page


def test_a_text_answer_with_a_body_is_the_servers():
    answer = frames.text_frame(5, b"2", b"mid=3")
    assert "answer to items, sent by the server" in run(answer.hex()).stdout
    assert "sent by the client" in run(frames.text_frame(5, frames.join_items([b"x"]), NAMES + b"&mid=3").hex()).stdout


def test_an_empty_file(place):
    result = run(place(b""))
    assert result.exit_code == 1
    assert "the input is empty" in result.stderr


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_digits_behind_a_byte_order_mark(place, encoding):
    """Editors and shells of Windows write hex digits as UTF-16, or put a mark before them."""
    text = FRAME.hex(" ")
    if encoding.endswith("e"):
        text = "\ufeff" + text
    result = run(place(text.encode(encoding)))
    assert (result.exit_code, result.stdout) == (0, run(FRAME.hex()).stdout)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xff\xfe\x00", "frames wrong"),
        (b"\xff\xfe\x00\xd8zz", "frames wrong"),
        (b"\xef\xbb\xbfno digits", "frames wrong"),
        (b"\xfe\xff", "the input is empty"),
    ],
)
def test_a_mark_before_no_digits(place, data, said):
    result = run(place(data))
    assert result.exit_code == 1
    assert said in result.stderr


TUBEMQ = {frame["name"]: bytes.fromhex(frame["frame_hex"]) for frame in TUBE_FRAMES}


def test_frames_of_tubemq_are_read():
    result = run((TUBEMQ["send_message_with_attr"] + TUBEMQ["send_message_overflow"]).hex())
    assert (result.exit_code, result.stderr) == (0, "")
    assert "frame 1 at byte 0: 201 bytes, TubeMQ, request: send a message (method 13)\n" in result.stdout
    assert "            body = hello tubemq   (12 bytes)\n" in result.stdout
    assert "TubeMQ, answer: send a message (method 13)\n" in result.stdout
    assert "            errCode = 419\n" in result.stdout


def test_frames_of_tubemq_as_json():
    lines = run("--json", TUBEMQ["get_message_ok"].hex()).stdout.splitlines()
    (found,) = map(json.loads, lines)
    assert (found["protocol"], found["kind"], found["method"], found["problems"]) == ("tubemq", "answer", 17, [])
    messages = found["parts"][-1]["fields"]["messages"]
    assert [one["payLoadData"]["bytes"] for one in messages] == [60, 13]


def test_what_is_wrong_with_a_frame_of_tubemq():
    data = bytearray(TUBEMQ["send_message_explicit_checksum"])
    data[data.index(b"plain")] ^= 1
    result = run(bytes(data).hex())
    assert result.exit_code == 1
    assert "wrong: data, at byte " in result.stdout
    assert "       8  listSize    1           slice of " in result.stdout
    assert "its checksum is 384299206; expected " in result.stderr


def test_frames_of_tubemq_need_protobuf(monkeypatch):
    for name in ("google", "google.protobuf"):
        monkeypatch.setitem(sys.modules, name, None)
    result = run(TUBEMQ["get_message"].hex())
    assert result.exit_code == 1
    assert "pip install 'dataproxy-sdk[tubemq]'" in result.stderr


def test_where_frames_of_tubemq_begin_is_told():
    result = run((FRAME + TUBEMQ["get_message"]).hex())
    assert result.exit_code == 1
    assert f"a frame of TubeMQ's may begin at byte {len(FRAME)}" in result.stderr
    assert "only 3 of the 12 bytes" in run("ff7ff4").stderr


ROCKETMQ = {frame["name"]: bytes.fromhex(frame["hex_json"]) for frame in ROCKET_FRAMES}


def test_frames_of_rocketmq_are_read():
    result = run((ROCKETMQ["send_v2"] + ROCKETMQ["pull_found"]).hex())
    assert (result.exit_code, result.stderr) == (0, "")
    assert "RocketMQ, request: SEND_MESSAGE_V2\n" in result.stdout
    assert "            b (topic) = TopicTest\n" in result.stdout
    assert "          body = hello-sync   (10 bytes)\n" in result.stdout
    assert "RocketMQ, answer: SUCCESS\n" in result.stdout
    assert "          message 1, 181 bytes\n" in result.stdout


def test_frames_of_rocketmq_as_json():
    (found,) = map(json.loads, run("--json", ROCKETMQ["pull_found"].hex()).stdout.splitlines())
    assert (found["protocol"], found["kind"], found["code"], found["problems"]) == ("rocketmq", "answer", 0, [])
    assert [one["queueOffset"] for one in found["messages"]] == [0, 1]


def test_what_is_wrong_with_a_frame_of_rocketmq():
    result = run(ROCKETMQ["pull_found"].replace(b"hello-2", b"hello-3").hex())
    assert result.exit_code == 1
    assert "wrong: message 1, at byte " in result.stdout
    assert "its checksum is 2068321936; expected " in result.stderr
