"""Connections with TLS to a server of Python's own ``ssl``: what arrives, and what is said when there is none."""

import logging
import os
import ssl
import threading
import time
from pathlib import Path

import pytest

import dataproxy
from dataproxy.errors import ConfigError, DeliveryExpired, TransportError
from dataproxy.hub import Hub
from tests.support.certificates import Authority, Identity, write
from tests.support.tlsserver import tls_front
from tests.support.waiting import SECONDS, eventually


def producer(port: int, authority: Authority | None, host: str = "127.0.0.1", **options: object) -> dataproxy.Producer:
    """Open a producer for one proxy over TLS."""
    given = {"group_id": "g", "tls_ca": str(authority.ca) if authority else None, **options}
    return dataproxy.Producer(f"tls://{host}:{port}", **given)  # type: ignore[arg-type]


def bodies(hub: Hub, stream: str = "s") -> list[bytes]:
    """Return what a hub has stored."""
    return [record.body for record in hub.records("g", stream)]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_messages_arrive(hub: Hub, authority: Authority, version: ssl.TLSVersion) -> None:
    sent = [os.urandom(1 + i * 37 % 3000) for i in range(2000)] + [os.urandom(100_000) for _ in range(20)]
    with tls_front(hub.port, authority.identity("localhost"), newest=version, oldest=version) as front:
        with producer(front.port, authority, "localhost", batch_bytes="40KiB") as opened:
            for body in sent:
                opened.send_nowait("s", body)
            assert opened.flush().delivered == len(sent)
            stats = opened.stats()
        assert front.versions == [f"TLSv1.{2 if version == ssl.TLSVersion.TLSv1_2 else 3}"]
        assert front.names == ["localhost"]
    assert sorted(bodies(hub)) == sorted(sent)
    assert stats.balanced
    assert stats.last_error is None


def test_an_address_is_compared_with_the_certificate(hub: Hub, authority: Authority) -> None:
    with tls_front(hub.port, authority.identity("127.0.0.1")) as front, producer(front.port, authority) as opened:
        opened.send("s", b"x").result(SECONDS)
        assert front.names == [None]  # an address is no name


def test_a_name_for_all_proxies(hub: Hub, authority: Authority) -> None:
    identity = authority.identity("proxies.example.org")
    with tls_front(hub.port, identity) as front:
        with producer(front.port, authority, tls_server_name="proxies.example.org") as opened:
            opened.send("s", b"x").result(SECONDS)
        assert front.names == ["proxies.example.org"]


@pytest.mark.parametrize("how", ["value", "environment", "file", "function"])
def test_a_client_certificate_with_an_encrypted_key(
    hub: Hub, authority: Authority, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = authority.identity("client", password="open sesame")
    monkeypatch.setenv("OWN_PASSWORD", "open sesame")
    write(tmp_path / "password", b"open sesame\n")
    password: object = {
        "value": "open sesame",
        "environment": "env:OWN_PASSWORD",
        "file": f"file:{tmp_path / 'password'}",
        "function": lambda: "open sesame",
    }[how]
    with tls_front(hub.port, authority.identity(), client_ca=authority.ca) as front:
        options = {"tls_certificate": str(own.certificate), "tls_key": str(own.key), "tls_key_password": password}
        with producer(front.port, authority, **options) as opened:
            assert opened.send("s", b"x").result(SECONDS)


def refused(port: int, authority: Authority | None, **options: object) -> TransportError:
    """Return the error of a producer that must be connected."""
    began = time.monotonic()
    with pytest.raises(TransportError) as caught:
        producer(port, authority, start="connect", connect_timeout=SECONDS, delivery_timeout=4 * SECONDS, **options)
    assert time.monotonic() - began < SECONDS, "the reason was known, and the whole time was waited for"
    assert f"127.0.0.1:{port}: " in str(caught.value)
    return caught.value


def test_an_expired_certificate(hub: Hub, authority: Authority) -> None:
    with tls_front(hub.port, authority.identity(days=-1)) as front:
        error = refused(front.port, authority)
    assert error.code == "TLS_EXPIRED"
    assert "its certificate has expired" in str(error)


def test_a_certificate_for_another_host(hub: Hub, authority: Authority) -> None:
    with tls_front(hub.port, authority.identity("elsewhere.example.org")) as front:
        assert refused(front.port, authority).code == "TLS_WRONG_HOST"
        with producer(front.port, authority, tls_verify="chain") as opened:
            assert opened.send("s", b"x").result(SECONDS)


def test_an_unknown_authority(hub: Hub, authority: Authority, stranger: Authority) -> None:
    with tls_front(hub.port, stranger.identity()) as front:
        error = refused(front.port, authority)
        assert error.code == "TLS_UNKNOWN_CA"
        assert "tls_ca" in error.hint
        assert refused(front.port, None).code == "TLS_UNKNOWN_CA"
        with producer(front.port, None, tls_verify="none") as opened:
            assert opened.send("s", b"x").result(SECONDS)


def test_the_systems_authorities(hub: Hub, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca))
    with tls_front(hub.port, authority.identity()) as front, producer(front.port, None) as opened:
        assert opened.send("s", b"x").result(SECONDS)


