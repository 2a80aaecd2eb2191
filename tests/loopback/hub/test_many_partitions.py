"""Places in as many partitions as there may be."""

from __future__ import annotations

from dataproxy.cli.hub.client import HubClient
from tests.loopback.hub.peer import binary_frame, read_frame


def test_the_place_in_1024_partitions_fits_a_request(start_hub, connect):
    hub = start_hub(partitions=1024)
    connection = connect(hub)
    for n in range(4000):
        connection.sendall(binary_frame(n + 1, [b"%d" % n], stream=f"s{n}"))
    for _ in range(4000):
        read_frame(connection)
    seen = set()
    for record in HubClient(hub.manager_url).records("g", "", 0):
        if record is None:
            break
        seen.add(record["body"])
    assert len(seen) == 4000
    assert len(hub._store.logs()) > 900
