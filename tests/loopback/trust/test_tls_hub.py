"""A hub with TLS, spoken to by our producer and by clients that were not written here."""

import http.client
import logging
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import pytest

import dataproxy
from dataproxy.errors import ConfigError, DiscoveryError, TransportError
from dataproxy.hub import Hub
from tests.native.probe_wire import Wire
from tests.support.certificates import Authority, Identity, write
from tests.support.tlsserver import tls_front
from tests.support.waiting import SECONDS, eventually

HEARTBEAT = 8


def secure_hub(identity: Identity, **options: object) -> Hub:
    """Start a hub with a certificate."""
    given = {"tls_certificate": str(identity.certificate), "tls_key": str(identity.key), **options}
    return Hub(**given)  # type: ignore[arg-type]


def heartbeat() -> bytes:
    """Return a heartbeat of type 8."""
    return Wire().heartbeat(HEARTBEAT, 1_700_000_000_000)


def test_both_ports_speak_tls(authority: Authority) -> None:
    with secure_hub(authority.identity(), nodes=2) as hub:
        assert hub.target.startswith("tls://127.0.0.1:")
        assert hub.manager_url.startswith("https://127.0.0.1:")
        assert hub.listeners[1].target.startswith("tls://")
        for target, options in ((hub.target, {}), (hub.manager_url, {"tls": True})):
            with dataproxy.Producer(target, group_id="g", tls_ca=str(authority.ca), **options) as producer:
                producer.send_batch("s", [bytes(100_000)] * 50)
                assert producer.flush().delivered == 50
        assert hub.counts()["g", "s"].records == 100
        assert hub.stats()["closed"]["tls"] == 0


def test_reports_over_https(authority: Authority) -> None:
    """By our producer and by the library's client."""
    with secure_hub(authority.identity(), nodes=2) as hub:
        assert hub.http_target.startswith("tls://127.0.0.1:")
        for target, options in ((hub.http_target, {}), (hub.manager_url, {"tls": True})):
            given = {"tls_ca": str(authority.ca), "protocol": "http", **options}
            with dataproxy.Producer(target, group_id="g", **given) as producer:  # type: ignore[arg-type]
                producer.send_batch("s", [b"x" * 10_000] * 50)
                assert producer.flush().delivered == 50
        trusting = ssl.create_default_context(cafile=str(authority.ca))
        client = http.client.HTTPSConnection("127.0.0.1", hub.http_port, context=trusting, timeout=SECONDS)
        client.request("GET", "/dataproxy/message?groupId=g&streamId=s&body=y")
        assert client.getresponse().read() == b'{"code":"0","msg":"Ok"}'
        client.close()
        assert sum(record.body.count(b"\n") + 1 for record in hub.records("g", "s")) == 101


def test_large_and_many_requests(authority: Authority) -> None:
    """Frames of all sizes around a record's, in one connection, with answers that wait."""
    sent = [b"%06d" % size + bytes(size) for size in range(0, 70_000, 331)] * 5
    with secure_hub(authority.identity(), threads=2) as hub:
        with dataproxy.Producer(
            hub.target, group_id="g", tls_ca=str(authority.ca), linger=0.0, batch_messages=3, executors=2
        ) as producer:
            producer.send_batch("s", sent)
            assert producer.flush().delivered == len(sent)
        assert sorted(record.body for record in hub.records("g", "s")) == sorted(sent)


def test_faults_happen_to_encrypted_connections_too(authority: Authority) -> None:
    with secure_hub(authority.identity()) as hub:
        hub.faults.add("reset", at_byte=20_001, times=3)
        hub.faults.add("close", stage="after_store", nth=5)
        hub.faults.add("slice", times=50)
        hub.faults.add("slow", bytes_per_second=2_000_001)
        with dataproxy.Producer(hub.target, group_id="g", tls_ca=str(authority.ca), batch_bytes="4KiB") as producer:
            producer.send_batch("s", [b"%05d" % i + bytes(500) for i in range(1000)])
            assert producer.flush().delivered == 1000
        assert len({record.body for record in hub.records("g", "s")}) == 1000


