"""``dataproxy send``, ``tail`` and ``stats`` as processes against a hub: Ctrl-C, a killed hub, refusals."""

import json
import os
import select
import signal
import subprocess
import sys
from urllib.request import Request, urlopen

import pytest

from dataproxy.hub import Hub
from dataproxy.hub.reading.store import open_store

COMMAND = [sys.executable, "-m", "dataproxy"]
WAIT_S = 60


@pytest.fixture
def hub():
    with Hub() as running:
        yield running


def start(*arguments, **options):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DATAPROXY_", "PYTHONUNBUFFERED"))}
    return subprocess.Popen([*COMMAND, *arguments], **{**pipes, "env": env, **options})


def run(*arguments, data=b""):
    process = start(*arguments)
    out, err = process.communicate(data, timeout=WAIT_S)
    return process.returncode, out, err.decode()


def send(hub, *arguments, data=b""):
    return run("send", "-t", hub.target, "-g", "g", "-s", "s", *arguments, data=data)


def bodies(hub):
    return [record.body for record in hub.records("g", "s")]


def wait_for_records(hub, count):
    """Block until the hub holds so many records."""
    for found, _ in enumerate(hub.records("g", "s", follow=True), 1):
        if found == count:
            return


def test_lines_arrive_as_they_are(hub):
    data = b"a\n\xff\x00b\r\n\n caf\xc3\xa9\nlast"
    code, out, err = send(hub, "--json", data=data)
    accounting = json.loads(out)
    assert code == 0
    assert not err
    assert bodies(hub) == [b"a", b"\xff\x00b\r", b" caf\xc3\xa9", b"last"]
    assert (accounting["lines"], accounting["empty"], accounting["accepted"], accounting["delivered"]) == (5, 1, 4, 4)
    assert accounting["ok"]
    assert accounting["problem"] is None


def test_summary_goes_to_stderr(hub):
    code, out, err = send(hub, data=b"a\nb\n")
    assert code == 0
    assert not out
    assert "counts" in err
    assert "delivered" in err


def test_files_attributes_and_limits(hub, tmp_path):
    first, second = tmp_path / "1", tmp_path / "2"
    first.write_bytes(b"a\0b\0")
    second.write_bytes(b"c\0d")
    code, out, _ = send(hub, "-f", str(first), "-f", str(second), "-0", "-a", "k=v", "--max-lines", "3", "--json")
    assert code == 0
    assert json.loads(out)["lines"] == 3
    assert bodies(hub) == [b"a", b"b", b"c"]
    assert {record.attrs["k"] for record in hub.records("g", "s")} == {"v"}


def test_by_the_manager(hub):
    code, out, _ = run("send", "-t", hub.manager_url, "-g", "g", "-s", "s", "--json", data=b"x\n")
    assert code == 0
    assert bodies(hub) == [b"x"]
    hub.manager.denied = frozenset({"g"})
    code, out, err = run("send", "-t", hub.manager_url, "-g", "g", "-s", "s", data=b"x\n")
    assert code == 3
    assert not out
    assert "refused group 'g'" in err


def test_tail_and_stats(hub):
    send(hub, data=b"a\n\xff\n")
    code, out, _ = run("tail", "g", "s", "--hub", hub.manager_url)
    assert (code, out) == (0, b"a\n\xff\n")
    code, out, _ = run("tail", "g", "s", "--hub", hub.manager_url, "-0", "-n", "1")
    assert (code, out) == (0, b"\xff\0")
    code, out, _ = run("tail", "g", "s", "--hub", hub.manager_url, "--count")
    assert (code, out) == (0, b"2\n")
    code, out, _ = run("tail", "g", "s", "--hub", hub.manager_url, "--json")
    first, second = map(json.loads, out.splitlines())
    assert (first["body"], first["offset"], first["index"], first["group_id"]) == ("a", 0, 0, "g")
    assert second["body_base64"] == "/w=="
    code, out, _ = run("stats", "--hub", hub.manager_url, "--json")
    assert code == 0
    assert json.loads(out)["streams"][0]["records"] == 2
    code, out, _ = run("stats", "--hub", hub.manager_url)
    assert code == 0
    assert b"records" in out


def test_tail_of_a_store(tmp_path):
    with Hub(tmp_path) as hub:
        send(hub, data=b"a\nb\n")
    code, out, err = run("tail", "g", "s", "--store", str(tmp_path))
    assert (code, out, err) == (0, b"a\nb\n", "")
    code, out, err = run("tail", "g", "s", "--store", str(tmp_path / "none"))
    assert code == 1
    assert err.startswith("dataproxy: ")


