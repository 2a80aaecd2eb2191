"""What tasks are told of a Manager, and when they ask it."""

import pickle
import time
from dataclasses import replace

import pytest

from dataproxy.config import load_producer_config
from dataproxy.producer.discovery import proxies
from dataproxy.producer.discovery.asking import Questions
from dataproxy.producer.discovery.proxies import ProxySource
from dataproxy.spark.planning.following import KnownProxies, asking, first_question
from dataproxy.spark.planning.options import read_options
from dataproxy.spark.planning.target import known_proxies
from dataproxy.types import Endpoint
from tests.support.discovery import Told

MANAGER = "http://manager:8083"
FOUND = KnownProxies("tcp://10.0.0.1:46801", MANAGER)


def config(target="tcp://10.0.0.1:46801", **options):
    return load_producer_config(target, env={}, group_id="g", **options)


def test_a_manager_that_was_asked_is_asked_again():
    found = asking(FOUND, config(linger="9ms"))
    assert (found.target, found.group_id, found.linger) == (MANAGER, "g", 0.009)


def test_proxies_that_the_user_named_are_asked_for_nowhere():
    found = known_proxies(config(), [Endpoint("10.0.0.1", 46801)])
    assert (found.target, found.manager) == ("tcp://10.0.0.1:46801", "")
    assert asking(found, config()) is None


def test_credentials_come_from_the_executors_environment_alone(monkeypatch):
    settings = read_options(
        {"target": MANAGER, "groupId": "g", "managerSecretId": "me", "managerSecretKey": "hush-hush"}
    )
    found = known_proxies(settings.config, [Endpoint("10.0.0.1", 46801)])
    tasks = settings.for_tasks(found)
    assert b"hush-hush" not in pickle.dumps(tasks)
    assert tasks.proxies.secret
    assert asking(tasks.proxies, tasks.config()) is None  # it would be refused, by each task in turn
    monkeypatch.setenv("DATAPROXY_MANAGER_SECRET_ID", "me")
    monkeypatch.setenv("DATAPROXY_MANAGER_SECRET_KEY", "hush-hush")
    asked = asking(tasks.proxies, tasks.config())
    assert (asked.target, asked.manager_secret_id, asked.manager_secret_key) == (MANAGER, "me", "hush-hush")
    assert asking(FOUND, config()).manager_secret_id == ""  # who wants none gets none


def test_credentials_in_a_file_are_read_where_the_task_runs(tmp_path):
    settings = read_options({"target": MANAGER, "groupId": "g", "managerSecretFile": str(tmp_path / "absent")})
    found = known_proxies(settings.config, [Endpoint("10.0.0.1", 46801)])
    assert found.secret
    asked = asking(found, settings.config)
    assert (asked.target, asked.manager_secret_file) == (MANAGER, str(tmp_path / "absent"))


def test_the_same_proxies_found_later_share_a_producer():
    settings = read_options({"target": MANAGER, "groupId": "g"})
    one, other = (settings.for_tasks(replace(FOUND, found_at=when)) for when in (1.0, 2.0))
    assert one == other
    assert hash(one) == hash(other)
    assert settings.for_tasks(replace(FOUND, target="tcp://10.0.0.2:46801")) != one


@pytest.mark.parametrize(
    ("age", "least", "most"), [(0, 60, 120), (60, 30, 60), (120, 0, 0), (1e9, 0, 0), (-50, 60, 120)]
)
def test_an_old_list_is_asked_for_at_once_and_a_fresh_one_when_it_gets_old(age, least, most):
    assert all(least <= first_question(120.0, age) <= most for _ in range(50))


def test_the_age_counts_from_when_the_driver_asked():
    found = known_proxies(config(MANAGER), [Endpoint("10.0.0.1", 46801)])
    assert 0 <= found.age() < 60
    assert KnownProxies("tcp://h:1", MANAGER, found_at=time.time() - 100).age() >= 100


def test_the_first_question_has_a_time_of_its_own(monkeypatch):
    told = Told()
    first = ProxySource(config(), told)
    first.begin()
    waits = []

    def wait(self, seconds):
        waits.append(seconds)
        return len(waits) == 3

    monkeypatch.setattr(proxies._Pause, "wait", wait)
    monkeypatch.setattr(proxies, "start_quiet", lambda _, body: body())
    monkeypatch.setattr(proxies.time, "monotonic", lambda: sum(waits))
    monkeypatch.setattr(Questions, "ask", lambda _, group, known: first._answers[""])
    source = ProxySource(config(MANAGER), told, inherited=first, alone=True)
    assert source.known == first.known
    source.start(7.0)
    assert waits[0] == 7.0
    assert all(108 <= wait <= 132 for wait in waits[1:])
    assert told.pictures == []  # the same proxies keep their connections
