"""Commands run in this process: nothing of them is left behind, and no environment of the caller's is seen."""

import os

import pytest


@pytest.fixture(autouse=True)
def _quiet_surroundings(monkeypatch):
    for name in list(os.environ):
        if name.startswith("DATAPROXY_"):
            monkeypatch.delenv(name)
