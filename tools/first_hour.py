"""Play the README and the introduction in an empty environment, from a built wheel: ``tools/first_hour.py WHEEL``.

It does what a new user does, and nothing besides: a fresh virtual environment, ``pip install`` of the wheel with the
extras that the README names, each Python block of the two pages that needs no Spark, as a program of its own, and the
commands of the README's section "On a laptop".  Only addresses differ: the hub listens on free ports, and the addresses
of the pages are replaced by its own.  Commands run without the variables of this process, with an empty home, without a
terminal or input, and with a time limit.  If one fails, everything that it printed is shown.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["main"]

ROOT = Path(__file__).parents[1]
README, INTRODUCTION = "README.md", "docs/introduction.md"
LINES = [f"line {number} of the log" for number in range(100)]  # of app.log
SECONDS = 120.0  # for a command
INSTALL_SECONDS = 600.0  # for pip, which may have to fetch packages
CTRL_C = 128 + signal.SIGINT  # the exit code of a command that Ctrl-C has ended
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PIP = re.compile(r'^pip install "\.(\[[\w,]+\])"', re.MULTILINE)
_HUB = re.compile(r"hub: producers (\S+), Manager (\S+), store ")


class StepError(Exception):
    """Report that a step did not do what the page says."""


class Block(NamedTuple):
    """Hold a fenced block: where it is (page and line), its language and its text."""

    place: str
    language: str
    text: str


def blocks(page: str, language: str) -> list[Block]:
    """Return the blocks of a page in one language, except those that need the reader's Spark session or DataFrame."""
    text = (ROOT / page).read_text()
    found = [Block(f"{page}:{text.count(chr(10), 0, m.start()) + 1}", m[1], m[2]) for m in _BLOCK.finditer(text)]
    return [one for one in found if one.language == language and not re.search(r"\b(df|spark)\b", one.text)]


