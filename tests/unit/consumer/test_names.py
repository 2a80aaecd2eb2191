"""Addresses of hosts: looked up apart, kept, looked up again."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from dataproxy.consumer.names import Names


class Threads:
    """Starts nothing before ``run``."""

    def __init__(self) -> None:
        self.bodies: list[Callable[[], None]] = []
        self.found = 0

    def start(self, _name: str, body: Callable[[], None]) -> None:
        self.bodies.append(body)

    def run(self) -> None:
        while self.bodies:
            self.bodies.pop()()

    def note(self) -> None:
        self.found += 1


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    known: dict[str, str] = {}

    def look(host: str, *_: Any, **__: Any) -> list[Any]:
        if host not in known:
            raise socket.gaierror(-2, "Name or service not known")
        return [(None, None, None, "", (known[host], 0))]

    monkeypatch.setattr(socket, "getaddrinfo", look)
    return known


def names(threads: Threads) -> Names:
    return Names(30.0, threads.start, threads.note)


def test_a_name_is_looked_up_apart_and_again_in_a_period(addresses: dict[str, str]) -> None:
    threads = Threads()
    looked = names(threads)
    addresses["m"] = "10.0.0.1"
    assert [looked.look("m", 0), looked.look("m", 1)] == ["", ""]
    assert len(threads.bodies) == 1
    threads.run()
    assert (looked.look("m", 2), threads.found) == ("10.0.0.1", 1)
    addresses["m"] = "10.0.0.2"
    assert looked.look("m", 29) == "10.0.0.1"
    assert threads.bodies == []
    assert looked.look("m", 31) == "10.0.0.1"  # the known one, while the next is looked up
    threads.run()
    assert looked.look("m", 32) == "10.0.0.2"


def test_addresses_need_no_look(addresses: dict[str, str]) -> None:
    threads = Threads()
    assert [names(threads).look(host, 0) for host in ("10.0.0.1", "::1")] == ["10.0.0.1", "::1"]
    assert threads.bodies == []


def test_a_name_that_is_not_found_is_told_once_and_looked_up_again(addresses: dict[str, str]) -> None:
    threads = Threads()
    looked = names(threads)
    assert looked.look("m", 0) == ""
    threads.run()
    with pytest.raises(OSError, match="'m' has no address"):
        looked.look("m", 1)
    addresses["m"] = "10.0.0.1"
    assert looked.look("m", 2) == ""
    threads.run()
    assert looked.look("m", 3) == "10.0.0.1"
    del addresses["m"]
    assert looked.look("m", 40) == "10.0.0.1"
    threads.run()
    assert looked.look("m", 41) == "10.0.0.1"  # the last one that was known


def test_without_a_thread_the_known_address_stays(addresses: dict[str, str]) -> None:
    threads = Threads()
    addresses["m"] = "10.0.0.1"
    looked = names(threads)
    looked.look("m", 0)
    threads.run()

    def no_thread(_name: str, _body: Callable[[], None]) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    looked._start = no_thread
    assert looked.look("m", 31) == "10.0.0.1"
    with pytest.raises(OSError, match="'n' cannot be looked up: can't create new thread"):
        looked.look("n", 31)


def test_a_scope_is_left_out(addresses: dict[str, str]) -> None:
    threads = Threads()
    looked = names(threads)
    addresses["fe80::1%lo"] = "fe80::1%lo"
    assert looked.look("fe80::1%lo", 0) == ""
    threads.run()
    assert looked.look("fe80::1%lo", 1) == "fe80::1"


def test_a_look_up_that_fails_in_another_way_is_told_and_done_again(
    addresses: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = Threads()
    looked = names(threads)

    def fail(*_: Any, **__: Any) -> list[Any]:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", fail)
        looked.look("m", 0)
        threads.run()
    with pytest.raises(OSError, match="'m' could not be looked up: MemoryError"):
        looked.look("m", 1)
    addresses["m"] = "10.0.0.1"
    looked.look("m", 2)
    threads.run()
    assert looked.look("m", 3) == "10.0.0.1"
