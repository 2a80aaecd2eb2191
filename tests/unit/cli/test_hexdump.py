"""Hex dumps as input of ``dataproxy frames``: what other programs print is read back, and nothing is guessed."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproxy.cli.hexdump import DumpError, read_dump


def xxd(data, width=16, group=2):
    """Return what ``xxd`` prints."""
    lines = []
    for at in range(0, len(data), width):
        part = data[at : at + width]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{at:08x}: {part.hex(' ', -group):<{width * 2 + (width - 1) // group}}  {shown}")
    return "\n".join(lines).encode() + b"\n"


def hexdump(data, beside="|", end=True):
    """Return what ``hexdump -Cv`` prints, or with ``>`` what ``od -A x -t x1z -v`` does."""
    lines = []
    for at in range(0, len(data), 16):
        part = data[at : at + 16]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        digits = part.hex(" ") if beside == ">" else f"{part[:8].hex(' ')}  {part[8:].hex(' ')}"
        lines.append(f"{at:08x}  {digits:<48}  {beside}{shown}{'<' if beside == '>' else beside}")
    return "\n".join([*lines, f"{len(data):08x}"] if end else lines).encode() + b"\n"


texts = st.binary(min_size=1, max_size=80) | st.text("0123456789abcdef ", min_size=1, max_size=80).map(str.encode)


@given(texts)
def test_dumps_are_read_back(data):
    for dump in (xxd(data), xxd(data, group=1), xxd(data, 10), hexdump(data), hexdump(data, ">"), hexdump(data, "")):
        assert read_dump(dump) == data
    assert read_dump(hexdump(data, end=False)) in (data, None)  # one line without a colon may be digits alone


def test_the_dumps_are_those_of_the_programs(tmp_path):
    data = bytes(range(256)) + b"00000001 deadbeef"
    (tmp_path / "f").write_bytes(data)
    printed = subprocess.run(["od", "-A", "x", "-t", "x1z", "-v", tmp_path / "f"], capture_output=True, check=True)
    assert read_dump(printed.stdout) == data


@pytest.mark.parametrize("size", [1, 5, 8, 15, 16, 17, 40])
@pytest.mark.parametrize("options", ["", "-t x1", "-x", "-A x -x", "-A x -t x2z", "-A x -t x4", "-A x -t x1"])
def test_numbers_that_are_no_bytes_are_refused(tmp_path, options, size):
    """What ``od`` and ``hexdump`` print by default has the same look, but other offsets, or bytes in another order."""
    data = bytes(range(size))
    (tmp_path / "f").write_bytes(data)
    printed = subprocess.run(["od", "-v", *options.split(), tmp_path / "f"], capture_output=True, check=True).stdout
    if "-t x1" in options and ("-A x" in options or size < 8):
        assert read_dump(printed) == data
        return
    with pytest.raises(DumpError, match=r"the hex dump cannot be read: its .*; dump with xxd") as raised:
        read_dump(printed)
    expected = "its offsets are octal" if "-A x" not in options and size >= 8 else "in the machine's order"
    assert expected in str(raised.value)


def test_what_hexdump_prints_by_default_is_refused():
    printed = b"0000000 0000 5d00 0027 0000 0000 0400 5365 00f1\n0000010 0300 0201 0403\n0000016\n"
    with pytest.raises(DumpError, match="its numbers have 2 bytes, in the machine's order"):
        read_dump(printed)


@pytest.mark.parametrize(
    "data",
    [
        b"00000001 01",
        b"0000000101\n0000000101",
        b"0000 0001 01 00 00\n",
        b"0000 0009 0700\n0100 ee01",
        b"\0\0\0\1\1",
        b"",
    ],
)
def test_digits_and_frames_are_no_dump(data):
    assert read_dump(data) is None


@pytest.mark.parametrize(
    ("dump", "words"),
    [
        (b"00000000  00 00  |..|\n*\n00000020\n", "line 2 of the hex dump: repeated lines are left out; dump with -v"),
        (b"00000000: 0000 00\n00000010: 00\n", "line 1 of the hex dump: 3 bytes, the next offset says 16"),
        (b"00000000: 0000\n00000002: 00\nthe end\n", "line 3 of the hex dump: it begins with no offset"),
        (b"00000000: 0000\n00000002: 00\n00000001: 00\n", "the next offset says -1"),
    ],
)
def test_a_dump_with_a_hole_is_refused(dump, words):
    with pytest.raises(DumpError) as raised:
        read_dump(dump)
    assert words in str(raised.value)
