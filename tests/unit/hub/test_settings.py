"""What the hub makes of its options, without a socket."""

import pytest

from dataproxy.config import load_hub_config
from dataproxy.errors import ConfigError, HubError
from dataproxy.hub.addresses import addresses_of
from dataproxy.hub.listeners import listen_error
from dataproxy.hub.nodes import checked_load
from dataproxy.hub.server import _store_limit


@pytest.mark.parametrize(("text", "load"), [("auto", "queue"), ("unknown", None), ("0", 0), ("65534", 65534)])
def test_loads(text, load):
    assert checked_load(text) == load


@pytest.mark.parametrize("text", ["", "-1", "65535", "1.5", "full", "٣"])
def test_wrong_loads(text):
    with pytest.raises(ConfigError, match="65534"):
        checked_load(text)


def test_a_store_in_memory_is_bounded_by_default():
    assert _store_limit(load_hub_config(env={})) <= 1 << 30
    assert _store_limit(load_hub_config(env={}, max_store_bytes="3GiB")) == 3 << 30
    config = load_hub_config("somewhere", env={})
    assert _store_limit(config) == config.max_store_bytes


def test_hosts_become_addresses():
    assert addresses_of("127.0.0.1") == ("127.0.0.1",)
    assert addresses_of("::1") == ("::1",)
    assert set(addresses_of("localhost")) <= {"127.0.0.1", "::1"}
    with pytest.raises(HubError, match="cannot be resolved"):
        addresses_of("no such host")


def test_listen_errors_carry_facts():
    error = listen_error("the server", "::1", 80, PermissionError(13, "Permission denied"))
    assert str(error).startswith("the server cannot listen on [::1]:80: Permission denied")
    assert dict(error.details) == {"host": "::1", "port": 80, "errno": 13}
    assert error.hint
