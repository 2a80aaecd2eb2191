"""Secrets: where they are taken from, and that they are never shown."""

import copy
import os
import pickle
from pathlib import Path

import pytest

from dataproxy.config import load_producer_config
from dataproxy.config.secret import Secret
from dataproxy.errors import ConfigError


def test_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "from there")
    (tmp_path / "secret").write_text("from a file\nand more\n")
    assert Secret("plain").reveal() == "plain"
    assert Secret("value:env:X").reveal() == "env:X"
    assert Secret("env:A_SECRET").reveal() == "from there"
    assert Secret(f"file:{tmp_path / 'secret'}").reveal() == "from a file"
    assert Secret(lambda: "called").reveal() == "called"
    assert Secret(lambda: b"bytes").reveal() == "bytes"
    (tmp_path / "with a mark").write_bytes(b"\xef\xbb\xbfsecret\r\n")
    assert Secret(f"file:{tmp_path / 'with a mark'}").reveal() == "secret"
    assert (Secret(lambda: "called").asks, Secret("plain").asks) == (True, False)
    assert [bool(Secret(text)) for text in ("", "x")] == [False, True]
    assert [Secret(text).portable for text in ("x", "env:X", "file:/x")] == [False, True, True]


def test_nothing_is_shown() -> None:
    secret = Secret("hunter2")
    assert "hunter2" not in f"{secret} {secret!r} {vars(type(secret))}"
    assert (str(Secret()), repr(Secret())) == ("", "Secret('')")
    assert secret == "hunter2"
    assert secret == Secret("hunter2")
    assert secret != Secret("other")
    assert secret != 5
    assert hash(secret) == hash(Secret("hunter2"))
    assert pickle.loads(pickle.dumps(secret)) == copy.deepcopy(secret) == secret


@pytest.mark.parametrize(
    ("secret", "words"),
    [
        (Secret("env:NO_SUCH_VARIABLE_HERE"), "the environment variable 'NO_SUCH_VARIABLE_HERE', which is not set"),
        (Secret("file:/nowhere/secret"), "the file '/nowhere/secret', which fails: No such file"),
        (Secret(lambda: 1 / 0), "the function that gives a secret failed with ZeroDivisionError"),  # type: ignore[arg-type]
        (Secret(lambda: ""), "the function that gives a secret returned an empty text"),
        (Secret("value:"), "a secret is given as 'value:', which is empty"),
        (Secret("file:/dev/zero"), "the file '/dev/zero', which fails: it is not a regular file"),
        (Secret(lambda: b"\xff\xfe"), "the function that gives a secret failed with UnicodeDecodeError"),
        (Secret(lambda: None), "the function that gives a secret failed with TypeError"),  # type: ignore[arg-type]
    ],
)
def test_places_without_a_secret(secret: Secret, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        secret.reveal()
    assert caught.value.code == "SECRET"


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xff\xfesecret")
    with pytest.raises(ConfigError, match="it is not UTF-8 text"):
        Secret(f"file:{tmp_path / 'x'}").reveal()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "its first line has 0 characters"),
        ("\nsecret", "its first line has 0 characters"),
        ("x" * 70_000, "its first line has 65536 characters or more"),
    ],
)
def test_a_file_without_a_secret(tmp_path: Path, content: str, why: str) -> None:
    (tmp_path / "x").write_text(content)
    with pytest.raises(ConfigError, match=why):
        Secret(f"file:{tmp_path / 'x'}").reveal()


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="it is not a regular file") as caught:
        Secret(f"file:{tmp_path / 'pipe'}").reveal()
    assert caught.value.code == "SECRET"


def test_options_take_functions() -> None:
    config = load_producer_config("tls://h", env={}, tls_certificate="/c", tls_key_password=lambda: "called")
    assert config.tls_key_password.reveal() == "called"
    with pytest.raises(ConfigError, match=r"tls_key_password .*: the given value is of type int"):
        load_producer_config("tls://h", env={}, tls_certificate="/c", tls_key_password=5)
