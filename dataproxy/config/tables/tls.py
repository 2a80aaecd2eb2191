"""Options of TLS that every client has, whatever the servers are that it connects to."""

from __future__ import annotations

from dataproxy.config.option import Option
from dataproxy.config.secret import Secret

__all__ = ["tls_options"]


def tls_options(switch: str, *, one: str, several: str, named_by: str) -> tuple[Option, ...]:
    """Return the options of a client.

    ``switch`` is the text of the option ``tls``.  The others call a server ``one`` and servers ``several``;
    ``named_by`` says who names them.
    """
    return (
        Option("tls", "bool", False, switch, importance="high"),
        Option(
            "tls_ca",
            "text",
            "",
            f"File (PEM) or directory with the certificates of the authorities that the {several}' certificates are"
            " signed by; empty: those of the system.",
        ),
        Option(
            "tls_verify",
            "choice",
            "full",
            f"What is checked of a {one}'s certificate: `full`: who signed it, and that it is for this host; `chain`:"
            " only who signed it; `none`: nothing, so that anyone between can read and change all messages.",
            choices=("full", "chain", "none"),
        ),
        Option(
            "tls_server_name",
            "text",
            "",
            f"Name for which the {several}' certificates must be, and which is sent to them (SNI); empty: the host of"
            f" each {one} as {named_by} names it.",
            importance="low",
        ),
        Option(
            "tls_certificate",
            "text",
            "",
            "File (PEM) with the own certificate and the ones between it and its authority, for"
            f" {several} that ask for one.",
        ),
        Option("tls_key", "text", "", "File (PEM) with the key of `tls_certificate`; empty: it is in the same file."),
        Option("tls_key_password", "secret", Secret(), "Password of an encrypted key.", secret=True),
        Option(
            "tls_min_version",
            "choice",
            "1.2",
            "Oldest version of TLS that is accepted.",
            choices=("1.2", "1.3"),
            importance="low",
        ),
    )
