"""The files of one kind of connection: certificates, key, authorities; and what is wrong with them."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from dataproxy.config.secret import Secret
from dataproxy.errors import ConfigError
from dataproxy.logs import logger

if TYPE_CHECKING:
    from dataproxy.config import ConsumerConfig, HubConfig, ProducerConfig
    from dataproxy.trust.watched import Trust

__all__ = [
    "TlsFiles",
    "hub_files",
    "hub_trust",
    "manager_files",
    "manager_trust",
    "proxy_files",
    "proxy_trust",
    "server_trust",
    "uses_tls",
]

_LOG: Final = logger("tls")
_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"
_KEY: Final = b"PRIVATE KEY-----"
_LARGEST: Final = 16 << 20
#: Stands for the system's authorities where another option would take their place.
_SYSTEM: Final = "system"


class TlsFiles(NamedTuple):
    """Hold the settings of one kind of connection.

    ``server``: for connections that are accepted; ``authorities`` are then those of its clients, empty: clients need no
    certificate.  ``prefix`` and ``authority_option`` are the names of the options, for errors.
    """

    server: bool = False
    certificate: str = ""
    key: str = ""
    password: Secret = Secret()
    authorities: str = ""
    chain: bool = True
    host: bool = True
    newest: bool = False
    prefix: str = "tls_"
    authority_option: str = "tls_ca"

    @property
    def key_file(self) -> str:
        """Return the file that has the key, empty without a certificate."""
        return self.key or self.certificate

    @property
    def folder(self) -> bool:
        """Tell whether the authorities are a directory."""
        return bool(self.authorities) and Path(self.authorities).is_dir()

    def check(self) -> None:
        """Look into the files.  Raises ConfigError (code TLS_FILES) that names the first one that is wrong.

        Logs a warning if other users of this machine can read the key.
        """
        if self.authorities and not self.folder:
            self._need(self.authorities, self.authority_option, _CERTIFICATE, "certificate of an authority")
        if not self.certificate:
            return
        self._need(self.certificate, f"{self.prefix}certificate", _CERTIFICATE, "certificate")
        if self.key:
            self._need(self.key, f"{self.prefix}key", _KEY, "key")
        elif _KEY not in self._read(self.certificate, f"{self.prefix}certificate"):
            raise self.problem(
                f"{self.prefix}certificate: {self.certificate!r} has a certificate without its key",
                f"give the file of the key as {self.prefix}key",
            )
        mode = Path(self.key_file).stat().st_mode
        if mode & (stat.S_IRGRP | stat.S_IROTH):
            _LOG.warning("other users can read the key in %s (mode %03o); chmod 600 it", self.key_file, mode & 0o777)

    def encrypted(self) -> bool:
        """Tell whether the key needs a password."""
        return b"ENCRYPTED" in self._read(self.key_file, f"{self.prefix}key")

    def signature(self) -> tuple[object, ...]:
        """Return a value that changes with the files."""
        return tuple(_state(path) for path in (self.certificate, self.key, self.authorities) if path)

    def problem(self, what: str, hint: str) -> ConfigError:
        """Return the error for files that cannot be used."""
        return ConfigError(what, code="TLS_FILES", hint=hint)

    def _need(self, path: str, option: str, mark: bytes, what: str) -> None:
        if mark not in self._read(path, option):
            raise self.problem(
                f"{option}: {path!r} has no {what} in PEM form", "check the path, and convert DER to PEM"
            )

    def _read(self, path: str, option: str) -> bytes:
        try:
            if not stat.S_ISREG(Path(path).stat().st_mode):  # a pipe would wait for its writer
                raise OSError(0, "it is not a regular file")
            with Path(path).open("rb") as file:
                return file.read(_LARGEST)
        except OSError as error:
            raise self.problem(
                f"{option}: {path!r} cannot be read: {error.strerror}", "check path and permissions"
            ) from None


def uses_tls(config: ProducerConfig) -> bool:
    """Tell whether the connections to proxies have TLS."""
    return config.tls or config.target.lower().startswith(("tls://", "tubemqs://"))


def proxy_files(config: ProducerConfig | ConsumerConfig) -> TlsFiles:
    """Return the settings of connections to proxies, or of a consumer's to masters and brokers."""
    return TlsFiles(
        certificate=config.tls_certificate,
        key=config.tls_key,
        password=config.tls_key_password,
        authorities=_authorities(config.tls_ca),
        chain=config.tls_verify != "none",
        host=config.tls_verify == "full",
        newest=config.tls_min_version == "1.3",
    )


def manager_files(config: ProducerConfig) -> TlsFiles:
    """Return the settings of connections to a Manager: its own, else those for proxies; it is always verified."""
    own = bool(config.manager_tls_certificate)
    return TlsFiles(
        certificate=config.manager_tls_certificate or config.tls_certificate,
        key=config.manager_tls_key if own else config.tls_key,
        password=config.manager_tls_key_password if own else config.tls_key_password,
        authorities=_authorities(config.manager_tls_ca or config.tls_ca),
        newest=config.tls_min_version == "1.3",
        prefix="manager_tls_" if own else "tls_",
        authority_option="manager_tls_ca" if config.manager_tls_ca else "tls_ca",
    )


def proxy_trust(config: ProducerConfig) -> Trust | None:
    """Return the settings of connections to proxies, loaded; None if they are plain.  Raises ConfigError."""
    if not uses_tls(config):
        return None
    from dataproxy.trust.watched import Trust  # needs ssl, which a program without TLS never loads

    return Trust(proxy_files(config), core=True)


def server_trust(config: ConsumerConfig) -> Trust:
    """Return the settings of connections to TubeMQ's masters and brokers, loaded.  Raises ConfigError."""
    from dataproxy.trust.watched import Trust

    return Trust(proxy_files(config), core=True)


def manager_trust(config: ProducerConfig) -> Trust:
    """Return the settings of connections to a Manager with ``https://``, loaded.  Raises ConfigError."""
    from dataproxy.trust.watched import Trust

    return Trust(manager_files(config), core=False)


def hub_files(config: HubConfig) -> TlsFiles:
    """Return the settings of connections to a hub."""
    return TlsFiles(
        server=True,
        certificate=config.tls_certificate,
        key=config.tls_key,
        password=config.tls_key_password,
        authorities=config.tls_client_ca,
        chain=bool(config.tls_client_ca),
        host=False,
        newest=config.tls_min_version == "1.3",
        authority_option="tls_client_ca",
    )


def hub_trust(config: HubConfig) -> Trust | None:
    """Return the settings of connections to a hub, loaded; None if they are plain.  Raises ConfigError."""
    if not config.tls_certificate:
        return None
    from dataproxy.trust.watched import Trust

    return Trust(hub_files(config), core=True)


def _authorities(path: str) -> str:
    return "" if path == _SYSTEM else path


def _state(path: str) -> tuple[object, ...]:
    """Return what changes when a file is replaced or written to; of a directory, for the newest file in it."""
    try:
        found = Path(path).stat()
        inside = 0
        if stat.S_ISDIR(found.st_mode):
            inside = max((one.stat().st_mtime_ns for one in Path(path).iterdir()), default=0)
    except OSError as error:
        return (path, error.errno)
    return (path, found.st_ino, found.st_size, found.st_mtime_ns, inside)
