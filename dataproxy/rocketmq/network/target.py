"""Name servers, and addresses of brokers, as texts."""

from __future__ import annotations

import ipaddress
import re
from typing import Final, NamedTuple

from dataproxy.errors import ConfigError
from dataproxy.problems import plain_text, shown

__all__ = ["NAME_PORT", "Address", "parse_address", "parse_target"]

NAME_PORT: Final = 9876  #: of a name server where a target names none
_SCHEME: Final = "rocketmq://"
_SECURE: Final = "rocketmqs://"
_HOST: Final = re.compile(r"[A-Za-z0-9._-]{1,255}")
_HINT: Final = "write 'rocketmq://names1:9876,names2:9876', with TLS 'rocketmqs://...'; IPv6 stands in brackets"
_LAST_PORT: Final = 65535


class Address(NamedTuple):
    """Where a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, usual_port: int | None = None) -> Address | None:
    """Return the address that ``host:port`` names, None if it names none.  IPv6 may stand without brackets."""
    host, colon, port = text.rpartition(":")
    if text.startswith("[") and text.endswith("]"):
        host, colon, port = text, "", ""
    elif not colon:
        host, port = text, ""
    if not colon and usual_port is None:
        return None
    number = usual_port if not colon else int(port) if port.isascii() and port.isdigit() and len(port) < 6 else 0
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if ":" in bare:
        try:
            bare = ipaddress.IPv6Address(bare).compressed
        except ValueError:
            return None
    elif not _HOST.fullmatch(bare):
        return None
    return Address(bare, number) if number and number <= _LAST_PORT else None


def parse_target(target: object) -> tuple[tuple[Address, ...], bool]:
    """Return the name servers that ``rocketmq://host:port,...`` names, none twice, and whether with TLS.

    Raises ConfigError.
    """
    if not isinstance(target, str):
        raise ConfigError(f"target {shown(target)} is not a text", hint=_HINT)
    text = plain_text(target).strip()
    secure = text.startswith(_SECURE)
    if not secure and not text.startswith(_SCHEME):
        raise ConfigError(f"target {shown(text)} does not begin with {_SCHEME!r}", hint=_HINT)
    if "@" in text:
        raise ConfigError(
            "the target contains '@' (a user or a password)", hint="servers with access control are not supported"
        )
    found: dict[Address, None] = {}
    for part in re.split("[,;]", text.removeprefix(_SECURE if secure else _SCHEME)):
        address = parse_address(part.strip(), NAME_PORT)
        if address is None:
            raise ConfigError(f"target {shown(text)}: {shown(part)} is not an address of a name server", hint=_HINT)
        found[address] = None
    return tuple(found), secure
