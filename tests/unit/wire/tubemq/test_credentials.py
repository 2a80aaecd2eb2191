"""Signatures of TubeMQ's clients, against the golden vectors."""

from __future__ import annotations

from typing import Any

import pytest

from dataproxy.wire.tubemq.credentials import Signature
from tests.support.reference.tubevectors import VECTORS


@pytest.mark.parametrize("vector", VECTORS["authentication"], ids=lambda v: v["user"])
def test_signatures(vector: dict[str, Any]) -> None:
    made = Signature.make(vector["user"], vector["password"], vector["timestamp"], vector["nonce"])
    assert made == (vector["user"], vector["timestamp"], vector["nonce"], vector["signature"])
    assert made.token == vector["broker_token"]
