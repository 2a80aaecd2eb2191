"""``dataproxy hub`` as a process: where it listens, what it prints, how it ends."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dataproxy.hub import Hub, open_store
from tests.loopback.hub.peer import binary_frame, read_frame

ROOT = Path(__file__).parents[3]
MAIN = "from dataproxy.cli.main import main; main()"


def start(*arguments: str) -> subprocess.Popen:
    """Start ``dataproxy hub`` with these arguments."""
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, "hub", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_a_signal_and_keeps_the_data(tmp_path, number):
    process = start("--store", str(tmp_path / "s"), "--port", "0", "--manager-port", "0", "--print-urls")
    urls = json.loads(process.stdout.readline())
    assert urls["store"] == str(tmp_path / "s")
    port = int(urls["target"].rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=30) as one:
        one.sendall(binary_frame(1, [b"kept"]))
        read_frame(one)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert out == ""
    assert err.splitlines() == [
        f"hub: producers {urls['target']}, Manager {urls['manager_url']}, store {tmp_path / 's'}",
        f"hub: token {urls['token']}, in {urls['token_file']}",
    ]
    assert not Path(urls["token_file"]).exists()
    with open_store(tmp_path / "s") as store:
        assert [record.body for record in store.records("g")] == [b"kept"]


def test_a_token_that_was_configured_is_printed_and_left_nowhere(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("DATAPROXY_HUB_TOKEN", "chosen-by-somebody")
    process = start("--memory", "--port", "0", "--manager-port", "0", "--print-urls")
    urls = process.stdout.readline()
    assert json.loads(urls)["token"] is None
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "chosen-by-somebody" not in urls + out + err
    assert "hub: token as configured" in err.splitlines()
    assert list(tmp_path.rglob("*.token")) == []


SIGNALS = """
import os, signal, threading
from dataproxy.cli.hub.command import _Ending
signal.signal(signal.SIGUSR1, lambda *_: None)
for early in (True, False):
    with _Ending() as ending:
        os.kill(os.getpid(), signal.SIGUSR1)
        if early:
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()
        ending.wait()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, "the next one ends the process"
assert signal.set_wakeup_fd(-1) == -1
print("ended twice")
"""


def test_a_signal_before_the_wait_counts_and_others_do_not():
    done = subprocess.run([sys.executable, "-c", SIGNALS], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert (done.stdout, done.stderr) == ("ended twice\n", "")


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ((), 2, "--memory"),
        (("--memory", "--store", "x"), 2, "choose one"),
        (("--memory", "-o", "prot=1"), 2, "did you mean 'port'"),
        (("--memory", "--port", "70000"), 2, "65535"),
        (
            ("--memory", "--port", "0", "--manager-port", "0", "--insecure", "--host", "203.0.113.7"),
            1,
            "no such address",
        ),
    ],
)
def test_mistakes_end_it_with_a_code_and_one_line(arguments, code, text):
    process = start(*arguments)
    out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert out == ""
    assert text in err
    assert "Traceback" not in err


def test_a_port_in_use_is_named():
    with Hub() as hub:
        process = start("--memory", "--port", str(hub.port), "--manager-port", "0")
        _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert f"cannot listen on 127.0.0.1:{hub.port}" in err
