"""Groups on sockets whose partitions the hub's own master divides: the tests of groups, once more."""

from __future__ import annotations

from functools import partialmethod

import pytest

from tests.loopback.tubemq import test_consumer_groups
from tests.support.tubeserver import TubeServer


@pytest.fixture(autouse=True)
def hub_master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TubeServer, "__init__", partialmethod(TubeServer.__init__, hub_master=True))


globals().update(
    {name: value for name, value in vars(test_consumer_groups).items() if name.startswith("test_") or name == "tube"}
)