class Command:
    """Run a command with its output in a file, so that processes that it leaves behind cannot block the wait for it."""

    def __init__(self, words: Sequence[str], folder: Path, env: dict[str, str]) -> None:
        self.words = list(words)
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a background job of a shell
            signal.signal(signal.SIGINT, signal.default_int_handler)
        with tempfile.NamedTemporaryFile(prefix="output-", dir=folder.parent, delete=False) as out:
            self._file = Path(out.name)
            self._process = subprocess.Popen(
                self.words, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip

    @property
    def output(self) -> str:
        """Return what it has printed so far, on stdout and stderr."""
        return self._file.read_text(errors="replace")

    def until(self, seen: Callable[[str], object], what: str) -> None:
        """Wait until ``seen(output)`` is true.  Raises StepError when the command ends, or after the time limit."""
        deadline = time.monotonic() + SECONDS
        while not seen(self.output):
            if self._process.poll() is not None and not seen(self.output):
                raise self.failure(f"has ended with exit code {self._process.returncode} without {what}")
            if time.monotonic() > deadline:
                raise self.failure(f"has not shown {what} after {SECONDS:g} s")
            time.sleep(0.02)

    def end(self, code: int = 0, seconds: float = SECONDS) -> str:
        """Wait for its end and return its output.  Raises StepError for another exit code and after the time limit."""
        try:
            found = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise self.failure(f"has not ended after {seconds:g} s") from None
        if found != code:
            raise self.failure(f"ended with exit code {found}, not {code}")
        return self.output

    def interrupt(self, code: int) -> str:
        """End it as Ctrl-C does, then as ``end``."""
        self._process.send_signal(signal.SIGINT)
        return self.end(code)

    def kill(self) -> None:
        """End it and every process that it has left behind."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def failure(self, what: str) -> StepError:
        """Return the error for ``what`` went wrong, with the end of the command's output."""
        return StepError(f"$ {shlex.join(self.words)}\n{self.output[-6000:]}\n-- {what}")


class Newcomer:
    """Hold the environment of a new user: an interpreter of its own, an empty home and an empty folder."""

    def __init__(self, home: Path, wheel: Path, venv: Path | None) -> None:
        self._wheel = wheel
        self.folder = home / "work"
        self.folder.mkdir()
        self.venv = venv or home / "venv"
        self._bin = self.venv / "bin"
        others = ("DATAPROXY_", "PYTHON", "VIRTUAL_ENV")  # variables that may lead to the checkout
        self._pip_env = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        self._env = {"PATH": f"{self._bin}:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8"}
        if venv is None:
            self._run([getattr(sys, "_base_executable", sys.executable), "-m", "venv", str(self.venv)], self._pip_env)

    def install(self, extras: str) -> None:
        """Install the wheel with extras."""
        pip = [str(self._bin / "python"), "-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check"]
        self._run([*pip, f"{self._wheel}{extras}"], self._pip_env)

    def _run(self, words: list[str], env: dict[str, str]) -> None:
        with self._started(words, env) as command:
            command.end(seconds=INSTALL_SECONDS)

    @contextmanager
    def started(self, *words: str) -> Iterator[Command]:
        """Run a command of the environment for the time of a ``with`` block."""
        with self._started([str(self._bin / words[0]), *words[1:]], self._env) as command:
            yield command

    @contextmanager
    def _started(self, words: list[str], env: dict[str, str]) -> Iterator[Command]:
        command = Command(words, self.folder, env)
        try:
            yield command
        finally:
            command.kill()

    def run(self, *words: str) -> str:
        """Run a command of the environment to its end and return its output."""
        with self.started(*words) as command:
            return command.end()

    def python(self, block: Block, places: dict[str, str]) -> str:
        """Run a block as a program; return a line about it."""
        program = self.folder / "block.py"
        program.write_text(_replaced(block.text, places))
        try:
            self.run("python", program.name)
        except StepError as failure:
            raise StepError(f"{block.place}: {failure}") from None
        return f"{block.place}: Python, ok"


def _replaced(text: str, places: dict[str, str]) -> str:
    for shown, here in places.items():
        text = text.replace(shown, here)
    return text


@contextmanager
def laptop_hub(user: Newcomer, words: list[str]) -> Iterator[dict[str, str]]:
    """Run the README's hub on free ports; yield addresses of the pages -> addresses of this hub."""
    with user.started(*words, "--port", "0", "--manager-port", "0") as hub:
        hub.until(_HUB.search, "where it listens")
        found = _HUB.search(hub.output)
        assert found is not None
        target, manager = found.groups()
        yield {
            "tcp://127.0.0.1:46801": target, "tcp://host1:46801,host2:46801": target,
            "http://127.0.0.1:8083": manager, "http://manager:8083": manager,
        }  # fmt: skip
        hub.interrupt(0)


def typed(text: str) -> list[list[str]]:
    """Return the words of each command of a block; lines of comments are none."""
    return [words for line in text.splitlines() if (words := shlex.split(line, comments=True))]


def laptop(user: Newcomer) -> Iterator[str]:
    """Type the commands of the section "On a laptop"; the blocks of the introduction run beside its hub."""
    (section,) = (block for block in blocks(README, "sh") if "dataproxy hub" in block.text)
    commands = typed(section.text)
    (hub,) = (words for words in commands if words[1] == "hub")
    (user.folder / "app.log").write_text("\n".join(LINES) + "\n")
    with laptop_hub(user, hub) as places:
        yield f"{section.place}: {shlex.join(hub)}, listens"
        for words in commands:
            if words is not hub:
                yield f"{section.place}: {_typed(user, [_replaced(word, places) for word in words])}"
        for block in blocks(INTRODUCTION, "python"):
            yield user.python(block, places)


def _typed(user: Newcomer, words: list[str]) -> str:
    """Run one command of the section; return a line about it."""
    with user.started(*words) as command:
        if "--follow" in words:
            command.until(lambda text: text.count("\n") >= len(LINES), f"{len(LINES)} lines")
            if sorted(command.interrupt(CTRL_C).splitlines()) != sorted(LINES):
                raise command.failure("has not shown the lines of app.log")
            return f"{shlex.join(words)}: {len(LINES)} lines, ended by Ctrl-C"
        output = command.end()
        if words[1] == "stats" and not re.search(r"\bs\b", output):
            raise command.failure("does not know the stream s")
        return f"{shlex.join(words)}: ok"


def steps(home: Path, wheel: Path, venv: Path | None) -> Iterator[str]:
    """Do all steps; yield a line for each step that succeeded.  Raises StepError."""
    user = Newcomer(home, wheel, venv)
    (extras,) = _PIP.findall((ROOT / README).read_text())
    user.install(extras)
    place = user.run("python", "-c", "import dataproxy; print(dataproxy.__version__, dataproxy.__file__)").split()
    if not place[1].startswith(f"{user.venv}/"):
        raise StepError(f"dataproxy comes from {place[1]}, not from the wheel")
    yield f"installed {place[0]} from {wheel.name}{extras}"
    for block in blocks(README, "python"):
        yield user.python(block, {})
    yield from laptop(user)


def main() -> int:
    """Play the pages, print a line for each step, and return 1 if one failed."""
    parser = argparse.ArgumentParser(description="Play the README and the introduction from a wheel.")
    parser.add_argument("wheel", type=Path, metavar="WHEEL", help="the built wheel")
    parser.add_argument("--venv", type=Path, metavar="DIR", help="an environment to install into; it gets packages")
    given = parser.parse_args()
    venv = given.venv and given.venv.resolve(strict=True)
    began, done = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="first-hour-") as home:
        try:
            for line in steps(Path(home), given.wheel.resolve(strict=True), venv):
                print(f"first hour: {line}", flush=True)
                done += 1
        except StepError as failure:
            print(f"first hour: failed after {done} steps\n{failure}", file=sys.stderr)
            return 1
    print(f"first hour: {done} steps, {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
