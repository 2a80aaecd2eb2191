"""Every command where something is wrong: a documented code, words that help, and never a traceback."""

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import NamedTuple

import pytest
import typer

from dataproxy import Consumer
from dataproxy.cli.app import app
from dataproxy.cli.commands import COMMANDS
from dataproxy.hub import Hub
from tests.support.tubeserver import TubeServer

WAIT_S = 60
COMMAND = [sys.executable, "-m", "dataproxy"]
PAGE = Path(__file__).parents[3] / "docs" / "cli.md"
NOBODY = "127.0.0.1:9"
FULL = "No space left on device"
GONE = "Broken pipe"
REFUSED = "Connection refused"


class Case(NamedTuple):
    """Say how a command is called in a circumstance, how it ends, and what it says on stderr.

    ``{hub}``, ``{tcp}``, ``{tubemq}``, ``{member}``, ``{store}``, ``{missing}``, ``{folder}``, ``{noise}`` and
    ``{frames}`` are filled in.
    """

    arguments: str
    code: int
    said: str = ""
    data: bytes = b""


SEND = "send -t {tcp} -g g -s s"
#: What each command prints is in this order: what `--help` lists, and the two options that print something.
CALLS = {
    "hub": Case("hub --memory --port 0 --manager-port 0 --print-urls", 0),
    "send": Case(f"{SEND} --json", 0, data=b"a\nb\n"),
    "doctor": Case("doctor {tcp} --group g", 0),
    "doctor of a Manager": Case("doctor {hub} -g g -s s --send --json", 0),
    "tail": Case("tail g s --hub {hub}", 0),
    "tail of a store": Case("tail g s --store {store}", 0),
    "consume": Case("consume one -g g -t {tubemq} --max 2", 0),  # nothing is confirmed: no output takes it
    "consume of json": Case("consume one -g g -t {tubemq} --max 2 --format json", 0),
    "topics": Case("topics one -t {tubemq}", 0),
    "tubemq topics": Case("tubemq topics --hub {hub}", 0),
    "tubemq partitions": Case("tubemq partitions g --hub {hub}", 0),
    "tubemq groups": Case("tubemq groups --hub {hub}", 0),
    "tubemq members": Case("tubemq members readers --hub {hub}", 0),
    "tubemq offsets": Case("tubemq offsets readers --hub {hub} --json", 0),
    "tubemq reset": Case("tubemq reset readers --to first --hub {hub}", 0),
    "tubemq rules": Case("tubemq rules --hub {hub}", 0),
    "tubemq rights": Case("tubemq rights --hub {hub}", 0),
    "tubemq move": Case("tubemq move readers g 0 {member} --hub {hub}", 0),
    "clients": Case("clients --hub {hub}", 0),
    "groups": Case("groups --hub {hub}", 0),
    "locks": Case("locks --hub {hub}", 0),
    "transactions": Case("transactions --hub {hub}", 0),
    "events": Case("events --hub {hub}", 0),
    "offsets reset": Case("offsets reset readers --to first --hub {hub} --dry-run", 0),
    "stats": Case("stats --hub {hub}", 0),
    "explain": Case("explain --list", 0),
    "frames": Case("frames {frames}", 0),
    "frames of stdin": Case("frames -", 0, data=bytes.fromhex("0000000101")),
    "config show": Case("config show", 0),
    "store verify": Case("store verify {store} --json", 0, said="no damage"),
    "perf run": Case("perf run {tcp} --rate 100 --duration 200ms --max-lag 60s -q", 0),
    "perf report": Case("perf report {result}", 0),
    "perf find-max": Case(
        "perf find-max {tcp} --max-p99 60s --max-lag 60s --from 100 --to 100 --duration 200ms --tries 1", 0
    ),
    "perf compare": Case("perf compare {result} {result}", 0),
    "version": Case("version", 0),
    "--version": Case("--version", 0),
    "--help": Case("--help", 0),
}
WRONG_FILES = {
    "hub": [
        Case("hub --memory --config {missing}", 2, "No such file or directory"),
        Case("hub --memory --config {folder}", 2, "Is a directory"),
        Case("hub --memory --config {noise}", 2, "noise"),
        Case("hub --store {noise}", 1, "noise"),
        Case("hub --memory --port 0 --manager-port 0 -o token_file={folder}", 1, "folder"),
    ],
    "send": [
        Case(f"{SEND} -f {{missing}}", 2, "missing.toml' cannot be read: No such file or directory"),
        Case(f"{SEND} -f {{folder}}", 2, "folder.toml' cannot be read: Is a directory"),
        Case(f"{SEND} -c {{missing}}", 2, "No such file or directory"),
        Case(f"{SEND} -c {{folder}}", 2, "Is a directory"),
        Case(f"{SEND} -c {{noise}}", 2, "noise"),
    ],
    "doctor": [
        Case("doctor {tcp} -c {missing}", 2, "No such file or directory"),
        Case("doctor {tcp} -c {folder}", 2, "Is a directory"),
        Case("doctor {tcp} -c {noise}", 2, "noise"),
    ],
    "tail of a store": [
        Case("tail g s --store {missing}", 1, "missing"),
        Case("tail g s --store {noise}", 1, "noise"),
        Case("tail g s --store {folder}", 1, "folder"),
    ],
    "consume": [
        Case("consume one -g g -t {tubemq} -c {missing}", 2, "No such file or directory"),
        Case("consume one -g g -t {tubemq} -c {folder}", 2, "Is a directory"),
        Case("consume one -g g -t {tubemq} -c {noise}", 2, "noise"),
    ],
    "topics": [
        Case("topics one -t {tubemq} -c {missing}", 2, "No such file or directory"),
        Case("topics one -t {tubemq} -c {folder}", 2, "Is a directory"),
        Case("topics one -t {tubemq} -c {noise}", 2, "noise"),
    ],
    "frames": [
        Case("frames {missing}", 2, "No such file or directory"),
        Case("frames {folder}", 2, "Is a directory"),
        Case("frames {noise}", 1, "1 of 1 frames wrong"),
        Case("frames --json {noise}", 1, "1 of 1 frames wrong"),
    ],
    "config show": [
        Case("config show -c {missing}", 2, "No such file or directory"),
        Case("config show -c {folder}", 2, "Is a directory"),
        Case("config show -c {noise}", 2, "noise"),
    ],
    "perf run": [
        Case("perf run {tcp} --lines {missing}", 2, "No such file or directory"),
        Case("perf run {tcp} --lines {folder}", 2, "Is a directory"),
        Case("perf run {tcp} --json {folder}", 1, "Is a directory"),
    ],
    "perf report": [
        Case("perf report {missing}", 2, "No such file or directory"),
        Case("perf report {noise}", 2, "noise"),
    ],
    "perf compare": [
        Case("perf compare {result} {missing}", 2, "No such file or directory"),
        Case("perf compare {result} {folder}", 2, "folder"),
    ],
    "store verify": [
        Case("store verify {missing}", 1, "missing"),
        Case("store verify {noise}", 1, "noise"),
        Case("store verify {folder}", 1, "folder"),
    ],
    "version": [
        Case("--log-config {missing} version", 2, "No such file or directory"),
        Case("--log-config {folder} version", 2, "Is a directory"),
        Case("--log-config {noise} version", 2, "noise"),
    ],
}
NO_SERVER = {
    "send": [
        Case(f"send -t tcp://{NOBODY} -g g -s s --delivery-timeout 300ms", 3, "Connection refused", b"a\n"),
        Case(f"send -t http://{NOBODY} -g g -s s", 3, f"{NOBODY}"),
    ],
    "doctor": [
        Case(f"doctor tcp://{NOBODY}", 3, REFUSED),
        Case(f"doctor http://{NOBODY} -g g --json", 3, REFUSED),
        Case("doctor tcp://no-such-host.invalid", 3, "no address"),
    ],
    "tail": [Case(f"tail g s --hub http://{NOBODY}", 3, REFUSED)],
    "consume": [Case(f"consume one -g g -t tubemq://{NOBODY} --timeout 300ms", 3, REFUSED)],
    "topics": [
        Case(f"topics one -t tubemq://{NOBODY}", 3, REFUSED),
        Case("topics one -t tubemq://no-such-host.invalid", 3, "no-such-host.invalid:8715"),
    ],
    "tubemq groups": [Case(f"tubemq groups --hub http://{NOBODY}", 3, REFUSED)],
    "tubemq reset": [Case(f"tubemq reset readers --to first --hub http://{NOBODY}", 3, REFUSED)],
    "clients": [Case(f"clients --hub http://{NOBODY}", 3, REFUSED)],
    "events": [Case(f"events --follow --hub http://{NOBODY}", 3, REFUSED)],
    "offsets reset": [Case(f"offsets reset readers --to first --hub http://{NOBODY}", 3, REFUSED)],
    "stats": [Case(f"stats --hub http://{NOBODY}", 3, REFUSED)],
    "perf run": [
        Case(f"perf run http://{NOBODY}", 3, REFUSED),
        Case(f"perf run tcp://{NOBODY}", 3, "no proxy could be reached"),
    ],
    "perf find-max": [Case(f"perf find-max http://{NOBODY} --max-p99 1s", 3, REFUSED)],
}


