"""Settings for Python's own ``ssl`` from files; every mistake in the files is found here, and named."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from dataproxy.errors import ConfigError

if TYPE_CHECKING:
    from dataproxy.trust.files import TlsFiles

__all__ = ["ssl_context"]


def ssl_context(files: TlsFiles) -> ssl.SSLContext:
    """Return settings for connections.  Raises ConfigError with the code TLS_FILES, or SECRET for a password."""
    files.check()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if files.server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3 if files.newest else ssl.TLSVersion.TLSv1_2
    if not files.server:
        context.check_hostname = files.host and files.chain
    context.verify_mode = ssl.CERT_REQUIRED if files.chain else ssl.CERT_NONE
    if files.authorities:
        _trust(context, files)
    elif files.chain:
        context.load_default_certs()
    if files.certificate:
        _identify(context, files)
    return context


def _trust(context: ssl.SSLContext, files: TlsFiles) -> None:
    path = files.authorities
    try:
        context.load_verify_locations(None if files.folder else path, path if files.folder else None)
    except (ssl.SSLError, OSError) as error:
        raise files.problem(
            f"{files.authority_option}: {path!r} has no certificate that can be read: {_reason(error)}",
            "give a PEM file with the certificates of the authorities",
        ) from None


def _identify(context: ssl.SSLContext, files: TlsFiles) -> None:
    encrypted = files.encrypted()
    if encrypted and not files.password:
        raise files.problem(
            f"{files.prefix}key: the key in {files.key_file!r} is encrypted, and there is no password",
            f"give it as {files.prefix}key_password",
        )
    try:
        context.load_cert_chain(files.certificate, files.key_file, files.password.reveal if encrypted else "")
        return
    except ConfigError:
        raise
    except (ssl.SSLError, OSError, ValueError) as error:
        reason = _reason(error)
    if "KEY_VALUES_MISMATCH" in reason:
        raise files.problem(
            f"{files.prefix}key: the key in {files.key_file!r} does not belong to the certificate in"
            f" {files.certificate!r}",
            "give the key with which the certificate was requested",
        )
    if encrypted:
        raise files.problem(
            f"{files.prefix}key_password: the key in {files.key_file!r} cannot be decrypted: wrong password",
            "check the password, and that the file is whole",
        )
    raise files.problem(
        f"{files.prefix}certificate: {files.certificate!r} with its key in {files.key_file!r} cannot be used: {reason}",
        "check that both files are whole",
    )


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or type(error).__name__
