"""Credentials for the Manager: from options, files that rotate, and functions; and never in a text."""

import logging
import os
import pickle
import traceback

import pytest

from dataproxy.config import load_producer_config
from dataproxy.errors import ConfigError, DiscoveryError
from dataproxy.producer.discovery.credentials import Credentials

ADMIN = {"authorization": "Basic YWRtaW46ODdoYXczVllUUHFLNWZLMA=="}
SECRET = "87haw3VYTPqK5fK0"


def config(**options):
    return load_producer_config("http://m", env={}, **options)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "secret"


def write(path, content, mode=0o600):
    """Put a file in place by a rename, as tools that rotate secrets do."""
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.chmod(mode)
    new.rename(path)


def test_without_credentials_there_is_no_header():
    found = Credentials(config())
    assert (found.header(), found.given) == ({}, False)


def test_basic_from_options():
    found = Credentials(config(manager_secret_id="admin", manager_secret_key=SECRET))
    assert (found.header(), found.given) == (ADMIN, True)


def test_basic_from_a_file_that_rotates(path):
    write(path, b"admin:" + SECRET.encode() + b"\n")
    found = Credentials(config(manager_secret_file=str(path)))
    assert found.header() == ADMIN
    write(path, b"\xef\xbb\xbfme:other\r\n\n")
    assert found.header() == {"authorization": "Basic bWU6b3RoZXI="}


def test_a_header_from_a_file_that_rotates(path):
    write(path, b"Authorization:  Bearer abc.def \n")
    found = Credentials(config(manager_header_file=str(path)))
    assert found.header() == {"authorization": "Bearer abc.def"}
    write(path, b"x-token: 5\n")
    assert found.header() == {"x-token": "5"}


@pytest.mark.parametrize(
    "content", [b"", b"s3cret", b"s3cret:", b":s3cret", b"a:s3cret:c", b"a:b\nc:s3cret", b"\xff:s3cret"]
)
def test_a_broken_replacement_keeps_the_old_one_and_says_so(path, content, caplog):
    write(path, b"admin:" + SECRET.encode())
    found = Credentials(config(manager_secret_file=str(path)))
    with caplog.at_level(logging.DEBUG):
        write(path, content)
        assert [found.header() for _ in range(3)] == [ADMIN] * 3
        path.unlink()
        assert found.header() == ADMIN
    assert [message.partition(" with credentials")[0] for message in caplog.messages] == [f"the file {str(path)!r}"] * 2
    assert "s3cret" not in caplog.text
    write(path, b"me:other")
    assert found.header() == {"authorization": "Basic bWU6b3RoZXI="}


@pytest.mark.parametrize(
    ("option", "content", "why"),
    [
        ("manager_secret_file", None, "cannot be read: No such file"),
        ("manager_secret_file", b"s3cret", "is not of the form id:key"),
        ("manager_secret_file", b"\n\n", "has 0 lines with text, not one"),
        ("manager_secret_file", b"a:s3cret" * 20_000, "has more than 65536 bytes"),
        ("manager_header_file", b"s3cret", "is not of the form name: value"),
        ("manager_header_file", b"a b: s3cret", "names no header"),
        ("manager_header_file", b"Content-Length: 5", "names content-length, which the request itself has"),
        ("manager_header_file", b"a:", "has no value that a header can carry"),
        ("manager_header_file", "a: s3cret\N{SNOWMAN}".encode(), "has no value that a header can carry"),
        ("manager_header_file", b"a: s3cret\0", "has no value that a header can carry"),
    ],
)
def test_a_file_without_credentials_stops_the_start(path, option, content, why):
    if content is not None:
        write(path, content)
    with pytest.raises(ConfigError) as caught:
        Credentials(config(**{option: str(path)}))
    assert why in str(caught.value)
    assert str(path) in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_secret_that_others_can_read_is_told(path, caplog):
    write(path, b"a:b", 0o640)
    Credentials(config(manager_secret_file=str(path)))
    assert caplog.messages == []
    write(path, b"a:b", 0o644)
    Credentials(config(manager_secret_file=str(path)))
    assert "every user may use it: chmod 600" in caplog.text