def cases():
    for place, (name, call) in enumerate(CALLS.items()):
        said = GONE if name == "send" else ""
        yield pytest.param(call._replace(said=said), "closed pipe", id=f"{name}-closed pipe")
        code, words = (0, f"the counts could not be written to stdout: {FULL}") if name == "send" else (1, FULL)
        yield pytest.param(call._replace(code=code, said=words), "full disk", id=f"{name}-full disk")
        number, code = ((signal.SIGINT, 130), (signal.SIGTERM, 143))[place % 2]  # all commands hear both in one place
        if not name.startswith("--"):
            said = "could not be written to stdout: the reader" if name == "send" else ""
            yield pytest.param(call._replace(code=code, said=said), number, id=f"{name}-{number.name}")
    for circumstance, table in (("wrong file", WRONG_FILES), ("no server", NO_SERVER)):
        for name, calls in table.items():
            for number, call in enumerate(calls):
                yield pytest.param(call, circumstance, id=f"{name}-{circumstance}-{number}")


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Return what stands for the names in arguments: a hub with a record, its store's copy, files that are wrong."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "folder.toml").mkdir()
    (folder / "noise.toml").write_bytes(bytes(range(256)))
    with Hub(folder / "store") as kept:
        subprocess.run([*COMMAND, *SEND.format(tcp=kept.target).split()], input=b"a\nb\n", check=True, stderr=-3)
    with (
        Hub(tubemq_port=0) as hub,
        TubeServer({"one": 1}, balance_s=0) as tubemq,
        Consumer(hub.tubemq_target, group="readers", topics="g") as reader,
    ):
        tubemq.put("one", b"a")
        tubemq.put("one", b"b")
        subprocess.run([*COMMAND, *SEND.format(tcp=hub.target).split()], input=b"a\nb\n", check=True, stderr=-3)
        assert reader.poll(timeout=WAIT_S) is not None
        names = {name: str(folder / f"{name}.toml") for name in ("missing", "folder", "noise")}
        with urllib.request.urlopen(f"{hub.manager_url}/hub/tubemq/members?group=readers", timeout=WAIT_S) as answer:
            (names["member"],) = (row["member"] for row in json.load(answer)["members"])
        names["token"] = hub._token
        names["frames"] = str(folder / "frames")
        (folder / "frames").write_bytes(bytes.fromhex("0000000101") * 3)
        names["result"] = str(folder / "result.json")
        measured = ["perf", "run", hub.target, "--rate", "100", "--duration", "200ms", "--max-lag", "60s", "-q"]
        subprocess.run([*COMMAND, *measured, "--json", names["result"]], check=True, stdout=-3)
        names |= {"store": str(folder / "store"), "hub": hub.manager_url, "tcp": hub.target, "tubemq": tubemq.target}
        yield names


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch, tmp_path):
    """Leave stdout its buffer, and what commands leave behind in a folder of their own."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def start(case, places, **options):
    arguments = [word.format(**places) for word in case.arguments.split()]
    token = {"DATAPROXY_HUB_TOKEN": places["token"]} if case.arguments.startswith(("tubemq", "offsets")) else {}
    return subprocess.Popen(
        [*COMMAND, *arguments], stdin=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **token}, **options
    )


def ended(process, data=b""):
    """Wait for the end; return the code and what was said."""
    try:
        _, told = process.communicate(data, timeout=WAIT_S)
    finally:
        process.kill()
    return process.returncode, told.decode()


def hears_sigterm(process):
    """Tell whether a process has a handler for SIGTERM: from then on signals end it in an orderly way."""
    caught = re.search(r"^SigCgt:\s*(\w+)", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE)
    return caught is not None and bool(int(caught[1], 16) >> (signal.SIGTERM - 1) & 1)


def wait_until_it_hears(process):
    end = time.monotonic() + WAIT_S
    while not hears_sigterm(process):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.001)


@contextlib.contextmanager
def full_pipe():
    """Give the writing end of a pipe that takes no byte: who writes there can end by a signal alone."""
    near, far = os.pipe()
    try:
        os.set_blocking(far, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(far, bytes(65536))
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(far, b"x")
        os.set_blocking(far, True)
        yield far
    finally:
        os.close(near)
        os.close(far)


@contextlib.contextmanager
def output(circumstance):
    """Give the stdout of a circumstance."""
    if circumstance == "full disk":
        with Path("/dev/full").open("wb") as full:
            yield full
    elif circumstance == "closed pipe":
        near, far = os.pipe()
        os.close(near)
        yield far
        os.close(far)
    elif isinstance(circumstance, signal.Signals):
        with full_pipe() as far:
            yield far
    else:
        yield subprocess.DEVNULL


@pytest.mark.parametrize(("case", "circumstance"), list(cases()))
def test_it_ends_with_its_code_and_with_words(case, circumstance, places):
    with output(circumstance) as stdout:
        process = start(case, places, stdout=stdout)
        if isinstance(circumstance, signal.Signals):
            wait_until_it_hears(process)
            process.send_signal(circumstance)
        code, told = ended(process, case.data)
    assert "Traceback" not in told
    serves = case.arguments.startswith("hub") and isinstance(circumstance, signal.Signals)
    assert code in ((case.code, 0) if serves else (case.code,)), told  # a hub that serves is meant to end so
    assert case.said in told
    if case.code in (1, 2, 3) and not case.data:
        assert re.search("^dataproxy: ", told, re.MULTILINE), told
    assert re.search(rf"^\| {code} \|", PAGE.read_text(), re.MULTILINE)


def test_every_command_is_here():
    known = {name.split(" of ")[0] for name in CALLS}
    commands = set()
    for name, command in typer.main.get_command(app).commands.items():
        commands |= {f"{name} {below}" for below in getattr(command, "commands", ())} or {name}
    assert commands == {name for name in known if not name.startswith("--")}


def test_a_command_loads_no_other():
    code = (
        "import sys; from dataproxy.cli import app; app.app(sys.argv[1:], standalone_mode=False); print(*sys.modules)"
    )
    known = {place.partition(":")[0] for place in COMMANDS.values()}
    for called, wanted in (("version", set()), ("explain --list", {"dataproxy.cli.explain"})):
        done = subprocess.run([sys.executable, "-c", code, *called.split()], capture_output=True, text=True, check=True)
        assert known & set(done.stdout.splitlines()[-1].split()) == wanted


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_send_shows_its_counts_however_early_it_is_ended(number, code, places):
    process = start(CALLS["send"], places, stdout=subprocess.PIPE)
    wait_until_it_hears(process)
    process.send_signal(number)
    out, told = process.communicate(timeout=WAIT_S)
    assert process.returncode == code
    assert not told
    counts = json.loads(out)
    assert (counts["lines"], counts["accepted"], counts["delivered"], counts["interrupted"]) == (0, 0, 0, True)


def test_damage_is_told_by_the_code_where_nobody_reads_of_it(tmp_path, places):
    body = random.Random(7).randbytes(5000).replace(b"\n", b"-")  # no compression changes it
    with Hub(tmp_path / "kept") as hub:
        subprocess.run([*COMMAND, *SEND.format(tcp=hub.target).split()], input=body, check=True, stderr=-3)
    data = tmp_path / "kept" / "data.mdb"
    whole = data.read_bytes()
    at = whole.index(body[:1000])
    data.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    for circumstance in ("closed pipe", "full disk", ""):
        with output(circumstance) as stdout:
            process = start(Case(f"store verify {tmp_path / 'kept'}", 1), places, stdout=stdout)
            assert ended(process)[0] == 1


@pytest.mark.parametrize("sink", [">&-", "2>&-", ">&- 2>&-", "2>/dev/full", ">/dev/full", ">/dev/full 2>/dev/full"])
@pytest.mark.parametrize("form", ["", "--json", "--progress"])
@pytest.mark.parametrize("port", ["tcp", "nobody"])
def test_the_code_of_send_says_what_was_delivered(sink, form, port, places):
    target = places["tcp"] if port == "tcp" else f"tcp://{NOBODY}"
    line = f"{' '.join(COMMAND)} send -t {target} -g g -s s --delivery-timeout 20s {form} {sink}"
    if port == "nobody":
        line = line.replace("20s", "300ms")
    done = subprocess.run(["bash", "-c", line], input=b"a\nb\n", capture_output=True, timeout=WAIT_S, check=False)
    assert done.returncode == (0 if port == "tcp" else 3)
    assert b"Traceback" not in done.stderr
    if form == "--json" and sink == ">/dev/full":
        assert f"the counts could not be written to stdout: {FULL}; 2 lines read, ".encode() in done.stderr