def test_clients_need_a_certificate(authority: Authority, stranger: Authority) -> None:
    with secure_hub(authority.identity(), tls_client_ca=str(authority.ca)) as hub:
        own, other = authority.identity("client"), stranger.identity("client")
        options = {"group_id": "g", "tls_ca": str(authority.ca)}
        with dataproxy.Producer(hub.manager_url, tls=True, tls_certificate=str(own.both), **options) as producer:  # type: ignore[arg-type]
            assert producer.send("s", b"x").result(SECONDS)
        for files in ({}, {"tls_certificate": str(other.both)}):
            with pytest.raises(DiscoveryError) as caught:
                dataproxy.Producer(hub.manager_url, tls=True, **options, **files)  # type: ignore[arg-type]
            assert caught.value.code in ("TLS", "TLS_CLIENT_CERTIFICATE", "DISCOVERY")  # asyncio sends no alert
        assert hub.counts()["g", "s"].records == 1


def test_the_managers_certificate_is_checked(authority: Authority, stranger: Authority) -> None:
    with secure_hub(authority.identity()) as hub:
        with pytest.raises(DiscoveryError) as caught:
            dataproxy.Producer(hub.manager_url, group_id="g", tls=True, tls_ca=str(stranger.ca))
        assert caught.value.code == "TLS_UNKNOWN_CA"
        assert "manager_tls_ca" in caught.value.hint
        with dataproxy.Producer(
            hub.manager_url, group_id="g", tls=True, tls_verify="none", manager_tls_ca=str(authority.ca)
        ) as producer:
            assert producer.send("s", b"x").result(SECONDS)
    with secure_hub(authority.identity("elsewhere.example.org")) as hub:
        with pytest.raises(DiscoveryError) as caught:
            dataproxy.Producer(hub.manager_url, group_id="g", tls=True, tls_ca=str(authority.ca))
        assert caught.value.code == "TLS_WRONG_HOST"
    with secure_hub(authority.identity(days=-1)) as hub:
        with pytest.raises(DiscoveryError) as caught:
            dataproxy.Producer(hub.manager_url, group_id="g", tls=True, tls_ca=str(authority.ca))
        assert caught.value.code == "TLS_EXPIRED"
    with Hub() as hub:
        with pytest.raises(DiscoveryError) as caught:
            dataproxy.Producer(hub.manager_url.replace("http://", "https://"), group_id="g", tls=True)
        assert caught.value.code == "TLS_PLAIN"


def test_a_manager_that_wants_a_certificate(hub: Hub, authority: Authority, stranger: Authority) -> None:
    with tls_front(hub.manager_port, authority.identity(), client_ca=authority.ca) as front:
        url, options = f"https://127.0.0.1:{front.port}", {"group_id": "g", "tls_ca": str(authority.ca)}
        for files in ({}, {"manager_tls_certificate": str(stranger.identity().both)}):
            with pytest.raises(DiscoveryError) as caught:
                dataproxy.Producer(url, **options, **files)  # type: ignore[arg-type]
            # With TLS 1.3 the server may be gone before its alert was read; the hint says the same.
            assert caught.value.code == "TLS_CLIENT_CERTIFICATE" or "client certificate" in caught.value.hint
        own = str(authority.identity("client").both)
        with dataproxy.Producer(url, manager_tls_certificate=own, **options) as producer:  # type: ignore[arg-type]
            assert producer.send("s", b"x").result(SECONDS)


def test_a_plain_producer_is_told(authority: Authority) -> None:
    with secure_hub(authority.identity()) as hub:
        producer = dataproxy.Producer(hub.target.replace("tls://", "tcp://"), group_id="g", linger=0.0)
        producer.send_nowait("s", b"x")
        assert eventually(lambda: "write tls://" in str(producer.stats().last_error))
        producer.close(0)
        assert hub.stats()["closed"]["tls"] >= 1
        assert hub.counts() == {}


