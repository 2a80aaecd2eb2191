"""A package that was built without the hub: the producer works, and what needs the hub says what to install."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dataproxy
from tests.support.scripted import Scripted

PACKAGE = Path(dataproxy.__file__).parent
WORDS = "this installation of dataproxy has no hub: it was built without liblmdb"
COMMAND = "DATAPROXY_HUB=yes pip install --force-reinstall --no-cache-dir dataproxy-sdk"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with this package, but without the modules that such a build leaves out."""
    folder = tmp_path_factory.mktemp("plain")
    left_out = (PACKAGE / "_core" / "server").resolve()

    def ignored(where, names):
        inside = Path(where).resolve().is_relative_to(left_out)
        return [name for name in names if name == "__pycache__" or (inside and name.endswith(".so"))]

    shutil.copytree(PACKAGE, folder / "dataproxy", copy_function=os.symlink, ignore=ignored)
    assert not [*(folder / "dataproxy" / "_core" / "server").rglob("*.so")]
    return folder


def run(place, program, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=place, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_a_producer_delivers(place):
    program = """
import sys, dataproxy, dataproxy.spark, dataproxy.testing.plugin
with dataproxy.Producer(sys.argv[1], group_id="g") as producer:
    producer.send("s", b"x")
    print(producer.flush().delivered, dataproxy.__file__)
"""
    with Scripted() as proxy:
        done = run(place, program, f"tcp://{proxy.address}")
    assert done.stdout.split() == ["1", str(place / "dataproxy" / "__init__.py")], done.stderr


@pytest.mark.parametrize(
    "program",
    ["from dataproxy.hub import Hub", "import dataproxy; dataproxy.hub", "import dataproxy.hub.web.pages.records"],
)
def test_the_hub_names_the_cause_and_the_command(place, program):
    done = run(place, program)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: {WORDS}")
    assert COMMAND in last


def test_the_command_line_says_it_in_one_line(place):
    program = "import sys; sys.argv = ['dataproxy', 'hub', '--memory']; from dataproxy.cli.main import main; main()"
    done = run(place, program)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"dataproxy: {WORDS}")
    assert COMMAND in line
