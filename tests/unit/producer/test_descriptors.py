"""A producer that finds no descriptors left."""

import os
import resource
from collections.abc import Iterator

import pytest

import dataproxy

TARGET = "tcp://127.0.0.1:9"


@pytest.fixture
def taken() -> Iterator[list[int]]:
    """Take every descriptor that this process may have; the test gives some of them back."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.open(os.devnull, os.O_RDONLY)]
    held += [os.dup(held[0]) for _ in range(7)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(held) + 1, hard))
    try:
        while True:
            held.append(os.dup(held[0]))
    except OSError:
        pass
    try:
        yield held
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in held:
            os.close(fd)


@pytest.mark.parametrize("left", [1, 2, 3])
def test_opening_one_says_so_and_keeps_nothing(taken: list[int], left: int) -> None:
    for _ in range(left):
        os.close(taken.pop())
    with pytest.raises(dataproxy.TransportError, match="raise the limit of open files"):
        dataproxy.Producer(TARGET, group_id="g", executors=2)
    for _ in range(left):  # as many as before, so none stayed behind
        taken.append(os.dup(taken[0]))
    with pytest.raises(OSError, match="Too many open files"):
        os.dup(taken[0])
