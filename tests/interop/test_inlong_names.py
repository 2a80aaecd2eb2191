"""What InLong's own classes call things: credentials, result codes, message types, attributes."""

import http.server
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import dataproxy
from dataproxy.codes import SERVER_CODES
from dataproxy.errors import DataProxyError
from dataproxy.hub.web.access import has_credentials
from dataproxy.numbers import TYPE_BINARY, TYPE_LINES
from dataproxy.producer.ingest.reserved import RESERVED_ATTRS
from dataproxy.wire import requests

#: Of InLong's released attributes: those that have no reserved name, because they only travel or divide the text.
FREE = {"SEPARATOR", "KEY_VALUE_SEPARATOR", "FROM"}


@contextmanager
def recording_manager() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Run a Manager that denies everything; give its address, and a list that all headers of requests come into."""
    headers: list[tuple[str, str]] = []

    class Denying(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            headers.extend(self.headers.items())
            self.send_error(401)

        def log_message(self, *_words: object) -> None:
            """Print nothing."""

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Denying) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", headers
        server.shutdown()


@pytest.mark.parametrize(("who", "key"), [("admin", "87haw3VYTPqK5fK0"), ("größe", "a:b&c=d é"), ("x", "y" * 200)])
def test_credentials_for_a_manager(name_driver, who, key):
    ((name, value),) = name_driver("credential", who, key)
    with recording_manager() as (url, headers), pytest.raises(DataProxyError):
        dataproxy.Producer(url, group_id="g", manager_secret_id=who, manager_secret_key=key, manager_timeout=5.0)
    assert (name.lower(), value) in {(given.lower(), text) for given, text in headers}
    assert has_credentials(value, {who: key})
    assert not has_credentials(value, {who: key + "x"})


def test_codes_have_their_names(name_driver):
    for name, code in name_driver("codes"):
        assert SERVER_CODES[code].name == name


def test_types_have_their_numbers(name_driver):
    types = dict(name_driver("types"))
    assert (types["MSG_ACK_SERVICE"], types["MSG_BIN_MULTI_BODY"]) == (TYPE_LINES, TYPE_BINARY)
    assert (types["MSG_HEARTBEAT"], types["MSG_BIN_HEARTBEAT"]) == (requests.MESSAGE, requests.BINARY)


def test_attributes_that_mean_something_are_reserved(name_driver):
    names = {value for name, value in name_driver("attributes") if name not in FREE}
    assert "groupId" in names
    assert names - RESERVED_ATTRS == set()