def test_a_function_is_called_for_each_question():
    tokens = iter(["Bearer 1", ("X-Token", "2")])
    found = Credentials(config(), lambda: next(tokens))
    assert [found.header(), found.header()] == [{"authorization": "Bearer 1"}, {"x-token": "2"}]
    assert found.given


def test_a_function_that_gives_the_key_is_called_by_questions_alone():
    calls = []
    found = Credentials(config(manager_secret_id="admin", manager_secret_key=lambda: calls.append(1) or SECRET))
    assert calls == []  # it may wait for a vault, and the one who makes a producer would wait without limit
    assert (found.header(), calls) == (ADMIN, [1])


@pytest.mark.parametrize("key", [lambda: "", lambda: 1 / 0])
def test_a_function_that_gives_no_key(key):
    with pytest.raises(DiscoveryError, match="the function that gives a secret") as caught:
        Credentials(config(manager_secret_id="admin", manager_secret_key=key)).header()
    assert caught.value.code == "MANAGER_SECRET"


def leaks():
    raise RuntimeError("s3cret")


@pytest.mark.parametrize(
    "call",
    [
        leaks, lambda: None, lambda: 5, lambda: "", lambda: "s3cret\r\nx: y", lambda: ("s3cret",),
        lambda: ("Host", "s3cret"), lambda: ("transfer-encoding", "s3cret"), lambda: ("Content-Encoding", "s3cret"),
        lambda: ("accept-encoding", "s3cret"),
        lambda: ("a b", "s3cret"), lambda: ("a", b"s3cret"), lambda: ("a", "b", "s3cret"), lambda: "s3cret\N{SNOWMAN}",
    ],
)  # fmt: skip
def test_a_function_that_gives_no_header(call):
    with pytest.raises(DiscoveryError, match="manager_auth gave no header") as caught:
        Credentials(config(), call).header()
    assert (caught.value.code, caught.value.retriable) == ("MANAGER_SECRET", True)
    error = caught.value
    shown = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert "s3cret" not in str(error) + repr(error) + repr(error.details) + shown


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("Host", "s3cret"), "what it returned names host, which the request itself has"),
        (("a b", "s3cret"), "what it returned names no header"),
        ("s3cret\n", "what it returned has no value that a header can carry"),
        (("a", "b", "s3cret"), "ValueError"),
    ],
)
def test_why_a_function_gives_no_header(given, words):
    with pytest.raises(DiscoveryError, match=f"manager_auth gave no header for the Manager: {words};"):
        Credentials(config(), lambda: given).header()


@pytest.mark.parametrize(
    "options",
    [
        {"manager_secret_id": "a", "manager_secret_key": "s3cret", "manager_secret_file": "/f"},
        {"manager_secret_file": "/f", "manager_header_file": "/g"},
    ],
)
def test_several_ways_are_refused(options):
    with pytest.raises(ConfigError, match="in several ways; give one of: manager_secret_id with manager_secret_key, "):
        Credentials(config(**options))
    with pytest.raises(ConfigError, match="in several ways"):
        Credentials(config(manager_secret_id="a", manager_secret_key="b"), leaks)


def test_what_is_no_function_is_refused():
    with pytest.raises(ConfigError, match="manager_auth is of type str, not a function") as caught:
        Credentials(config(), "s3cret")
    assert "s3cret" not in str(caught.value)


def test_no_text_shows_a_secret(path):
    write(path, b"admin:s3cret")
    shown = [
        repr(Credentials(config(manager_secret_file=str(path)))),
        repr(Credentials(config(manager_secret_id="admin", manager_secret_key="s3cret"))),
        repr(Credentials(config(), leaks)),
        repr(config(manager_secret_id="admin", manager_secret_key="s3cret")),
        repr(list(config(manager_secret_id="admin", manager_secret_key="s3cret").shown())),
    ]
    assert "s3cret" not in "".join(shown)
    assert shown[:3] == [
        f"Credentials(from the file {str(path)!r})", "Credentials(from manager_secret_id)",
        "Credentials(from manager_auth)",
    ]  # fmt: skip
    assert os.fsencode(path) in pickle.dumps(config(manager_secret_file=str(path)))  # a path is no secret
