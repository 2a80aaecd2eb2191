"""``dataproxy doctor`` as a process: on terminals, with signals, and where its output goes nowhere."""

import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dataproxy
from dataproxy.hub import Hub
from tests.process.cli.test_every_command import hears_sigterm

WAIT_S = 60
COMMAND = [sys.executable, "-m", "dataproxy", "doctor"]
PACKAGE = Path(dataproxy.__file__).parent
NOBODY = "tcp://127.0.0.1:9"


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch):
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "DATAPROXY_TARGET", "PYTHONUNBUFFERED"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def hanging():
    """Yield the target of a port that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield f"tcp://127.0.0.1:{listener.getsockname()[1]}"


class Terminal:
    """A command whose stdout and stderr are a terminal of this size."""

    def __init__(self, *arguments, columns=100, **environment):
        near, far = pty.openpty()
        self._near = near
        import fcntl
        import struct
        import termios

        fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        self.process = subprocess.Popen(
            [*COMMAND, *arguments], stdin=far, stdout=far, stderr=far,
            env={**os.environ, "TERM": "xterm-256color", **environment},
        )  # fmt: skip
        os.close(far)
        self._read = b""

    @property
    def text(self):
        return self._read.decode(errors="replace")

    def read_until(self, words):
        """Read until the output has these words, or until its end (words None)."""
        end = time.monotonic() + WAIT_S
        while words is None or words not in self.text:
            assert time.monotonic() < end
            if not select.select([self._near], [], [], WAIT_S)[0]:
                break
            try:
                part = os.read(self._near, 65536)
            except OSError:  # the other end is closed
                break
            self._read += part
        return self.text

    def ended(self):
        """Return the code and all of the output."""
        text = self.read_until(None)
        code = self.process.wait(WAIT_S)
        os.close(self._near)
        return code, text


def test_colours_of_a_terminal_and_none_with_no_color():
    code, text = Terminal(NOBODY).ended()
    assert code == 3
    assert "\x1b[1;31merror" in text
    code, text = Terminal(NOBODY, NO_COLOR="1").ended()
    assert code == 3
    assert "error" in text
    assert not re.search(r"\x1b\[[\d;]*3[1-7]m", text)


def test_a_long_name_does_not_fill_the_summary():
    name = ".".join(["x" * 60] * 4)  # near the most that a name may have
    done = subprocess.run([*COMMAND, f"tcp://{name}"], capture_output=True, timeout=WAIT_S, check=False)
    assert done.returncode == 3
    assert max(map(len, done.stderr.splitlines())) < 300


@pytest.mark.parametrize("columns", [1, 12, 30, 60])
def test_no_line_is_wider_than_the_terminal(columns):
    code, text = Terminal(NOBODY, "--no-progress", columns=columns, NO_COLOR="1").ended()
    assert code == 3
    table = text.partition("dataproxy: ")[0]
    plain = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", table)
    if columns >= 30:
        assert max(map(len, plain.splitlines())) <= columns


def test_a_dumb_terminal_gets_no_escapes():
    code, text = Terminal(NOBODY, "--no-progress", TERM="dumb").ended()
    assert code == 3
    assert "\x1b" not in text


def test_ctrl_c_shows_what_was_found_so_far(hanging):
    with Hub() as hub:
        terminal = Terminal(f"{hanging},{hub.target[6:]}", "--timeout", "300s")
        terminal.read_until("1 of 2 addresses of proxies")
        terminal.process.send_signal(signal.SIGINT)
        code, text = terminal.ended()
    assert code == 130
    assert "(interrupted)" in text
    assert "the examination ended before it answered" in text
    assert "heartbeat" in text
    assert "Traceback" not in text


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_it_at_once_in_a_pipe(number, code, hanging):
    process = subprocess.Popen(
        [*COMMAND, hanging, "--timeout", "300s", "--progress"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    seen = b""
    while b"0 of 1 address" not in seen:
        seen += os.read(process.stderr.fileno(), 4096)
    assert hears_sigterm(process)
    process.send_signal(number)
    out, told = process.communicate(timeout=WAIT_S)
    assert process.returncode == code
    assert out == b""
    assert b"Traceback" not in seen + told


@pytest.mark.parametrize("sink", [">&-", "2>&-", ">&- 2>&-", ">/dev/full", ">/dev/full 2>/dev/full", "| true"])
@pytest.mark.parametrize("form", ["", "--json", "--progress"])
def test_the_code_tells_of_the_cluster_wherever_the_output_goes(sink, form):
    line = f"set -o pipefail; {' '.join(COMMAND)} {NOBODY} {form} {sink}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, timeout=WAIT_S, check=False)
    assert done.returncode == 3
    assert b"Traceback" not in done.stderr


def test_json_alone_is_on_stdout():
    done = subprocess.run([*COMMAND, NOBODY, "--json", "--progress"], capture_output=True, timeout=WAIT_S, check=False)
    assert json.loads(done.stdout)["proxies"][0]["state"] == "refused"


def test_a_locale_without_utf_8():
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([*COMMAND, NOBODY], capture_output=True, timeout=WAIT_S, check=False, env=environment)
    assert done.returncode == 3
    assert done.stdout.isascii()
    assert b"Connection refused" in done.stdout


def test_an_installation_without_its_compiled_core(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "dataproxy", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    done = subprocess.run(
        COMMAND, cwd=tmp_path, capture_output=True, timeout=WAIT_S, check=False,
        env=dict(os.environ),  # readline, where it is loaded, gives children a COLUMNS that os.environ does not have
    )  # fmt: skip
    assert done.returncode == 1
    assert b"the compiled core cannot be loaded: compiled module" in done.stdout
    assert b"Traceback" not in done.stderr
