"""Commands whose input breaks off or whose output goes nowhere: a message and a code, never a traceback."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dataproxy import Producer
from dataproxy.hub import Hub
from tests.support.reference.frames import text_frame

WAIT_S = 60
COMMAND = f"{sys.executable} -m dataproxy"
NOBODY = "-t tcp://127.0.0.1:9 -g g -s s --delivery-timeout 1s"


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave stderr its buffer, which a gate may have switched off: what is left in it fails once more at exit."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)


def shell(text: str, data: bytes = b"") -> tuple[int, bytes, str]:
    """Run a line of bash; return the status of its last command, its stdout and its stderr."""
    done = subprocess.run(["bash", "-c", text], input=data, capture_output=True, timeout=WAIT_S, check=False)
    return done.returncode, done.stdout, done.stderr.decode()


@pytest.mark.parametrize(
    "arguments", ["version", "--version", "--help", "config show", "explain --list", "explain 114"]
)
@pytest.mark.parametrize("sink", [">/dev/full", ">&-", "2>&-", "2>/dev/full", "<&-", "<&- >&- 2>&-"])
def test_output_that_goes_nowhere(arguments: str, sink: str) -> None:
    status, _, told = shell(f"{COMMAND} {arguments} {sink}")
    assert status == (1 if sink == ">/dev/full" else 0)
    assert told == ("dataproxy: the output: No space left on device\n" if status else "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-16", "utf-8"])
def test_characters_that_the_output_cannot_have(encoding: str) -> None:
    frame = text_frame(4, "é中😀".encode(), "groupId=é&streamId=中😀".encode()).hex()
    escaped = encoding in ("ascii", "latin-1")
    call = f"PYTHONIOENCODING={encoding} {COMMAND} frames {frame}"
    status, out, told = shell(call)
    assert (status, told) == (0, "")
    assert ("streamId = " + ("\\u4e2d\\ud83d\\ude00" if escaped else "中😀")) in out.decode(encoding)
    status, out, told = shell(f"{call} --json")
    assert (status, told) == (0, "")
    assert json.loads(out.decode(encoding))["items"][0]["body"] == "é中😀"


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ("frames - <&-", 2, "stdin is closed; give a file, or hex digits"),
        ("frames - >/dev/null 0>/dev/null", 2, "stdin cannot be read: Bad file descriptor"),
    ],
)
def test_frames_of_an_input_that_cannot_be_read(arguments: str, status: int, said: str) -> None:
    assert shell(f"{COMMAND} {arguments}") == (status, b"", f"dataproxy: {said}\n")


@pytest.mark.parametrize("arguments", ["frames -", "frames {file}", "frames /dev/zero"])
def test_frames_of_an_endless_input(arguments: str, tmp_path: Path) -> None:
    file = tmp_path / "large"
    with file.open("wb") as stream:
        stream.truncate(1 << 42)
    status, out, told = shell(f"ulimit -v 4000000; {COMMAND} {arguments.format(file=file)} <{file}")
    wanted = "dataproxy: the input has more than 1024 MiB; cut it into pieces that begin with a frame\n"
    assert (status, out, told) == (1, b"", wanted)


def test_frames_of_a_pipe_that_does_not_block() -> None:
    """Programs that start a command may leave such a pipe: what comes later is not lost."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    command = [sys.executable, "-m", "dataproxy", "frames", "-"]
    with subprocess.Popen(command, stdin=reader, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        os.write(writer, bytes.fromhex("00000001"))
        assert process.stdout is not None
        until = time.monotonic() + WAIT_S
        while select.select([reader], [], [], 0.01)[0]:  # it takes the first half before the second comes
            assert process.poll() is None
            assert time.monotonic() < until
        os.write(writer, b"\1")
        os.close(writer)
        out, told = process.communicate(timeout=WAIT_S)
    os.close(reader)
    assert (process.returncode, told) == (0, b"")
    assert out.startswith(b"frame 1 at byte 0: 5 bytes, type 1, heartbeat")


def test_names_that_the_output_cannot_have() -> None:
    with Hub() as hub:
        with Producer(hub.target, group_id="gé", message_type=5) as producer:
            producer.send("s中", b"x")
        status, out, told = shell(f"PYTHONIOENCODING=ascii COLUMNS=200 {COMMAND} stats --hub {hub.manager_url}")
    assert (status, told) == (0, "")
    assert b"g\\u00e9" in out
    assert b"s\\u4e2d" in out


@pytest.mark.parametrize("arguments", ["explain --list", "config show", "stats --json --hub {hub.manager_url}"])
def test_a_reader_that_has_had_enough(arguments: str) -> None:
    with Hub() as hub:
        status, out, told = shell(f"set -o pipefail; {COMMAND} {arguments.format(hub=hub)} | head -c 1")
    assert (status, len(out), told) == (0, 1, "")


@pytest.mark.parametrize(
    "arguments", ["events --follow --hub {hub.manager_url}", "tail g s --follow --hub {hub.manager_url}"]
)
def test_a_reader_that_has_had_enough_ends_who_waits_for_more(arguments: str) -> None:
    with Hub() as hub, Producer(hub.target, group_id="g") as producer:
        producer.send("s", b"one")
        producer.flush()
        status, out, told = shell(f"set -o pipefail; {COMMAND} {arguments.format(hub=hub)} | head -n 1")
    assert (status, out.count(b"\n"), told) == (0, 1, "")


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (f"send {NOBODY} <&-", 2, "stdin is closed"),
        (f"send {NOBODY} -f /", 2, "--file '/' cannot be read: Is a directory"),
        (f"send {NOBODY} -a 'a=b&c'", 2, "its value holds '&'"),
        (f"explain {'9' * 5000}", 2, "is not a code"),
        ("explain ²", 2, "is not a code"),
        ("hub --memory -o store=x", 2, "both given"),
        ("hub --store y -o store=x", 2, "both given"),
        ("hub --memory --port 0 -o port=1", 2, "--port and -o port were both given"),
        ("hub --memory --manager-port 0 -o manager_port=0", 2, "--manager-port and -o manager_port were both given"),
        ("hub --memory --host ::1 -o host=::1", 2, "both given"),
        ("hub --memory --insecure -o insecure=false", 2, "both given"),
        ("hub --memory --port 65534 -o nodes=3", 2, "need ports up to 65536"),
        ("hub --memory 2>/dev/full --port 99999", 2, ""),
    ],
)
def test_what_cannot_be_done_is_said(arguments: str, status: int, said: str) -> None:
    found, _, told = shell(f"{COMMAND} {arguments}")
    assert found == status, told
    assert said in told
    assert "Traceback" not in told