@pytest.mark.parametrize("option", ["--hub", "--store"])
def test_tail_follows_until_it_is_interrupted(tmp_path, option):
    with Hub(tmp_path) as hub:
        where = hub.manager_url if option == "--hub" else str(tmp_path)
        process = start("tail", "g", "s", option, where, "-f")
        for line in (b"one\n", b"two\n"):
            send(hub, data=line)
            assert process.stdout.readline() == line
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=WAIT_S)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_tail_into_a_closed_pipe(hub):
    send(hub, data=b"x" * 1000 + b"\n" + b"line\n" * 100_000)
    process = start("tail", "g", "s", "--hub", hub.manager_url)
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(WAIT_S) == 0
    assert process.stderr.read() == b""
    process.stdin.close()
    process.stderr.close()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupt_delivers_what_was_taken(hub, number, code):
    process = start("send", "-t", hub.target, "-g", "g", "-s", "s", "--json")
    process.stdin.write(b"line\n" * 1000)
    process.stdin.flush()
    wait_for_records(hub, 1000)
    process.send_signal(number)
    out, err = process.communicate(timeout=WAIT_S)
    accounting = json.loads(out)
    assert process.returncode == code
    assert not err
    assert (accounting["lines"], accounting["delivered"], accounting["interrupted"]) == (1000, 1000, True)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_second_interrupt_gives_up(hub, number, code):
    hub.set_service("not_ready")
    process = start("send", "-t", hub.target, "-g", "g", "-s", "s", "--json", "--delivery-timeout", "10m")
    process.stdin.write(b"line\n" * 10)
    process.stdin.close()
    process.stdin = None
    # The first refusal is logged; from then on only the wait for results is left.
    assert select.select([process.stderr], [], [], WAIT_S)[0]
    process.send_signal(number)
    interrupts = 1
    while not select.select([process.stdout], [], [], 3)[0]:
        assert interrupts < 2 * WAIT_S
        interrupts += 1
        process.send_signal(number)
    out, _ = process.communicate(timeout=WAIT_S)
    accounting = json.loads(out)
    assert process.returncode == code
    assert interrupts == 2
    assert (accounting["accepted"], accounting["delivered"], accounting["failed"], accounting["ok"]) == (
        10,
        0,
        10,
        False,
    )


def test_refused_lines(hub):
    hub.set_service("stopped")
    code, out, _ = send(hub, "--json", "--delivery-timeout", "300ms", data=b"a\n")
    accounting = json.loads(out)
    assert code == 1
    assert (accounting["delivered"], accounting["failed"] + accounting["expired"], accounting["ok"]) == (0, 1, False)


def test_nobody_there():
    with Hub() as gone:
        target, url = gone.target, gone.manager_url
    code, out, _ = run("send", "-t", target, "-g", "g", "-s", "s", "--json", "--delivery-timeout", "300ms", data=b"a\n")
    assert code == 3
    assert json.loads(out)["expired"] == 1
    for arguments in (
        ["send", "-t", url, "-g", "g", "-s", "s"],
        ["tail", "g", "s", "--hub", url],
        ["stats", "--hub", url],
    ):
        code, out, err = run(*arguments)
        assert (code, out) == (3, b"")
        assert "Connection refused" in err


def test_a_line_that_is_too_long(hub):
    code, out, err = send(hub, "--json", data=b"a\nb\n" + b"x" * 600_000 + b"\nc\n")
    accounting = json.loads(out)
    assert code == 1
    assert bodies(hub) == [b"a", b"b"]
    assert accounting["delivered"] == 2
    assert not accounting["ok"]
    assert "600" in accounting["problem"] or "line 3" in accounting["problem"]
    assert err == f"dataproxy: {accounting['problem']}\n"


def test_hub_killed_in_the_middle(tmp_path):
    """The hub dies by SIGKILL and comes back: the sender finishes by itself, nothing is missing."""
    store, lines = tmp_path / "store", tmp_path / "lines"
    count = int(os.environ.get("DATAPROXY_CRASH_LINES", "200000"))
    lines.write_bytes(b"".join(b"%0100d\n" % i for i in range(count)))
    first = start_hub(store, 0, "-o", "fault_api=on")
    address = json.loads(first.stdout.readline())
    port = int(address["target"].rpartition(":")[2])
    # A bounded queue of small packs, and a hub that stands still at the 300th: most lines are still to be sent then.
    request = Request(
        f"{address['manager_url']}/hub/faults",
        data=b'{"kind": "freeze", "nth": 300}',
        headers={"Authorization": f"Bearer {address['token']}", "Content-Type": "application/json"},
    )
    assert urlopen(request, timeout=WAIT_S).status == 201
    sizes = ("--option", "batch_bytes=4KiB", "--option", "buffer_bytes=1MiB")
    sender = start("send", "-t", address["target"], "-g", "g", "-s", "s", "-f", str(lines), "--json", *sizes)
    with open_store(store) as reader:
        for found, _ in enumerate(reader.records("g", "s", follow=True), 1):
            if found == 1000:
                break
    first.kill()
    first.communicate()
    with open_store(store) as reader:
        before = reader.counts()["g", "s"].records
    second = start_hub(store, port)
    json.loads(second.stdout.readline())
    out, _ = sender.communicate(timeout=WAIT_S)
    accounting = json.loads(out)
    second.send_signal(signal.SIGINT)
    second.communicate(timeout=WAIT_S)
    assert 1000 <= before < count
    assert sender.returncode == 0
    assert (accounting["accepted"], accounting["delivered"]) == (count, count)
    with open_store(store) as reader:
        stored = [record.body for record in reader.records("g", "s")]
    assert len(set(stored)) == count
    assert set(stored) == set(lines.read_bytes().splitlines())
    assert accounting["duplicates_possible"] or len(stored) == count


def start_hub(store, port, *options):
    return start("hub", "--store", str(store), "--port", str(port), "--manager-port", "0", "--print-urls", *options)
