"""Servers that are no good proxies, or none at all: each answers in its own way."""

import contextlib
import socket
import ssl
import threading
from pathlib import Path

__all__ = ["CERTIFICATE", "answering", "closing", "nobody", "tls_context"]

CERTIFICATE = Path(__file__).parents[2] / "data" / "tls" / "loopback.pem"
SECONDS = 30.0


@contextlib.contextmanager
def nobody():
    """Yield a target whose port is taken and not listened on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"tcp://127.0.0.1:{taken.getsockname()[1]}"


@contextlib.contextmanager
def answering(talk, *, tls=None):
    """Yield the target of a server that calls ``talk(socket)`` for each connection, on a thread, then closes it."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads = []

    def serve(sock):
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.enter_context(sock).settimeout(SECONDS)
            talk(stack.enter_context(tls.wrap_socket(sock, server_side=True)) if tls is not None else sock)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                sock, _ = listener.accept()
                threads.append(threading.Thread(target=serve, args=(sock,), daemon=True))
                threads[-1].start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield f"tcp://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        accepting.join(SECONDS)
        for thread in threads:
            thread.join(SECONDS)


def closing(sock):
    """Close the connection at once."""


def tls_context():
    """Return a server's context with the certificate for 127.0.0.1."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context