def test_a_token_with_a_line_feed_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with Hub(token="a-token-of-sixteen-letters") as hub:
        monkeypatch.setenv("DATAPROXY_HUB_TOKEN", f"{hub.token}\n")
        assert shell(f"{COMMAND} stats --json --hub {hub.manager_url}")[0] == 0


def hears(process: int, number: int) -> bool:
    """Tell whether a process has a handler for a signal."""
    caught = re.search(r"^SigCgt:\s*(\w+)", Path(f"/proc/{process}/status").read_text(), re.MULTILINE)
    return caught is not None and bool(int(caught[1], 16) >> (number - 1) & 1)


@pytest.mark.parametrize("sink", [">&- 2>&-", "2>/dev/full", "<&- >&- 2>&-"])
def test_a_hub_needs_no_standard_streams(sink: str, tmp_path: Path) -> None:
    """It runs, and no socket of its gets the number that its messages go to."""
    file = tmp_path / "token"
    hub = f"{COMMAND} hub --memory --port 0 --manager-port 0 -o token_file={file}"
    process = subprocess.Popen(["bash", "-c", f"exec {hub} {sink}"], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        try:
            while not (file.exists() and hears(process.pid, signal.SIGTERM)):
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT_S) == 0
        finally:
            process.kill()
        assert process.communicate() == (b"", b"")


LONG = b"x" * 600_000


@pytest.mark.parametrize(
    ("data", "stored", "said"),
    [
        (b"a\n\nb\n" + LONG + b"\nc\n\n", [b"a", b"b"], "line 4 of {file!r} cannot be sent: a body of 600000 bytes"),
        (LONG + b"\nc\n", [], "line 1 of {file!r} cannot be sent"),
        (b"a\n" * 700_000 + LONG + b"\n", [b"a"] * 700_000, "line 700,001 of {file!r} cannot be sent"),
        (b"a\n" + 3 * LONG, [b"a"], "line 2 has more than"),
    ],
    ids=["middle", "first", "chunks", "endless"],
)
def test_a_line_that_is_too_long_stops_behind_those_before_it(
    data: bytes, stored: list[bytes], said: str, tmp_path: Path
) -> None:
    file = tmp_path / "lines"
    file.write_bytes(data)
    said = said.format(file=str(file))
    with Hub() as hub:
        status, _, told = shell(f"{COMMAND} send -t {hub.target} -g g -s s --json -f {file}")
        assert status == 1, told
        assert said in told
        assert [record.body for record in hub.records("g", "s")] == stored


def test_a_file_that_cannot_be_read_to_its_end(tmp_path: Path) -> None:
    """What was read is delivered, and the file named.  A process's own memory is such a file."""
    good = tmp_path / "good"
    good.write_bytes(b"a\nb\n")
    with Hub() as hub:
        status, _, told = shell(f"{COMMAND} send -t {hub.target} -g g -s s -f {good} -f /proc/self/mem")
        assert status == 1, told
        assert "line 1 of '/proc/self/mem' could not be read: Input/output error" in told
        assert [record.body for record in hub.records("g", "s")] == [b"a", b"b"]


@pytest.mark.parametrize("command", ["events --follow", "tail g s --follow"])
def test_a_command_without_end_needs_an_output(command: str) -> None:
    with Hub() as hub:
        status, _, told = shell(f"exec {COMMAND} {command} --hub {hub.manager_url} >&-")
    assert status == 2
    assert told.startswith("dataproxy: stdout is closed: nobody would see the ")
    assert "; write them to a file or a pipe" in told


def test_who_follows_a_hub_that_has_gone_waits_for_it_until_ctrl_c() -> None:
    with Hub() as hub:
        process = subprocess.Popen(
            [*COMMAND.split(), "events", "--follow", "--hub", hub.manager_url],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        hub._overview.events.add("reset", group="g")
        assert process.stdout is not None and process.stderr is not None
        assert "reset: group=g" in process.stdout.readline()
    with process:
        assert "is asked again until it answers" in process.stderr.readline()
        time.sleep(1)  # for more tries, which say nothing
        process.send_signal(signal.SIGINT)
        assert (*process.communicate(timeout=WAIT_S), process.returncode) == ("", "", 130)
