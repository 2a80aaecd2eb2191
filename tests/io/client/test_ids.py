"""Ids of messages: made by the producer, carried by the frame, the same wherever they are read."""

import re

import pytest

import dataproxy
from dataproxy.hub import Hub
from tests.io.scripted import Scripted, refusal

PACK_ID = re.compile(r"[a-z2-7]{13}-[0-9a-f]{1,16}")


@pytest.fixture
def hub():
    with Hub() as running:
        yield running


@pytest.mark.parametrize("message_type", [7, 5])
def test_one_id_wherever_it_is_read(hub, message_type):
    with dataproxy.Producer(hub.target, group_id="g", message_type=message_type) as p:
        sent = {}
        for i in range(20):
            body = b"%d" % i
            sent[body] = p.send("s", body, attrs={"k": "v"} if i % 3 == 0 else None)
            if i == 10:
                p.flush()
        p.flush()
        for delivery in sent.values():
            assert delivery.result().id == delivery.id
            pack, _, position = delivery.id.partition(".")
            assert PACK_ID.fullmatch(pack)
            assert int(position) == delivery.result().position
    stored = {record.body: record.message_id for record in hub.records("g")}
    assert stored == {body: delivery.id for body, delivery in sent.items()}
    assert len(set(stored.values())) == 20


def test_packs_of_type_3_carry_their_id(hub):
    with dataproxy.Producer(hub.target, group_id="g", message_type=3) as p:
        first = p.send("s", b"a")
        p.send_nowait("s", b"b")
    (record,) = hub.records("g")
    assert record.attrs["sid"] == first.id.removesuffix(".0")


def test_each_producer_has_its_own_instance(hub):
    ids = set()
    for _ in range(5):
        with dataproxy.Producer(hub.target, group_id="g") as p:
            ids.add(p.send("s", b"x").id)
    assert len({name[:13] for name in ids}) == 5
    assert {name[13:] for name in ids} == {"-1.0"}


def test_errors_and_callbacks_name_the_id():
    said = []
    with Scripted(lambda peer, frame: peer.send(refusal(frame, 101))) as server:
        p = dataproxy.Producer(server.target, group_id="g", on_delivery=said.append)
        deliveries = [p.send("s", b"%d" % i) for i in range(3)]
        batch = p.send_batch("s", [b"x", b"y"])
        p.close()
    assert [result.error.id for result in said][:3] == [d.id for d in deliveries]
    for d in deliveries:
        assert d.exception().id == d.id == d.exception().details["id"]
    (failure,) = batch.result().failures
    assert failure.error.id == f"{deliveries[0].id[:-2]}.3"
