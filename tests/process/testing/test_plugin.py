"""The pytest plugin in runs of its own, as a user has it."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.docs.pages import blocks

ROOT = Path(__file__).parents[3]
LEAKS = """
import gc
import os
import threading


def _state():
    gc.collect()  # a producer gives its descriptors back when it is collected
    links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    open_files = [os.path.realpath(link) for link in links if os.path.exists(link)]
    return sorted(thread.name for thread in threading.enumerate()), sorted(open_files)


def pytest_runtest_setup(item):
    if not hasattr(item.session, "before"):
        from dataproxy.hub import Hub

        with Hub():
            pass  # what is loaded once is no leak
        item.session.before = _state()


def pytest_sessionfinish(session):
    if hasattr(session, "before"):
        assert _state() == session.before
"""


def run(folder: Path, tests: str, *args: str, conftest: str = "") -> subprocess.CompletedProcess:
    """Run pytest in a folder of its own."""
    (folder / "test_it.py").write_text(tests)
    (folder / "conftest.py").write_text(conftest)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "dataproxy.testing.plugin", "-p", "no:cacheprovider", *args],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def passed(result: subprocess.CompletedProcess, count: int) -> bool:
    """Tell whether so many tests passed, and nothing else happened."""
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stderr == ""
    return f"{count} passed" in result.stdout


def test_the_entry_point_names_the_plugin():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"dataproxy.testing.plugin": "dataproxy.testing.plugin"}


def test_nothing_is_loaded_before_a_fixture_is_used(tmp_path):
    tests = """
import sys


def test_one():
    loaded = [name for name in sys.modules if name.startswith("dataproxy")]
    assert sorted(loaded) == ["dataproxy", "dataproxy._version", "dataproxy.testing", "dataproxy.testing.plugin"]
    assert "aiohttp" not in sys.modules


def test_two(dataproxy_hub):
    assert "dataproxy._core" in sys.modules
"""
    assert passed(run(tmp_path, tests), 2)


def test_fixtures_leave_no_thread_and_no_descriptor(tmp_path):
    tests = """
import socket

import pytest

import dataproxy
from dataproxy.testing import FaultProxy


def send(target):
    with dataproxy.Producer(target, group_id="g") as producer:
        return producer.send("s", b"x").result(30)


@pytest.mark.parametrize("i", range(3))
def test_hub(dataproxy_hub, i):
    send(dataproxy_hub.target)
    assert [record.body for record in dataproxy_hub.records("g")] == [b"x"]


def test_faults(dataproxy_hub, dataproxy_faults):
    assert dataproxy_faults is dataproxy_hub.faults
    frozen = dataproxy_faults.add("freeze", nth=1)
    with socket.create_connection(("127.0.0.1", dataproxy_hub.port)):
        dataproxy_faults.add("refuse", code=114, nth=1)
        frozen.remove()
        assert send(dataproxy_hub.target).attempts == 2


def test_factory(dataproxy_hubs, tmp_path):
    hubs = [dataproxy_hubs(), dataproxy_hubs(nodes=2), dataproxy_hubs(tmp_path / "store")]
    send("tcp://" + ",".join(hub.target.removeprefix("tcp://") for hub in hubs))
    assert sum(count.records for hub in hubs for count in hub.counts().values()) == 1


def test_proxy(dataproxy_hub):
    with FaultProxy(dataproxy_hub.target) as proxy:
        proxy.add("reset", connection=1, at_byte=10)
        send(proxy.target)


def test_session_one(dataproxy_hub_session, request):
    request.session.port = dataproxy_hub_session.port


def test_session_two(dataproxy_hub_session, request):
    assert request.session.port == dataproxy_hub_session.port
"""
    assert passed(run(tmp_path, tests, "-s", "-W", "error", conftest=LEAKS), 8)


def test_fifty_hubs_at_once(tmp_path):
    tests = """
import socket


def test_fifty(dataproxy_hubs):
    hubs = [dataproxy_hubs() for _ in range(50)]
    assert len({port for hub in hubs for port in (hub.port, hub.manager_port)}) == 100
    for hub in hubs:
        with socket.create_connection(("127.0.0.1", hub.port), timeout=30) as one:
            one.sendall(bytes.fromhex("0000000101"))
            assert one.recv(1)
"""
    assert passed(run(tmp_path, tests, "-s", conftest=LEAKS), 1)


def test_two_processes_at_once(tmp_path):
    tests = """
import pytest

import dataproxy


@pytest.mark.parametrize("i", range(20))
def test_many(dataproxy_hub, dataproxy_hub_session, i):
    for hub, group in ((dataproxy_hub, "g"), (dataproxy_hub_session, f"g{i}")):
        with dataproxy.Producer(hub.target, group_id=group) as producer:
            producer.send("s", b"%d" % i).result(30)
        assert [record.body for record in hub.records(group)] == [b"%d" % i]
"""
    assert passed(run(tmp_path, tests, "-n", "2"), 20)


def test_the_tests_of_the_page(tmp_path):
    (block,) = (one for one in blocks("python") if one.page == "docs/testing.md" and "def test_" in one.text)
    assert passed(run(tmp_path, block.text), 3)


def test_naming_the_plugin_twice_is_harmless(tmp_path):
    tests = "def test_one(dataproxy_hub):\n    assert dataproxy_hub.port\n"
    conftest = 'pytest_plugins = ["dataproxy.testing.plugin"]\n'
    assert passed(run(tmp_path, tests, conftest=conftest), 1)