def test_pythons_client(authority: Authority) -> None:
    """A heartbeat is answered, byte by byte too; the end of the stream is told by TLS."""
    context = ssl.create_default_context(cafile=str(authority.ca))
    with secure_hub(authority.identity("localhost")) as hub:
        peer = context.wrap_socket(socket.create_connection(("127.0.0.1", hub.port)), server_hostname="localhost")
        assert peer.version() == "TLSv1.3"
        peer.sendall(heartbeat())
        answer = peer.recv(100)
        assert answer[4] & 0x1F == 8
        for byte in heartbeat():
            peer.sendall(bytes([byte]))
        assert peer.recv(100) == answer
        hub.close()
        assert peer.recv(100) == b""
        peer.close()


def test_no_version_below_1_2(authority: Authority) -> None:
    context = ssl.create_default_context(cafile=str(authority.ca))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with secure_hub(authority.identity(), tls_min_version="1.3") as hub:
        for port, words in ((hub.port, "VERSION"), (hub.manager_port, "EOF|VERSION")):  # asyncio sends no alert
            with socket.create_connection(("127.0.0.1", port)) as plain, pytest.raises(ssl.SSLError, match=words):
                context.wrap_socket(plain, server_hostname="127.0.0.1")
        with pytest.raises(TransportError) as caught:
            dataproxy.Producer(
                hub.target.replace("127.0.0.1", "localhost"), group_id="g", tls_ca=str(authority.ca), start="connect",
                tls_verify="full", tls_server_name="other.example.org",
            )  # fmt: skip
        assert caught.value.code == "TLS_WRONG_HOST"


def test_openssls_client(authority: Authority) -> None:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("the program openssl is not installed")
    with secure_hub(authority.identity("localhost")) as hub:
        done = subprocess.run(
            [program, "s_client", "-connect", f"127.0.0.1:{hub.port}", "-CAfile", str(authority.ca),
             "-verify_return_error", "-servername", "localhost", "-ign_eof", "-quiet"],
            input=heartbeat() + b"\x7f\xff\xff\xff",  # a frame that is too large ends the connection
            capture_output=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        assert b"\x08" in done.stdout, done.stderr


def test_replaced_files_are_used(authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """New connections see the new certificate at both ports; a broken one is told once, and the old one stays."""
    caplog.set_level(logging.INFO, "dataproxy.tls")
    own = Identity.__new__(Identity)
    own.certificate, own.key, own.both = tmp_path / "h.pem", tmp_path / "h.key", tmp_path / "h.both"
    authority.identity("127.0.0.1", "one.example.org").copy_to(own)
    context = ssl.create_default_context(cafile=str(authority.ca))

    def name_at(port: int) -> str:
        with context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="127.0.0.1") as peer:
            certificate = peer.getpeercert()
            assert certificate is not None
            return str(next(value for kind, value in certificate["subjectAltName"] if kind == "DNS"))

    with secure_hub(own) as hub, dataproxy.Producer(hub.target, group_id="g", tls_ca=str(authority.ca)) as producer:
        producer.send("s", b"1").result(SECONDS)
        assert name_at(hub.port) == name_at(hub.manager_port) == "one.example.org"
        authority.identity("127.0.0.1", "two.example.org").copy_to(own)
        assert eventually(lambda: name_at(hub.port) == name_at(hub.manager_port) == "two.example.org")
        producer.send("s", b"2").result(SECONDS)
        assert producer.stats().connections[0].losses == 0
        write(own.certificate, b"-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")
        assert eventually(lambda: "cannot be used" in caplog.text)
        assert name_at(hub.port) == name_at(hub.manager_port) == "two.example.org"
    assert caplog.text.count("changed TLS files cannot be used") == 1


def test_pages_over_https(authority: Authority) -> None:
    context = ssl.create_default_context(cafile=str(authority.ca))
    with secure_hub(authority.identity()) as hub:
        page = http.client.HTTPSConnection("127.0.0.1", hub.manager_port, context=context, timeout=SECONDS)
        page.request("GET", "/healthz")
        assert page.getresponse().status == 200
        page.close()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tls_key": "/x"}, "tls_key is given without tls_certificate"),
        ({"tls_client_ca": "/x"}, "tls_client_ca is given without tls_certificate"),
        ({"tls_certificate": "/nowhere/h.pem"}, "tls_certificate: '/nowhere/h.pem' cannot be read"),
    ],
)
def test_settings_that_do_not_fit(options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Hub(**options)  # type: ignore[arg-type]