def test_no_common_version(hub: Hub, authority: Authority) -> None:
    with tls_front(hub.port, authority.identity(), newest=ssl.TLSVersion.TLSv1_2) as front:
        assert refused(front.port, authority, tls_min_version="1.3").code == "TLS_VERSION"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_missing_client_certificate(hub: Hub, authority: Authority, version: ssl.TLSVersion) -> None:
    identity = authority.identity()
    with tls_front(hub.port, identity, client_ca=authority.ca, newest=version, oldest=version) as front:
        opened = producer(front.port, authority, delivery_timeout=2.0)
        delivery = opened.send("s", b"x")
        assert eventually(lambda: _last_code(opened) == "TLS_CLIENT_CERTIFICATE")
        assert "none was given" in str(opened.stats().last_error)
        with pytest.raises(DeliveryExpired, match="it wants a client certificate, and none was given"):
            delivery.result(SECONDS)
        opened.close(0)
    assert bodies(hub) == []


def _last_code(opened: dataproxy.Producer) -> str:
    last = opened.stats().last_error
    return "" if last is None else last.code


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_refused_client_certificate(
    hub: Hub, authority: Authority, stranger: Authority, version: ssl.TLSVersion
) -> None:
    own = stranger.identity("client")
    identity = authority.identity()
    with tls_front(hub.port, identity, client_ca=authority.ca, newest=version, oldest=version) as front:
        opened = producer(front.port, authority, tls_certificate=str(own.both))
        opened.send_nowait("s", b"x")
        assert eventually(lambda: _last_code(opened) == "TLS_CLIENT_CERTIFICATE")
        assert "refused the client certificate" in str(opened.stats().last_error)
        opened.close(0)


def test_a_server_without_tls(hub: Hub, authority: Authority) -> None:
    error = refused(hub.port, authority)
    assert error.code == "TLS_PLAIN"
    assert "tcp://" in error.hint


