"""Clients on sockets at the hub's own master: the tests of TubeMQ's servers and of consumers, once more."""

from __future__ import annotations

from functools import partialmethod
from types import ModuleType

import pytest

from tests.interop.tubemq import test_group, test_raw_calls
from tests.loopback.tubemq import test_consumer_assign, test_consumer_bound, test_consumer_masters, test_producer_life
from tests.support.tubeserver import TubeServer

FIXTURES = {
    test_raw_calls: ("group",),
    test_group: ("sender",),
    test_consumer_assign: (),
    test_consumer_bound: (),
    test_consumer_masters: (),
    test_producer_life: (),
}


@pytest.fixture(autouse=True)
def hub_master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TubeServer, "__init__", partialmethod(TubeServer.__init__, hub_master=True))


def borrowed(module: ModuleType) -> dict[str, object]:
    """Return the tests of a module with their fixtures, but for those that this folder has in its own way."""
    return {name: value for name, value in vars(module).items() if name.startswith("test_") or name in FIXTURES[module]}


for _module in FIXTURES:
    globals().update(borrowed(_module))
