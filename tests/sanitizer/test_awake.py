"""Each sanitizer must report the mistake planted for it, otherwise its silence about the product means nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

RACE = """
import threading
from tests.sanitizer.planted import count
barrier = threading.Barrier(2)
def run():
    barrier.wait()
    count(5_000_000)
threads = [threading.Thread(target=run) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
OVERFLOW = "from tests.sanitizer.planted import read_behind; read_behind(64)"
SHIFT = "from tests.sanitizer.planted import shift; shift(40)"
LEAK = "from tests.sanitizer.planted import forget; forget(64)"
PLANTED = {
    "asan": [
        ("ASAN_OPTIONS", OVERFLOW, "heap-buffer-overflow"),
        ("ASAN_OPTIONS", LEAK, "Direct leak of 64 byte(s)"),
        ("UBSAN_OPTIONS", SHIFT, "shift exponent 40"),
    ],
    "tsan": [("TSAN_OPTIONS", RACE, "data race")],
}


@pytest.mark.parametrize(("variable", "program", "words"), PLANTED[os.environ["DATAPROXY_SANITIZER"]])
def test_planted_mistake_is_reported(tmp_path, variable, program, words):
    kept = [option for option in os.environ[variable].split(":") if not option.startswith("log_path=")]
    environment = {**os.environ, variable: ":".join([*kept, f"log_path={tmp_path}/planted"])}
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=root, check=False, capture_output=True, text=True
    )
    reports = "".join(path.read_text() for path in tmp_path.glob("planted.*")) + done.stderr
    assert words in reports
    assert "planted.pyx" in reports