def test_a_server_with_tls_is_spoken_to_in_plain(
    hub: Hub, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    with tls_front(hub.port, authority.identity()) as front:
        opened = dataproxy.Producer(f"tcp://127.0.0.1:{front.port}", group_id="g", linger=0.0)
        opened.send_nowait("s", b"x")
        assert eventually(lambda: "write tls://" in str(opened.stats().last_error))
        opened.close(0)
    assert bodies(hub) == []


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_sessions_are_resumed(hub: Hub, authority: Authority, version: ssl.TLSVersion) -> None:
    identity = authority.identity()
    with tls_front(hub.port, identity, newest=version) as front, producer(front.port, authority) as opened:
        opened.send("s", b"1").result(SECONDS)
        front.cut()
        opened.send("s", b"2").result(SECONDS)
        assert front.resumed == [False, True]


def test_a_connection_that_is_cut_loses_nothing(hub: Hub, authority: Authority) -> None:
    total = 20_000
    with tls_front(hub.port, authority.identity()) as front, producer(front.port, authority, linger=0.001) as opened:
        stop = threading.Event()

        def cuts() -> None:
            while not stop.wait(0.05):
                front.cut()

        thread = threading.Thread(target=cuts)
        thread.start()
        for i in range(total):
            opened.send_nowait("s", b"%d" % i)
            if i % 200 == 0:
                opened.flush()
        stop.set()
        thread.join()
        assert opened.flush().delivered == total
    assert {int(body) for body in bodies(hub)} == set(range(total))


def test_full_sockets_and_dropped_messages(hub: Hub, authority: Authority) -> None:
    """A frame of which a record is made is never dropped: what arrives is whole."""
    with tls_front(hub.port, authority.identity()) as front:
        hub.faults.add("slow", bytes_per_second=8_000_000)
        opened = producer(
            front.port, authority, on_full="drop_oldest", buffer_bytes="1MiB", batch_bytes="64KiB", linger=0.0
        )
        for i in range(3000):
            opened.send_nowait("s", b"%08d" % i + bytes(10_000))
        report = opened.flush(SECONDS)
        opened.close()
    assert report.delivered + report.dropped == 3000
    assert report.delivered > 0
    stored = bodies(hub)
    assert len(stored) == report.delivered
    assert all(len(body) == 10_008 and body[8:] == bytes(10_000) for body in stored)


def test_a_forked_child_has_its_own_connections(hub: Hub, authority: Authority) -> None:
    with tls_front(hub.port, authority.identity()) as front, producer(front.port, authority) as opened:
        opened.send("s", b"parent").result(SECONDS)
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                opened.send("s", b"child").result(SECONDS)
                opened.close()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0
        opened.send("s", b"parent again").result(SECONDS)
    assert sorted(bodies(hub)) == [b"child", b"parent", b"parent again"]


@pytest.mark.parametrize(
    ("target", "options", "words"),
    [
        ("tcp://h", {"tls_ca": "/x"}, "tls_ca is given, but connections to tcp:// have no TLS"),
        ("tcp://h", {"tls_verify": "none"}, "tls_verify is given, but connections to tcp:// have no TLS"),
        ("tls://a,tcp://b", {}, "mixes tls:// and tcp://"),
        ("tls://h", {"tls_key": "/x"}, "tls_key is given without tls_certificate"),
        ("tls://h", {"tls_ca": "/nowhere/ca.pem"}, "tls_ca: '/nowhere/ca.pem' cannot be read: No such file"),
    ],
)
def test_settings_that_do_not_fit(target: str, options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words.replace("(", "\\(")):
        dataproxy.Producer(target, group_id="g", **options)  # type: ignore[arg-type]


def test_rotation_under_load(hub: Hub, authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Replaced files are used by new connections; a broken one keeps what was there, and is told once."""
    caplog.set_level(logging.INFO, "dataproxy.tls")
    folder = tmp_path / "own"
    folder.mkdir()
    first = authority.identity("client-one")
    own = Identity.__new__(Identity)
    own.certificate, own.key, own.both = folder / "c.pem", folder / "c.key", folder / "c.both"
    first.copy_to(own)
    seen: list[object] = []
    with tls_front(hub.port, authority.identity(), client_ca=authority.ca) as front:
        front.on_peer = lambda certificate: seen.append(certificate["subjectAltName"][0][1])
        with producer(
            front.port, authority, tls_certificate=str(own.certificate), tls_key=str(own.key), linger=0.001
        ) as opened:
            stop = threading.Event()
            sent = 0

            def load() -> None:
                nonlocal sent
                while not stop.is_set():
                    opened.send_nowait("s", b"%d" % sent)
                    sent += 1
                    if sent % 500 == 0:
                        opened.flush()

            thread = threading.Thread(target=load)
            thread.start()
            assert eventually(lambda: seen == ["client-one"])
            authority.identity("client-two").copy_to(own)
            assert eventually(lambda: "TLS files were read again" in caplog.text)
            front.cut()
            assert eventually(lambda: seen[-1] == "client-two")
            write(own.key, b"-----BEGIN PRIVATE KEY-----\nnonsense\n-----END PRIVATE KEY-----\n")
            assert eventually(lambda: "cannot be used, new connections use the ones before" in caplog.text)
            before = len(seen)
            front.cut()
            assert eventually(lambda: len(seen) > before)
            assert seen[-1] == "client-two"
            stop.set()
            thread.join()
            assert opened.flush().delivered == sent
    assert caplog.text.count("cannot be used, new connections use the ones before") == 1
    assert {int(body) for body in bodies(hub)} == set(range(sent))
