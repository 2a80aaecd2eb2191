"""Records that a command follows: through restarts of a hub, and not on into another store."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dataproxy import Producer
from dataproxy.cli.hub.client import HubClient
from dataproxy.errors import HubError, TransportError
from dataproxy.hub import Hub
from tests.campaigns.httppeers.answers import HostileAnswer, HostileServer
from tests.loopback.hub.peer import wait_until

StartHub = Callable[..., Hub]


def send(hub: Hub, body: bytes, stream: str = "s") -> None:
    with Producer(hub.target, group_id="g") as producer:
        producer.send(stream, body).result(30)


def turn_over(hub: Hub, stream: str) -> int:
    """Fill a store of 1 MiB until it has dropped all that was there before; return the first offset that is left."""
    with Producer(hub.target, group_id="g", compression="none") as producer:
        for number in range(40):
            producer.send(stream, random.Random(number).randbytes(100_000)).result(60)
    return first_offset(hub)


def first_offset(hub: Hub) -> int:
    [log] = HubClient(hub.manager_url).get("/hub/logs", {"group": "g"})["logs"]
    return int(log["first_offset"])


def page(*bodies: str, **more: object) -> HostileAnswer:
    rows = [{"body": body, "attrs": {}, "dt_ms": 1, "partition": 0, "offset": 0} for body in bodies]
    body = json.dumps({"records": rows, "logs": [], "next": "0,0:1", **more}).encode()
    return HostileAnswer(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)


def test_a_hub_that_is_started_again_is_followed_and_that_is_said_once(start_hub: StartHub, tmp_path: Path) -> None:
    hub = start_hub(tmp_path / "store")
    send(hub, b"a")
    told: list[str] = []
    found = HubClient(hub.manager_url).records("g", "s", "0", told.append)
    assert (record := next(found)) is not None and record["body"] == b"a"
    assert next(found) is None
    hub.close()

    def restart() -> None:
        wait_until(lambda: told)
        send(start_hub(tmp_path / "store", manager_port=hub.manager_port), b"b")

    with ThreadPoolExecutor(1) as other:
        done = other.submit(restart)
        body = next(one for one in found if one is not None)["body"]
        done.result()
    assert body == b"b"
    assert len(told) == 2
    assert re.fullmatch("the hub at .* cannot be reached: .*; it is asked again until it answers", told[0])
    assert told[1].endswith("answers again")


def test_another_store_is_not_read_on_at_places_of_the_one_before(start_hub: StartHub) -> None:
    hub = start_hub()
    send(hub, b"a")
    found = HubClient(hub.manager_url).records("g", "s", "0", lambda _text: None)
    assert next(found) is not None
    hub.close()
    start_hub(manager_port=hub.manager_port)
    with pytest.raises(HubError, match="has another store now"):
        next(found)


def test_a_hub_that_is_not_there_at_first_is_an_error_with_words(start_hub: StartHub) -> None:
    hub = start_hub()
    hub.close()
    with pytest.raises(TransportError, match="cannot be reached"):
        next(HubClient(hub.manager_url).records("g", "s", "0", lambda _text: None))


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_hub_without_room_is_asked_again(status: int) -> None:
    told: list[str] = []
    with HostileServer(page("YQ==")) as server:

        def tell(text: str) -> None:
            told.append(text)
            server._answer = page("Yg==", next="0,0:2")

        found = HubClient(f"http://127.0.0.1:{server.port}").records("g", "s", "0", tell)
        assert next(found) is not None
        server._answer = HostileAnswer(b"HTTP/1.1 %d No\r\ncontent-length: 0\r\n\r\n" % status)
        record: Any = next(found)
    assert record["body"] == b"b" and f"with HTTP {status}" in told[0]


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_a_refusal_is_final(status: int) -> None:
    with HostileServer(page("YQ==")) as server:
        found = HubClient(f"http://127.0.0.1:{server.port}").records("g", "s", "0", lambda _text: None)
        next(found)
        server._answer = HostileAnswer(b"HTTP/1.1 %d No\r\ncontent-length: 0\r\n\r\n" % status)
        with pytest.raises(HubError, match=f"with HTTP {status}"):
            next(found)


def test_without_following_a_hub_that_has_gone_is_an_error(start_hub: StartHub) -> None:
    hub = start_hub()
    send(hub, b"a")
    found = HubClient(hub.manager_url).records("g", "s", "0")
    next(found)
    hub.close()
    with pytest.raises(TransportError, match="cannot be reached"):
        next(found)


def test_what_a_store_has_dropped_before_it_was_read_is_told(start_hub: StartHub) -> None:
    hub = start_hub(max_store_bytes=1 << 20, compress_entries=False)
    send(hub, b"a")
    told: list[str] = []
    found = HubClient(hub.manager_url).records("g", "s", "0", told.append)
    assert next(found) is not None and next(found) is None
    first = turn_over(hub, "s")
    record: Any = next(found)
    assert record["offset"] == first > 1
    assert told == [f"up to {first - 1} requests of group 'g' are missing here: the store dropped them unread"]


def test_what_a_store_drops_of_what_was_looked_at_is_not_missing(start_hub: StartHub) -> None:
    hub = start_hub(max_store_bytes=1 << 20, compress_entries=False)
    send(hub, b"a")
    told: list[str] = []
    found = HubClient(hub.manager_url).records("g", "s", "0", told.append)
    assert next(found) is not None and next(found) is None
    for number in range(40):  # of another stream of the group
        send(hub, random.Random(number).randbytes(100_000), "t")
        assert next(found) is None
    assert first_offset(hub) > 1
    assert told == []
