"""The script that plays the pages as a new user: nothing holds it up, and what went wrong is shown."""

import importlib.util
import os
import signal
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script(monkeypatch):
    spec = importlib.util.spec_from_file_location("first_hour_script", ROOT / "tools" / "first_hour.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def start(script, tmp_path):
    """Return what starts a Python program whose processes are ended after the test."""
    (tmp_path / "work").mkdir()
    commands = []

    def started(program):
        commands.append(script.Command([sys.executable, "-c", program], tmp_path / "work", dict(os.environ)))
        return commands[-1]

    yield started
    for command in commands:
        command.kill()


def test_a_process_that_is_left_behind_holds_nothing_up(start):
    """It keeps the output open, as a server in the background does."""
    left = "[sys.executable, '-c', 'import time; time.sleep(600)']"
    program = f"import subprocess, sys; subprocess.Popen({left}); print(1)"
    assert start(program).end() == "1\n"


def test_a_command_that_asks_gets_no_answer(script, start):
    with pytest.raises(script.StepError, match="EOFError"):
        start("input('continue? ')").end()


def test_what_a_failed_command_printed_is_shown(script, start):
    with pytest.raises(script.StepError) as found:
        start("import sys; print('one'); print('two', file=sys.stderr); sys.exit(3)").end()
    assert all(text in str(found.value) for text in ("one", "two", "exit code 3, not 0"))


def test_ctrl_c_ends_a_command_in_the_background_of_a_shell(script, start):
    """There the shell has Ctrl-C ignored, by all that it starts."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        command = start("import time; print('begun', flush=True); time.sleep(600)")
        command.until(lambda text: "begun" in text, "its beginning")
        assert "KeyboardInterrupt" in command.interrupt(-signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_command_that_never_ends_is_given_up(script, start):
    command = start("import time; print('begun', flush=True); time.sleep(600)")
    command.until(lambda text: "begun" in text, "its beginning")
    with pytest.raises(script.StepError, match=r"(?s)begun.*has not ended after 0\.1 s"):
        command.end(seconds=0.1)
    script.SECONDS = 0.1
    with pytest.raises(script.StepError, match=r"(?s)begun.*has not shown more after 0\.1 s"):
        command.until(lambda text: "more" in text, "more")
    assert command.interrupt(-2).startswith("begun")  # what Ctrl-C makes of a plain program


def test_a_command_that_ends_before_its_words_is_told(script, start):
    with pytest.raises(script.StepError, match="exit code 0 without its words"):
        start("print('others')").until(lambda text: "words" in text, "its words")


def test_blocks_with_a_spark_session_are_left_out(script):
    if not (ROOT / script.README).exists():
        return  # a wheel's tests have the pages of docs alone
    places = [block.text for block in script.blocks(script.README, "python")]
    assert places and not any("df.write" in text or "spark." in text for text in places)
    assert len(script.blocks(script.INTRODUCTION, "python")) >= 6


def test_lines_of_comments_are_no_commands(script):
    text = "dataproxy hub --store './a b'   # port 46801\n# in a second terminal:\n\ndataproxy stats\n"
    assert script.typed(text) == [["dataproxy", "hub", "--store", "./a b"], ["dataproxy", "stats"]]
