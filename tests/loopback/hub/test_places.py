"""Places that readers are given: they are taken when the call is made."""

from __future__ import annotations

from pathlib import Path

from dataproxy import Producer
from dataproxy.hub import Hub, open_store


def test_places_are_those_that_were_given(tmp_path: Path) -> None:
    with Hub(tmp_path / "store") as hub, Producer(hub.target, group_id="g", linger=0) as producer:
        for number in range(4):
            producer.send("s", b"%d" % number).result(30)
        places = {0: 3}
        with open_store(tmp_path / "store") as store:
            records = [hub.records("g", at=places), store.records("g", at=places)]
            entries, batches = hub.entries("g", at=places), store.record_batches("g", at=places)
            places[0] = 0
            assert [[one.body for one in found] for found in records] == [[b"3"], [b"3"]]
            assert [one.offset for one in entries] == [3]
            assert [batch.num_rows for batch in batches] == [1]
