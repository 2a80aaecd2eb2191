"""Certificates for tests: an authority, and what it signs, made at run time and written to a folder."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

__all__ = ["Authority", "Identity"]

_DAY = dt.timedelta(days=1)


class Identity:
    """Files of one certificate: ``certificate`` with its chain, ``key``, ``both`` in one file."""

    def __init__(self, folder: Path, name: str, made: trustme.LeafCert, password: str = "") -> None:
        self.certificate = folder / f"{name}.pem"
        self.key = folder / f"{name}.key"
        self.both = folder / f"{name}.both"
        key = made.private_key_pem.bytes()
        if password:
            loaded = load_pem_private_key(key, None)
            key = loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode()))
        chain = b"".join(part.bytes() for part in made.cert_chain_pems)
        write(self.certificate, chain)
        write(self.key, key)
        write(self.both, key + chain)

    def copy_to(self, other: Identity) -> None:
        """Replace another identity's files by these, each by a rename."""
        for ours, theirs in ((self.certificate, other.certificate), (self.key, other.key), (self.both, other.both)):
            new = theirs.with_suffix(".new")
            write(new, ours.read_bytes())
            new.rename(theirs)


class Authority:
    """An authority: its certificate is the file ``ca``."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._folder = folder
        self._name = name
        self._ca = trustme.CA(organization_name=name)
        self.ca = folder / f"{name}.pem"
        self.ca.write_bytes(self._ca.cert_pem.bytes())

    def identity(self, *names: str, file: str = "", password: str = "", days: float = 30.0) -> Identity:
        """Make a certificate for names or addresses; it ends in so many days, negative: it has ended."""
        now = dt.datetime.now(dt.UTC)
        made = self._ca.issue_cert(
            *(names or ("127.0.0.1", "localhost")), not_before=now - 60 * _DAY, not_after=now + days * _DAY
        )
        return Identity(self._folder, file or f"{self._name}-{len(list(self._folder.iterdir()))}", made, password)


def write(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read."""
    path.touch(0o600)
    path.write_bytes(data)
