"""Lists in a folder: written whole, told apart, and of no harm where the file system has other ideas."""

import errno
import json
import logging
import os

import pytest

from dataproxy.producer.discovery.cache import ListCache
from dataproxy.types import Endpoint, ManagerTarget, ProxyList

TARGET = ManagerTarget("http://m:8083")
FOUND = ProxyList(7, (Endpoint("10.0.0.1", 46801), Endpoint("fe80::1", 2)), 30, 4, 65536, ("11", ""))


class Clock:
    now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def cache(tmp_path, clock):
    return ListCache(str(tmp_path / "lists" / "here"), 3600.0, clock=clock)


def only_file(tmp_path):
    (path,) = (tmp_path / "lists" / "here").iterdir()
    return path


def test_what_is_written_is_read_with_its_age(cache, clock):
    assert cache.read(TARGET, "g") is None
    cache.write(TARGET, "g", FOUND)
    clock.now += 60
    assert cache.read(TARGET, "g") == (FOUND, 60.0)
    clock.now -= 3600  # a clock that was set back
    assert cache.read(TARGET, "g") == (FOUND, 0.0)


def test_managers_groups_clusters_tenants_and_protocols_have_files_of_their_own(tmp_path, cache, clock):
    other = ListCache(str(tmp_path / "lists" / "here"), 3600.0, tenant="tenant", clock=clock)
    report = ListCache(str(tmp_path / "lists" / "here"), 3600.0, protocol="HTTP", clock=clock)
    cache.write(TARGET, "g", FOUND)
    for target, group, store in (
        (TARGET, "G", cache),
        (ManagerTarget("http://m:8084"), "g", cache),
        (TARGET._replace(cluster="g"), "g", cache),
        (TARGET, "g", other),
        (TARGET, "g", report),
    ):
        assert store.read(target, group) is None
        store.write(target, group, FOUND._replace(load=50))
        assert store.read(target, group) == (FOUND._replace(load=50), 0.0)
    assert cache.read(TARGET, "g") == (FOUND, 0.0)
    assert len(list((tmp_path / "lists" / "here").iterdir())) == 6


def test_the_order_of_managers_does_not_count(cache):
    cache.write(ManagerTarget("http://a", ("http://b",)), "g", FOUND)
    assert cache.read(ManagerTarget("http://b", ("http://a",)), "g") == (FOUND, 0.0)


@pytest.mark.parametrize("group", ["../../etc/passwd", "a/b", "\N{SNOWMAN}", "x" * 300, "..", "CON\0"])
def test_a_group_is_no_path(tmp_path, cache, group):
    cache.write(TARGET, group, FOUND)
    assert cache.read(TARGET, group) == (FOUND, 0.0)
    name = only_file(tmp_path).name
    assert name.isascii()
    assert len(name) < 100


def test_a_list_that_is_too_old_is_not_used(cache, clock, caplog):
    cache.write(TARGET, "g", FOUND)
    clock.now += 3601
    with caplog.at_level(logging.WARNING):
        assert cache.read(TARGET, "g") is None
    assert "it is 3601 s old, and cache_max_age is 3600 s" in caplog.text


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda text: text[: len(text) // 2], "truncated"),
        (lambda _: "", "truncated"),
        (lambda _: "\0" * 100, "malformed"),
        (lambda text: text.replace('"format": 1', '"format": 2'), "its format is 2, not 1"),
        (lambda text: text.replace("http://m:8083", "http://m:8084"), "another Manager, group or protocol"),
        (lambda text: text.replace('"TCP"', '"HTTP"', 1), "another Manager, group or protocol"),
        (lambda text: text.replace('"ip"', '"IP"'), "missing required field `ip`"),
        (lambda text: text.replace("1000000.0", "NaN"), "malformed"),
        (lambda text: json.dumps({**json.loads(text), "data": {"nodeList": []}}), "names no proxy"),
        (lambda text: json.dumps({**json.loads(text), "data": json.loads("[" * 50 + "]" * 50)}), "deeper than 32"),
    ],
)
def test_a_damaged_file_is_told_and_not_used(tmp_path, cache, caplog, damage, why):
    cache.write(TARGET, "g", FOUND)
    path = only_file(tmp_path)
    path.write_text(damage(path.read_text()))
    with caplog.at_level(logging.WARNING):
        assert cache.read(TARGET, "g") is None
    (message,) = caplog.messages
    assert why in message
    assert str(path) in message


def test_what_is_no_file_is_not_waited_for(tmp_path, cache, caplog):
    cache.write(TARGET, "g", FOUND)
    path = only_file(tmp_path)
    path.unlink()
    os.mkfifo(path)
    assert cache.read(TARGET, "g") is None
    assert "it is not a regular file" in caplog.text


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_a_disk_that_takes_nothing_is_told_once_and_leaves_nothing(tmp_path, cache, caplog, monkeypatch, number):
    cache.write(TARGET, "g", FOUND)

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(os, "write", refuse)
        for _ in range(3):
            cache.write(TARGET, "g", FOUND._replace(load=99))
    assert len(caplog.messages) == 1
    assert f"is not kept in cache_dir {str(tmp_path / 'lists' / 'here')!r}: {os.strerror(number)}" in caplog.text
    assert only_file(tmp_path).name.endswith(".json")
    assert cache.read(TARGET, "g") == (FOUND, 0.0)


def test_a_folder_that_cannot_be_made_is_told(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    cache = ListCache(str(tmp_path / "file" / "folder"), 60.0)
    cache.write(TARGET, "g", FOUND)
    assert "Not a directory" in caplog.text
    assert cache.read(TARGET, "g") is None
