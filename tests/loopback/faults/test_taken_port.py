"""A listener whose port another program takes while it is shut: a typed error, and it opens once the port is free."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request

import pytest

from dataproxy.errors import HubError
from dataproxy.hub import Hub


@pytest.fixture
def hub():
    with Hub(nodes=3, fault_api="on") as one:
        yield one


def take(listener) -> socket.socket:
    """Return a socket of somebody else that listens on a listener's port."""
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    taken.bind(("127.0.0.1", listener.port))
    taken.listen()
    return taken


def test_a_listener_says_that_its_port_is_taken_and_can_be_tried_again(hub):
    listener = hub.listeners[1]
    listener.refuse()
    with take(listener):
        for _ in range(2):
            with pytest.raises(HubError, match=f"listener 1 cannot listen on 127.0.0.1:{listener.port}") as raised:
                listener.restart()
            assert raised.value.code == "LISTEN"
            assert not listener.listens
    listener.restart()
    assert listener.listens
    socket.create_connection(("127.0.0.1", listener.port), timeout=30).close()


def test_over_http_it_is_an_answer(hub, caplog):
    listener = hub.listeners[1]
    listener.refuse()
    request = urllib.request.Request(
        f"{hub.manager_url}/hub/listeners/1/restart", b"{}",
        {"content-type": "application/json", "authorization": f"Bearer {hub.token}"}, method="POST",
    )  # fmt: skip
    with take(listener):
        with pytest.raises(urllib.error.HTTPError) as raised:
            urllib.request.urlopen(request, timeout=30)
        assert raised.value.code == 503
        assert "cannot listen" in json.loads(raised.value.read())["errMsg"]
    assert not [record for record in caplog.records if record.exc_info]
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert json.loads(answer.read())["listens"]


@pytest.mark.parametrize("clear", [False, True])
def test_a_fault_goes_all_the_same_and_opens_the_others(hub, clear):
    fault = hub.faults.add("refuse_connections")
    other = hub.faults.add("drained", listener=0)
    with take(hub.listeners[1]):
        with pytest.raises(HubError, match="listener 1 cannot listen"):
            hub.faults.clear() if clear else fault.remove()
        assert fault not in list(hub.faults)
        assert (other in list(hub.faults)) is not clear
        assert [one.listens for one in hub.listeners] == [True, False, True]
        assert fault.gone.done()
    hub.listeners[1].restart()
    assert all(one.listens for one in hub.listeners)
