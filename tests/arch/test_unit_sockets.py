"""A unit test that opens a network socket fails: in Python, in a fixture, in compiled code, by a producer, by a hub."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = """
import asyncio
import ctypes
import socket

import pytest

import dataproxy
from dataproxy.hub import Hub
from tests.native.probe_io_transport import Stream

KEPT = Stream()
OPEN_BEFORE = socket.create_server(("127.0.0.1", 0))


def test_opens_none():
    left, right = socket.socketpair()
    with left, right, socket.socket(socket.AF_UNIX):
        asyncio.run(asyncio.sleep(0))


def test_a_socket_of_python():
    socket.socket().close()


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as one:
        yield one


def test_a_fixture(listener):
    pass


def test_a_fixture_that_fails(listener):
    raise RuntimeError


def test_compiled_code():
    KEPT.connect(b"127.0.0.1", OPEN_BEFORE.getsockname()[1])


def test_the_c_library_asks_a_name_server():
    assert ctypes.CDLL(None).socket(socket.AF_INET, socket.SOCK_DGRAM, 0) >= 0


def test_a_producer():
    dataproxy.Producer("tcp://127.0.0.1:9", group_id="g").close(0)


def test_a_hub():
    with Hub():
        pass


def test_opens_none_behind_the_others():
    KEPT.close()
    OPEN_BEFORE.close()
"""


def test_a_unit_test_that_opens_a_network_socket_fails(tmp_path: Path) -> None:
    file, told = tmp_path / "test_sockets.py", tmp_path / "told.xml"
    file.write_text(TESTS)
    plugins = ["-p", "no:cacheprovider", "-p", "tests.unit.conftest"]
    options = ["-q", f"--junitxml={told}", f"--rootdir={ROOT}", f"--config-file={ROOT / 'pyproject.toml'}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *options, str(file)],
        cwd=ROOT, env={**os.environ, "CI": "", "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    found = {
        str(case.get("name")): [str(error.get("message")) for error in case.findall("error")]
        for case in ET.parse(told).iter("testcase")
    }
    refused = {
        "test_a_socket_of_python": "a socket of Python",
        "test_a_fixture": "a socket of Python",
        "test_a_fixture_that_fails": "a socket of Python",
        "test_compiled_code": "compiled code, socket:[",
        "test_a_producer": "thread dataproxy-exec-0",
        "test_a_hub": "thread dataproxy-hub",
    }
    assert {name for name, errors in found.items() if errors} == set(refused), done.stdout
    for name, opener in refused.items():
        assert f"a unit test opens a network socket ({opener}" in found[name][0]
    fine = {"test_opens_none", "test_the_c_library_asks_a_name_server", "test_opens_none_behind_the_others"}
    assert fine <= set(found)
