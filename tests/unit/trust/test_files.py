"""Files of TLS that are wrong: each is named, with the option and the way out, before anything is opened."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from dataproxy.config import load_hub_config, load_producer_config
from dataproxy.config.secret import Secret
from dataproxy.errors import ConfigError
from dataproxy.trust import watched
from dataproxy.trust.context import ssl_context
from dataproxy.trust.files import TlsFiles, hub_files, manager_files, proxy_files, uses_tls
from dataproxy.trust.watched import Trust
from tests.support.certificates import Authority, write


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Make an authority for this file."""
    return Authority(tmp_path_factory.mktemp("authority"))


def problem(files: TlsFiles) -> ConfigError:
    """Return the error of files that cannot be used."""
    with pytest.raises(ConfigError) as caught:
        ssl_context(files)
    return caught.value


def test_a_certificate_without_its_key(authority: Authority) -> None:
    error = problem(TlsFiles(certificate=str(authority.identity().certificate)))
    assert error.code == "TLS_FILES"
    assert "has a certificate without its key" in str(error)
    assert "tls_key" in error.hint


def test_a_key_of_another_certificate(authority: Authority) -> None:
    one, two = authority.identity(), authority.identity()
    assert "does not belong" in str(problem(TlsFiles(certificate=str(one.certificate), key=str(two.key))))


def test_a_file_of_authorities_without_a_certificate(authority: Authority, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    error = problem(TlsFiles(authorities=str(empty)))
    assert f"tls_ca: {str(empty)!r} has no certificate of an authority in PEM form" in str(error)
    broken = tmp_path / "broken.pem"
    broken.write_text("-----BEGIN CERTIFICATE-----\n@@@\n-----END CERTIFICATE-----\n")
    assert "has no certificate that can be read" in str(problem(TlsFiles(authorities=str(broken))))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for files in (TlsFiles(authorities=str(tmp_path / "pipe")), TlsFiles(certificate=str(tmp_path / "pipe"))):
        assert "cannot be read: it is not a regular file" in str(problem(files))


def test_a_directory_of_authorities(authority: Authority, tmp_path: Path) -> None:
    assert ssl_context(TlsFiles(authorities=str(tmp_path)))


def test_passwords(authority: Authority) -> None:
    own = authority.identity(password="right horse")
    files = TlsFiles(certificate=str(own.certificate), key=str(own.key))
    assert "is encrypted, and there is no password" in str(problem(files))
    wrong = problem(files._replace(password=Secret("wrong horse")))
    assert "wrong password" in str(wrong)
    assert "wrong horse" not in str(wrong)
    missing = problem(files._replace(password=Secret("env:NO_SUCH_VARIABLE_HERE")))
    assert missing.code == "SECRET"
    assert "NO_SUCH_VARIABLE_HERE" in str(missing)
    assert ssl_context(files._replace(password=Secret(lambda: b"right horse")))


def test_a_key_that_others_can_read(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    own = authority.identity()
    own.key.chmod(0o640)
    with caplog.at_level(logging.WARNING, "dataproxy.tls"):
        assert ssl_context(TlsFiles(certificate=str(own.certificate), key=str(own.key)))
    assert f"other users can read the key in {own.key} (mode 640)" in caplog.text


def test_files_that_are_not_there(tmp_path: Path) -> None:
    error = problem(TlsFiles(certificate=str(tmp_path / "none.pem"), prefix="manager_tls_"))
    assert "manager_tls_certificate: " in str(error)
    assert "No such file" in str(error)


def test_settings_by_options() -> None:
    config = load_producer_config(
        "tls://h", env={}, tls_ca="/ca", tls_certificate="/c", tls_key="/k", tls_key_password="p", tls_min_version="1.3"
    )
    files = proxy_files(config)
    assert files[:5] == (False, "/c", "/k", Secret("p"), "/ca")
    assert (files.chain, files.host, files.newest) == (True, True, True)
    assert manager_files(config)[:5] == files[:5]
    other = config.replace(manager_tls_ca="system", manager_tls_certificate="/mc", manager_tls_key="/mk")
    assert manager_files(other)[:5] == (False, "/mc", "/mk", Secret(), "")
    assert manager_files(other).prefix == "manager_tls_"
    loose = proxy_files(load_producer_config("tls://h", env={}, tls_verify="none"))
    assert (loose.chain, loose.host) == (False, False)
    assert uses_tls(config)
    assert uses_tls(load_producer_config("http://h", env={}, tls=True))
    assert not uses_tls(load_producer_config("tcp://h", env={}))
    hub = hub_files(load_hub_config(env={}, tls_certificate="/c", tls_client_ca="/ca"))
    assert (hub.server, hub.chain, hub.authorities, hub.key_file) == (True, True, "/ca", "/c")


def test_a_change_is_used_within_five_seconds() -> None:
    looks = 2  # after the one that may have come just before the change: one sees it, the next one that it is whole
    assert looks * watched._LOOK_SECONDS < 5.0


def test_changed_files(authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A change is used when two looks have seen it; a broken one is told once, and the settings before stay."""
    caplog.set_level(logging.INFO, "dataproxy.tls")
    ca = tmp_path / "ca.pem"
    ca.write_bytes(authority.ca.read_bytes())
    trust = Trust(TlsFiles(authorities=str(ca)), core=True)
    assert trust.contexts is not None
    first = trust.context
    assert not trust.look()
    write(ca, authority.ca.read_bytes() + b"\n")
    os.utime(ca, ns=(1, 1))
    assert not trust.look()
    assert trust.look()
    assert trust.context is not first
    assert trust.contexts.loads == 2
    write(ca, b"")
    for _ in range(4):
        assert not trust.look()
    assert trust.contexts.loads == 2
    assert caplog.text.count("changed TLS files cannot be used") == 1
    write(ca, authority.ca.read_bytes())
    trust.look()
    assert trust.look()
    assert str(ca) in repr(trust)
