"""Finding the proxies of a write."""

import socket

import pytest

from dataproxy.config import load_producer_config
from dataproxy.errors import ConfigError, TransportError
from dataproxy.producer.discovery import managers
from dataproxy.spark.planning import target
from dataproxy.types import Endpoint, ProxyList


def config(text, **options):
    return load_producer_config(text, env={}, **options)


class FakeManager:
    """Answers for one group and remembers that it was closed."""

    closed = 0

    def __init__(self, where, settings, trust=None, *, credentials):
        assert where.url == "http://manager:8083"
        assert not credentials.given

    def fetch(self, group):
        assert group == "g"
        return ProxyList(1, (Endpoint("10.0.0.1", 46801), Endpoint("fe80::1", 46802)), 20, 0, 0)

    def close(self):
        FakeManager.closed += 1


def test_a_static_target_is_taken_as_it_is():
    found = target.find_proxies(config("tcp://a:1,[::1]:2,b"))
    assert found == (Endpoint("a", 1), Endpoint("::1", 2), Endpoint("b", 46801))
    assert target.static_target(found) == "tcp://a:1,[::1]:2,b:46801"


def test_a_manager_is_asked_for_the_group(monkeypatch):
    monkeypatch.setattr(managers, "ManagerClient", FakeManager)
    found = target.find_proxies(config("http://manager:8083", group_id="g"))
    assert target.static_target(found) == "tcp://10.0.0.1:46801,[fe80::1]:46802"
    assert FakeManager.closed == 1


def test_a_cluster_is_asked_for_whatever_the_groups(monkeypatch):
    asked = []

    class ByCluster(FakeManager):
        def fetch(self, group):
            asked.append(group)
            return super().fetch("g")

    monkeypatch.setattr(managers, "ManagerClient", ByCluster)
    found = target.find_proxies(config("http://manager:8083/getIpListByClusterName/west"))
    assert (len(found), asked) == (2, [""])


def test_a_file_and_a_name(tmp_path):
    (tmp_path / "list").write_text("a:1\nb\n")
    assert target.find_proxies(config(f"file://{tmp_path}/list")) == (Endpoint("a", 1), Endpoint("b", 46801))
    assert target.find_proxies(config(f"file://{tmp_path}/list", protocol="http")) == (Endpoint("a", 1),)
    assert target.find_proxies(config("dns://proxies.example:7")) == (Endpoint("proxies.example", 7),)


def test_a_manager_without_a_group_is_not_asked(monkeypatch):
    monkeypatch.setattr(managers, "ManagerClient", None)
    with pytest.raises(ConfigError, match="the groups are in a column"):
        target.find_proxies(config("http://manager:8083"))


def test_a_static_target_reads_back_as_itself():
    found = target.find_proxies(config("tcp://a:1,[::1]:2"))
    assert target.find_proxies(config(target.static_target(found))) == found


def test_an_unresolvable_name_is_named(monkeypatch):
    def refuse(address, timeout):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "create_connection", refuse)
    with pytest.raises(TransportError, match="nowhere:1: Name or service not known"):
        target.check_connection([Endpoint("nowhere", 1)], 60.0, must=True)


def test_one_that_never_answers_is_given_up(monkeypatch):
    monkeypatch.setattr(target, "side_by_side", lambda *given: {})
    assert target.unreachable([Endpoint("a", 1)], 5.0, 0.25) == {Endpoint("a", 1): "no answer within 0.25 s"}
