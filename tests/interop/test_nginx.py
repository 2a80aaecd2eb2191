"""nginx as a TLS proxy in front of a hub that speaks none, as operators put it in front of a DataProxy."""

import os
import re
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import dataproxy
from dataproxy.errors import TransportError
from dataproxy.hub import Hub
from tests.support.certificates import Authority, Identity
from tests.support.waiting import eventually

SECONDS = 60.0
MODULES = os.environ.get("NGINX_MODULES", "/usr/lib/nginx/modules")
CONFIGURATION = """
load_module {modules}/ngx_stream_module.so;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log info;
worker_processes 2;
events {{ worker_connections 256; }}
stream {{
    server {{
        listen 127.0.0.1:{port} ssl;
        proxy_pass 127.0.0.1:{behind};
        ssl_certificate {identity.certificate};
        ssl_certificate_key {identity.key};
        ssl_protocols {protocols};
        ssl_session_cache shared:all:1m;
        {clients}
    }}
}}
"""


def answers(port: int) -> bool:
    """Tell whether somebody listens."""
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


class Nginx:
    """A running nginx; ``reload`` makes it read its files again."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self._process = process
        self.port = port

    def reload(self) -> None:
        """Start new workers with the files of this moment; the old ones go when their connections have ended."""
        self._process.send_signal(signal.SIGHUP)


@contextmanager
def nginx(
    folder: Path, behind: int, identity: Identity, *, protocols: str = "TLSv1.2 TLSv1.3", client_ca: Path | None = None
) -> Iterator[Nginx]:
    """Run nginx with TLS before a port of this machine."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    assert program, "nginx is not installed: make test-interop installs it"
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    clients = f"ssl_client_certificate {client_ca}; ssl_verify_client on;" if client_ca else ""
    file = folder / "nginx.conf"
    file.write_text(
        CONFIGURATION.format(
            modules=MODULES, folder=folder, port=port, behind=behind, identity=identity, protocols=protocols,
            clients=clients,
        )
    )  # fmt: skip
    words = [program, "-e", f"{folder}/first.log", "-p", str(folder), "-c", str(file)]
    process = subprocess.Popen(words)
    try:
        assert eventually(lambda: answers(port)), (folder / "error.log").read_text()
        yield Nginx(process, port)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(SECONDS)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Make an authority whose files nginx's workers may read."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.mark.parametrize("protocols", ["TLSv1.2", "TLSv1.3"])
def test_messages_arrive(authority: Authority, tmp_path: Path, protocols: str) -> None:
    sent = [b"%06d" % i + os.urandom(i % 5000) for i in range(5000)] + [os.urandom(200_000) for _ in range(20)]
    with Hub() as hub, nginx(tmp_path, hub.port, authority.identity("localhost"), protocols=protocols) as front:
        with dataproxy.Producer(
            f"tls://localhost:{front.port}", group_id="g", tls_ca=str(authority.ca), connections=4
        ) as producer:
            producer.send_batch("s", sent)
            assert producer.flush().delivered == len(sent)
        assert sorted(record.body for record in hub.records("g", "s")) == sorted(sent)


def test_client_certificates(authority: Authority, tmp_path: Path) -> None:
    own = authority.identity("client", password="with a password")
    with Hub() as hub, nginx(tmp_path, hub.port, authority.identity(), client_ca=authority.ca) as front:
        target, options = f"tls://127.0.0.1:{front.port}", {"group_id": "g", "tls_ca": str(authority.ca)}
        with dataproxy.Producer(
            target, tls_certificate=str(own.certificate), tls_key=str(own.key), tls_key_password="with a password",
            **options,
        ) as producer:  # fmt: skip
            assert producer.send("s", b"x").result(SECONDS)
        # nginx ends the handshake and closes the stream without an alert: the certificate was not asked for by name.
        producer = dataproxy.Producer(target, **options)
        producer.send_nowait("s", b"y")
        assert eventually(lambda: producer.stats().last_error is not None)
        producer.close(0)
        assert [record.body for record in hub.records("g", "s")] == [b"x"]
    assert "client sent no required SSL certificate" in (tmp_path / "error.log").read_text()


def test_reasons_are_named(authority: Authority, tmp_path: Path) -> None:
    with Hub() as hub, nginx(tmp_path, hub.port, authority.identity(days=-1), protocols="TLSv1.2") as front:
        for options, code in (({}, "TLS_EXPIRED"), ({"tls_min_version": "1.3"}, "TLS_VERSION")):
            with pytest.raises(TransportError) as caught:
                dataproxy.Producer(
                    f"tls://127.0.0.1:{front.port}", group_id="g", tls_ca=str(authority.ca), start="connect", **options
                )
            assert caught.value.code == code
        plain = dataproxy.Producer(f"tcp://127.0.0.1:{front.port}", group_id="g", linger=0.0)
        plain.send_nowait("s", b"x")
        assert eventually(lambda: "write tls://" in str(plain.stats().last_error))
        plain.close(0)


def test_a_certificate_that_is_renewed_under_load(authority: Authority, tmp_path: Path) -> None:
    """nginx reads new files, its old workers end; the producer loses nothing."""
    own = authority.identity("127.0.0.1", file="renewed")
    with Hub() as hub, nginx(tmp_path, hub.port, own) as front:
        with dataproxy.Producer(
            f"tls://127.0.0.1:{front.port}", group_id="g", tls_ca=str(authority.ca), linger=0.001
        ) as producer:
            stop, sent = threading.Event(), 0

            def load() -> None:
                nonlocal sent
                while not stop.is_set():
                    producer.send_nowait("s", b"%d" % sent)
                    sent += 1
                    if sent % 500 == 0:
                        producer.flush()

            thread = threading.Thread(target=load)
            thread.start()
            for _ in range(3):
                before = sent
                authority.identity("127.0.0.1").copy_to(own)
                front.reload()
                assert eventually(lambda before=before: sent > before + 2000)
            stop.set()
            thread.join()
            assert producer.flush().delivered == sent
        assert {int(record.body) for record in hub.records("g", "s")} == set(range(sent))
    assert len(re.findall("reconfiguring", (tmp_path / "error.log").read_text())) >= 3
