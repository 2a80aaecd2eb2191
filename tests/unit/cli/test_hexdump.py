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


@pytest.mark.parametrize("size", [1, 5, 10, 15, 16, 17, 40])
@pytest.mark.parametrize("start", [0, 100])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("-A x -t x1", ""),
        ("-A d -t x1", "its offset is"),
        ("-A o -t x1", "its offset is"),
        ("", "its numbers are not single bytes"),
        ("-x", "its numbers are not single bytes"),
        ("-A x -t x2z", "its numbers are not single bytes"),
        ("-A x -t x4", "its numbers are not single bytes"),
        ("-A x -t x8", "its numbers are not single bytes"),
        ("-A x -b", "its numbers are not single bytes"),
        ("-A x -d", "its numbers are not single bytes"),
    ],
)
def test_other_numbers_and_offsets_are_refused(tmp_path, options, words, start, size):
    """What ``od`` and ``hexdump`` print by default has the same look, but other offsets, or bytes in another order."""
    data = bytes(range(start, start + size))
    (tmp_path / "f").write_bytes(data)
    printed = subprocess.run(["od", "-v", *options.split(), tmp_path / "f"], capture_output=True, check=True).stdout
    if not words or (words == "its offset is" and size < 8):  # there all bases write the offsets alike
        assert read_dump(printed) == data
        return
    with pytest.raises(DumpError) as raised:
        read_dump(printed)
    assert words in str(raised.value) or "the next offset says" in str(raised.value)
    assert "; dump with xxd, hexdump -C or od -A x -t x1z" in str(raised.value)


@pytest.mark.parametrize("size", [5, 6, 16, 40])
def test_numbers_that_differ_from_the_text_beside_them_are_refused(size):
    """``xxd -e`` prints the bytes of a group in reverse, ``xxd -b`` prints bits."""
    data = bytes(range(70, 70 + size))
    swapped = b"".join(data[at : at + 4][::-1] for at in range(0, size, 4))
    plain, reverse = xxd(data, group=4).splitlines(), xxd(swapped, group=4).splitlines()
    little = b"\n".join(one[:-16] + two[-16:] for one, two in zip(reverse, plain, strict=True))
    rows = [data[at : at + 6] for at in range(0, size, 6)]
    bits = [f"{at * 6:08x}: {' '.join(f'{byte:08b}' for byte in row)}  {row.decode()}" for at, row in enumerate(rows)]
    for dump in (little, "\n".join(bits).encode()):
        with pytest.raises(DumpError, match="line 1 of the hex dump: the text beside the digits is of other bytes"):
            read_dump(dump)


def test_what_hexdump_prints_by_default_is_refused():
    printed = b"0000000 0000 5d00 0027 0000 0000 0400 5365 00f1\n0000010 0300 0201 0403\n0000016\n"
    with pytest.raises(DumpError, match="its numbers are not single bytes"):
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
        (
            b"00000000  00 00  |..|\n*\n00000020\n",
            "line 2 of the hex dump: repeated lines are left out, -v prints them",
        ),
        (b"00000000: 0000 00\n00000010: 00\n", "line 1 of the hex dump: 3 bytes, the next offset says 16"),
        (b"00000000: 0000\n00000002: 00\nthe end\n", "line 3 of the hex dump: it begins with no offset"),
        (b"00000000: 0000\n00000002: 00\n00000001: 00\n", "the next offset says -1"),
    ],
)
def test_a_dump_with_a_hole_is_refused(dump, words):
    with pytest.raises(DumpError) as raised:
        read_dump(dump)
    assert words in str(raised.value)
