"""Several Managers: one that answers is enough, and where none does the constructor says how to go on."""

import socket

import pytest

import dataproxy
from dataproxy.config import load_producer_config
from dataproxy.errors import DiscoveryError
from dataproxy.hub import Hub
from dataproxy.producer.discovery.managers import ask_managers
from dataproxy.producer.discovery.targets import parse_target

LAZY = 'start="lazy"'


@pytest.fixture
def absent():
    """Return the address of a Manager that is not there."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{unused.getsockname()[1]}"


def ask(target):
    return ask_managers(parse_target(target), load_producer_config(target, env={}, group_id="g"))


@pytest.mark.parametrize("form", ["text", "urls", "list"])
@pytest.mark.parametrize("first", ["absent", "there"])
def test_one_manager_that_answers_is_enough(absent, first, form):
    with Hub() as hub:
        there = hub.manager_url.removeprefix("http://")
        hosts = [absent, there] if first == "absent" else [there, absent]
        urls = [f"http://{host}" for host in hosts]
        target = {"text": f"http://{','.join(hosts)}", "urls": ",".join(urls), "list": urls}[form]
        with dataproxy.Producer(target, group_id="g") as producer:
            assert producer.send("s", b"x").result(30)


def test_the_one_that_answered_is_asked_first_the_next_time(absent, caplog):
    with Hub() as hub, caplog.at_level("WARNING", logger="dataproxy.route"):
        found, target = ask(f"http://{absent},{hub.manager_url.removeprefix('http://')}")
        assert [str(one) for one in found.endpoints] == [hub.listeners[0].address]
        assert target == (hub.manager_url, (f"http://{absent}",), "")
        (warning,) = caplog.messages
        assert warning.startswith(f"the Manager at http://{absent} cannot be reached: ")
        assert warning.endswith(f"; the Manager at {hub.manager_url} answered")
        ask(str(target))
        assert len(caplog.messages) == 1


def test_an_answer_about_the_group_is_an_answer(absent):
    with Hub() as first, Hub() as second:
        first.manager.denied = frozenset({"g"})
        hosts = [one.manager_url.removeprefix("http://") for one in (first, second)]
        with pytest.raises(DiscoveryError, match="refused group 'g'") as caught:
            ask(f"http://{absent},{','.join(hosts)}")
        assert caught.value.code == "GROUP_REFUSED"


@pytest.mark.parametrize("start", ["resolve", "connect"])
def test_where_none_answers_the_error_says_how_to_start_nevertheless(absent, start):
    with pytest.raises(DiscoveryError, match="cannot be reached: Connection refused") as caught:
        dataproxy.Producer(f"http://{absent}", group_id="g", start=start)
    assert (caught.value.code, caught.value.retriable) == ("DISCOVERY", True)
    assert caught.value.hint.endswith(
        f"; with {LAZY} a producer starts without proxies and looks for them in the background"
    )
    with pytest.raises(DiscoveryError, match="none of 2 Managers answered: the Manager at ") as caught:
        dataproxy.Producer(f"http://{absent},{absent.replace('127.0.0.1', 'localhost')}", group_id="g", start=start)
    assert LAZY in str(caught.value)
    assert len(caught.value.details["urls"]) == 2
    dataproxy.Producer(f"http://{absent}", group_id="g", start="lazy").close()


def test_a_name_that_nobody_knows_has_the_same_hint():
    with pytest.raises(DiscoveryError, match="no address found") as caught:
        dataproxy.Producer("tcp://nowhere.invalid", group_id="g")
    assert LAZY in caught.value.hint


def test_what_waiting_does_not_mend_has_not():
    with Hub(secret_id="me", secret_key="s3cr3t-w0rd") as hub:
        with pytest.raises(DiscoveryError, match="refused the request") as caught:
            dataproxy.Producer(hub.manager_url, group_id="g")
        assert caught.value.code == "MANAGER_REFUSED"
        assert LAZY not in caught.value.hint
