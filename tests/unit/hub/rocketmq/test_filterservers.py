"""Filter servers: a table, and never a process."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import dataproxy.hub.rocketmq as package
from dataproxy.hub.clients import SCAN_S
from tests.support.rocketclients import RocketHub, refusal


def test_a_filter_server_is_there_for_half_a_minute_after_it_was_heard_last() -> None:
    hub = RocketHub()
    hub.registry.register_filter_server(hub.peer(1), "10.0.0.9:1", hub.now)
    hub.wait(29.0)
    hub.registry.register_filter_server(hub.peer(1), "10.0.0.9:1", hub.now)
    hub.wait(29.0)
    assert hub.registry.filter_servers() == ("10.0.0.9:1",)
    hub.wait(1.1 + SCAN_S)
    assert hub.registry.filter_servers() == ()
    assert hub.closing() == [1]


def test_a_changed_address_is_taken() -> None:
    """RocketMQ refreshes a known connection, and keeps its first address."""
    hub = RocketHub()
    hub.registry.register_filter_server(hub.peer(1), "10.0.0.9:1", hub.now)
    hub.registry.register_filter_server(hub.peer(1), "10.0.0.9:2", hub.now)
    assert hub.registry.filter_servers() == ("10.0.0.9:2",)


def test_an_address_is_told_once_however_many_connections_register_it() -> None:
    """RocketMQ's routes have it twice."""
    hub = RocketHub()
    for connection in (1, 2):
        hub.registry.register_filter_server(hub.peer(connection), "10.0.0.9:1", hub.now)
    assert hub.registry.filter_servers() == ("10.0.0.9:1",)
    hub.close(1)
    assert hub.registry.filter_servers() == ("10.0.0.9:1",)
    hub.close(2)
    assert hub.registry.filter_servers() == ()


@pytest.mark.parametrize("address", ["", "a" * 300, "10.0.0.9:1\nrm"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    hub = RocketHub()
    error = refusal(lambda: hub.registry.register_filter_server(hub.peer(1), address, hub.now))
    assert "filterServerAddr" in error.remark


def test_no_setting_and_no_address_starts_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """RocketMQ builds a command of its configuration, which anybody may change, and runs it (CVE-2023-33246)."""

    def started(*words: object, **more: object) -> None:
        raise AssertionError(f"a process was started: {words}")

    monkeypatch.setattr(subprocess, "Popen", started)
    monkeypatch.setattr("os.system", started)
    monkeypatch.setattr("os.posix_spawn", started)
    hub = RocketHub()
    hub.registry.register_filter_server(hub.peer(1), "$(touch x)", hub.now)
    hub.wait(120.0)
    texts = [path.read_text() for path in Path(package.__file__).parent.rglob("*.py")]
    assert not [text for text in texts if "subprocess" in text or "os.system" in text or "spawn" in text]
