"""OpenSSL: its own server program as a proxy, and that a process has one OpenSSL alone."""

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.loopback.trust.test_tls_proxies import producer
from tests.native.probe_wire import Server
from tests.support.certificates import Authority, Identity
from tests.support.waiting import eventually

SECONDS = 30.0
#: A child sends one message over TLS, and prints which files of OpenSSL it has loaded.
ONE_OPENSSL = """
import sys
from pathlib import Path
import dataproxy
with dataproxy.Producer(sys.argv[1], group_id="g", tls_ca=sys.argv[2]) as producer:
    producer.send("s", b"x").result(30.0)
    maps = Path("/proc/self/maps").read_text().splitlines()
print(*sorted({line.split()[-1] for line in maps if "/libssl" in line or "/libcrypto" in line}), sep="\\n")
"""
#: A child whose interpreter says that its OpenSSL is another library.
ANOTHER_LIBRARY = """
import _ssl
_ssl.OPENSSL_VERSION = "LibreSSL 3.8.2"
import dataproxy
try:
    dataproxy.Producer("tls://127.0.0.1:1", group_id="g", start="lazy")
except dataproxy.errors.ConfigError as error:
    print(error.code, error)
"""


def child(text: str, *words: str) -> str:
    """Run a program of Python and return what it prints."""
    command = [sys.executable, "-c", text, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=4 * SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def openssls_server(identity: Identity, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run ``openssl s_server``: what a client sends comes out of it, what is written to it goes to the client."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("the program openssl is not installed")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    command = [program, "s_server", "-quiet", "-accept", f"127.0.0.1:{port}", "-cert", str(identity.certificate),
               "-key", str(identity.key), *words]  # fmt: skip
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield process, port
    finally:
        process.kill()
        process.communicate()


def answer_one(process: subprocess.Popen[bytes]) -> bytes:
    """Read one frame as a proxy does, acknowledge it, and return it."""
    assert process.stdout is not None
    assert process.stdin is not None
    head = process.stdout.read(4)
    frame = head + process.stdout.read(int.from_bytes(head, "big"))
    process.stdin.write(Server().serve(frame, 0)["reply"])
    process.stdin.flush()
    return frame


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_openssls_server(authority: Authority, version: str) -> None:
    """A frame of several records arrives, and the answer is read; both sides show a certificate."""
    own = authority.identity("client")
    words = (version, "-Verify", "2", "-verify_return_error", "-CAfile", str(authority.ca))
    body = bytes(range(256)) * 400
    with openssls_server(authority.identity(), *words) as (process, port):
        options = {"tls_certificate": str(own.both), "connections": 1, "compression": "none"}
        with producer(port, authority, **options) as opened:
            delivery = opened.send("s", body)
            assert body in answer_one(process)
            assert delivery.result(SECONDS)


def test_openssls_server_refuses_a_stranger(authority: Authority, stranger: Authority) -> None:
    words = ("-Verify", "2", "-verify_return_error", "-CAfile", str(authority.ca))
    with openssls_server(authority.identity(), *words) as (_, port):
        opened = producer(port, authority, tls_certificate=str(stranger.identity("client").both), connections=1)

        def code() -> str:
            last = opened.stats().last_error
            return "" if last is None else last.code

        assert eventually(lambda: code() == "TLS_CLIENT_CERTIFICATE")
        opened.close(0)


def test_a_process_has_one_openssl(authority: Authority) -> None:
    with openssls_server(authority.identity()) as (process, port):
        command = [sys.executable, "-c", ONE_OPENSSL, f"tls://127.0.0.1:{port}", str(authority.ca)]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        answer_one(process)
        out, err = running.communicate(timeout=4 * SECONDS)
    assert running.returncode == 0, err
    files = out.split()
    assert len([file for file in files if "/libssl" in file]) == 1
    assert len([file for file in files if "/libcrypto" in file]) == 1


def test_another_library_than_openssl_is_named() -> None:
    said = child(ANOTHER_LIBRARY)
    assert said.startswith("TLS_MISSING ")
    assert "this Python has LibreSSL 3.8.2" in said
