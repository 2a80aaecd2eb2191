"""``dataproxy consume`` as a process: signals, pipes, and what a missing package says."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dataproxy.hub import Hub
from dataproxy.rocketmq import Producer
from tests.support.tubeserver import TubeServer
from tests.support.waiting import eventually

COMMAND = [sys.executable, "-m", "dataproxy"]
ROOT = Path(__file__).parents[3]
WAIT_S = 60
INDEX = 28
SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


@pytest.fixture
def server() -> Iterator[TubeServer]:
    with TubeServer({"one": 1}, balance_s=0) as running:
        yield running


def start(server: TubeServer, *arguments: str, group: str = "g", **options: Any) -> subprocess.Popen[bytes]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DATAPROXY_", "PYTHONUNBUFFERED"))}
    called = [*COMMAND, "consume", "one", "-t", server.target, "-g", group, *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(called, **{**pipes, "env": env, **options})


def ended(process: subprocess.Popen[bytes]) -> tuple[int, bytes, str]:
    try:
        out, err = process.communicate(timeout=WAIT_S)
    finally:
        process.kill()
    return process.returncode, out, err.decode()


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_gives_the_partitions_back(server: TubeServer, number: int, code: int) -> None:
    process = start(server, "-v")
    assert process.stdout is not None
    for i in range(3):
        server.put("one", b"%d" % i)
        assert process.stdout.readline() == b"%d\n" % i  # it is flushed, and confirmed behind that
    assert eventually(lambda: server.confirmed("g", "one", 0) == 3 * INDEX)
    process.send_signal(number)
    status, out, told = ended(process)
    assert (status, out) == (code, b"")
    assert re.search(r"messages .* 3 ", told)
    assert server.members("g") == []
    assert server.owner("g", "one", 0) is None


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_while_nobody_reads_leaves_the_pack_unconfirmed(server: TubeServer, number: int, code: int) -> None:
    server.put("one", bytes(400_000))  # more than a pipe holds
    process = start(server, "--format", "json")
    assert process.stdout is not None
    assert process.stdout.read(100)  # the rest of the pack is blocked
    process.send_signal(number)
    assert process.wait(WAIT_S) == code
    _, _, told = ended(process)
    assert told == ""
    assert server.confirmed("g", "one", 0) == 0
    assert server.members("g") == []


def test_a_second_signal_waits_for_no_server(server: TubeServer) -> None:
    let_go = threading.Event()
    process = start(server)
    try:
        server.put("one", b"a")
        assert process.stdout is not None
        assert process.stdout.readline() == b"a\n"
        server.on("CloseRequestC2M", ("hold", let_go), times=None)
        process.send_signal(signal.SIGINT)
        assert eventually(lambda: server.held)
        process.send_signal(signal.SIGINT)
        assert ended(process)[0] == 130
    finally:
        let_go.set()


def test_a_signal_before_a_master_answers(server: TubeServer) -> None:
    server.stop_master()
    process = start(server, "--format", "count")
    try:
        assert process.stderr is not None
        assert b"Connection refused; it is tried for 27 s more" in process.stderr.readline()
    finally:
        process.send_signal(signal.SIGINT)
    assert ended(process) == (130, b"", "")


def test_a_count_is_printed_when_it_is_interrupted(server: TubeServer) -> None:
    for i in range(3):
        server.put("one", b"%d" % i)
    process = start(server, "--format", "count")
    assert eventually(lambda: server.confirmed("g", "one", 0) == 3 * INDEX)
    process.send_signal(signal.SIGINT)
    assert ended(process) == (130, b"3\n", "")


def test_a_reader_that_goes_gets_its_pack_again(server: TubeServer) -> None:
    server.settings.pack_bytes = 1  # each message is a pack
    for i in range(5):
        server.put("one", b"%d" % i * 100_000)
    process = start(server)
    assert process.stdout is not None
    assert process.stdout.readline() == b"0" * 100_000 + b"\n"
    assert eventually(lambda: server.confirmed("g", "one", 0) == INDEX)
    process.stdout.close()
    assert process.wait(WAIT_S) == 0
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    written = server.confirmed("g", "one", 0)
    assert written == INDEX  # the second one did not fit into the pipe
    status, out, told = ended(start(server, "--max", "4"))
    assert (status, told) == (0, "")
    assert [line[:1] for line in out.splitlines()] == [b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("form", ["text", "json", "count"])
def test_head_ends_it_without_another_message(server: TubeServer, form: str) -> None:
    for i in range(10):
        server.put("one", b"%d" % i)
    reader = "head -n 3" if form == "text" else "head -n 0"
    line = f"set -o pipefail; {' '.join(COMMAND)} consume one -g g -t {server.target} --format {form} | {reader}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, timeout=WAIT_S, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"0\n1\n2\n" if form == "text" else b"", b"")
    assert server.members("g") == []


def test_a_full_disk(server: TubeServer) -> None:
    server.put("one", b"a")
    with Path("/dev/full").open("wb") as full:
        process = start(server, stdout=full)
        code, _, told = ended(process)
    assert (code, told) == (1, "dataproxy: the output: No space left on device\n")
    assert server.confirmed("g", "one", 0) == 0
    assert server.members("g") == []


def test_two_members_share_a_topic() -> None:
    with TubeServer({"one": 4}, balance_s=0.1) as server:
        options = ("--format", "json", "-o", "heartbeat_interval=1s")
        processes = [start(server, *options), start(server, *options)]
        assert eventually(lambda: len({server.owner("g", "one", i) for i in range(4)} - {None}) == 2)
        for i in range(40):
            server.put("one", b"%d" % i, partition=i % 4)
        assert eventually(lambda: all((server.confirmed("g", "one", i) or 0) >= (37 + i) * INDEX for i in range(4)))
        found = []
        for process in processes:
            process.send_signal(signal.SIGINT)
            code, out, _ = ended(process)
            assert code == 130
            found.append([json.loads(line)["body"] for line in out.splitlines()])
    assert all(found)
    assert {*found[0], *found[1]} == {str(i) for i in range(40)}


@pytest.mark.parametrize(("form", "code"), [("text", 2), ("json", 2), ("count", 0)])
def test_a_closed_stdout_confirms_nothing_that_nobody_sees(server: TubeServer, form: str, code: int) -> None:
    server.put("one", b"a")
    arguments = ["one", "-g", "g", "-t", server.target, "--max", "1", "--format", form]
    script = 'exec "$@" >&-'
    done = subprocess.run(
        ["/bin/sh", "-c", script, "sh", *COMMAND, "consume", *arguments], stderr=subprocess.PIPE, timeout=WAIT_S,
        check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert (b"stdout is closed" in done.stderr) == (code == 2)
    assert server.confirmed("g", "one", 0) == (None if code else INDEX)


@pytest.mark.parametrize("command", ["consume one -g g", "topics one"])
def test_without_protobuf_it_says_what_to_install(command: str, server: TubeServer) -> None:
    code = "import sys; sys.modules['google'] = None; from dataproxy.cli.main import main; main()"
    arguments = [*command.split(), "-t", server.target]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, timeout=WAIT_S, check=False, cwd=ROOT
    )
    wanted = b"dataproxy: the package 'protobuf' is missing; pip install 'dataproxy-sdk[tubemq]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", wanted)


def test_help_loads_no_consumer() -> None:
    code = """
    import sys
    from typer.testing import CliRunner
    from dataproxy.cli.app import app
    for arguments in (["--help"], ["consume", "--help"], ["topics", "--help"]):
        assert CliRunner().invoke(app, arguments).exit_code == 0
    assert not {"google.protobuf", "dataproxy.consumer"} & sys.modules.keys()
    """
    done = subprocess.run(
        [sys.executable, "-c", re.sub("^    ", "", code, flags=re.MULTILINE)], capture_output=True, timeout=WAIT_S,
        check=False, cwd=ROOT,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")


def test_messages_that_a_hub_pushes_are_printed_and_confirmed() -> None:
    code = "import sys; sys.modules['google'] = None; from dataproxy.cli.main import main; main()"
    with Hub(rocketmq_port=0) as hub:
        with Producer(hub.rocketmq_target, "p") as producer:
            for body in (b"a", b"b", b"c"):
                producer.send("one", body, queue=0, tag="t").result(WAIT_S)
        arguments = ["consume", "one", "-g", "g", "-t", hub.rocketmq_target, "--filter", "t", "--max", "3"]
        for limits, wanted in ((["--format", "json"], 3), (["--timeout", "0.1s"], 0)):
            done = subprocess.run(
                [sys.executable, "-c", code, *arguments, *limits], capture_output=True, timeout=WAIT_S, check=False,
                cwd=ROOT,
            )  # fmt: skip
            assert (done.returncode, done.stderr) == (0, b"")
            found = [json.loads(line) for line in done.stdout.splitlines()]
            assert [one["body"] for one in found] == ["a", "b", "c"][:wanted]
            assert all(one["attributes"]["TAGS"] == "t" and one["partition"] == "dataproxy:one:0" for one in found)
