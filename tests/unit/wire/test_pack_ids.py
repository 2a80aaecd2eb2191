"""The pack's id in a frame: one attribute behind the caller's, in every layout, and nothing without an id."""

import pytest

from dataproxy._core.wire.inlong.message import records
from tests.native.probe_wire import ProbeError, Server, Wire

ATTRS = b"groupId=g&streamId=s&env=x"
ITEM = b"\x00\x00\x00\x01x"


@pytest.mark.parametrize(("family", "items", "body"), [(7, 0, ITEM), (5, 0, ITEM), (3, 2, b"x")])
def test_a_frame_with_an_id(family, items, body):
    wire = Wire()
    plain = wire.frame(body, ATTRS, family=family, items=items)
    named = wire.frame(body, ATTRS, family=family, items=items, sid=b"abcdefghijklm-1f")
    assert b"sid=" not in plain
    assert named.count(b"groupId=g&streamId=s&env=x&sid=abcdefghijklm-1f") == 1
    assert len(named) == len(plain) + len("&sid=abcdefghijklm-1f")
    served = Server().serve(named, 0)
    assert served["code"] == 0
    ((stored, attrs),) = records(served["entry"])
    assert (stored, attrs["sid"], attrs["env"]) == (b"x", "abcdefghijklm-1f", "x")


@pytest.mark.parametrize("family", [7, 5])
def test_attributes_and_id_share_one_limit(family):
    wire = Wire()
    room = 32000 - len(b"&sid=abc-1") - (0 if family == 7 else len(b"&dt=0&mid=1&cnt=1"))
    assert wire.frame(ITEM, b"a=" + b"x" * (room - 2), family=family, sid=b"abc-1")
    with pytest.raises(ProbeError):
        wire.frame(ITEM, b"a=" + b"x" * (room - 1), family=family, sid=b"abc-1")
