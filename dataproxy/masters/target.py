"""Targets that name masters, as a text or a list."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from dataproxy.errors import ConfigError
from dataproxy.problems import plain_text, shown
from dataproxy.shown import without_secrets

__all__ = ["MASTER_PORT", "MASTER_TLS_PORT", "Address", "Target", "parse_target"]

#: Ports of a master when a target names none.
MASTER_PORT: Final = 8715
MASTER_TLS_PORT: Final = 8716

_PLAIN: Final = "tubemq"
_SECURE: Final = "tubemqs"
_LAST_PORT: Final = 65535
_HOST: Final = re.compile(r"[^\s\x00-\x1f\x7f\[\]/@?#:,%&=\\<>\"']{1,255}")  # no name of DNS is longer
_SHOWN: Final = 200
_FORMS: Final = (
    "write 'tubemq://master1:8715,master2:8715', with TLS 'tubemqs://master1:8716', or give a list ['master1:8715']"
)
_IPV6: Final = "write IPv6 as [2001:db8::1]:8715"
#: What is meant by schemes that are not those of masters.
_MEANT: Final = {
    "http": "8080 is the port of a master's web page; its port for clients is 8715. ",
    "https": "8080 is the port of a master's web page; its port for clients is 8715. ",
    "rocketmq": "Topics of RocketMQ are read by PushConsumer and PullConsumer of dataproxy.rocketmq, at a hub also by"
    " dataproxy.Consumer. ",
    "tcp": "tcp:// is for the proxies that a producer sends to. ",
    "tls": "tls:// is for the proxies that a producer sends to. ",
}


class Address(NamedTuple):
    """Where a master or a broker listens."""

    host: str
    port: int


class Target(NamedTuple):
    """Masters in the order given, none twice, and whether connections have TLS."""

    masters: tuple[Address, ...]
    tls: bool


def parse_target(target: str | Sequence[str], tls: bool = False) -> Target:
    """Return the masters that ``tubemq://host[:port],...`` names, or ``tubemqs://`` with TLS, or a list of addresses.

    IPv6 addresses stand in brackets.  An address of a list may have the scheme, too.  ``tls`` turns TLS on whatever the
    scheme is.  Without a port it is 8715, with TLS 8716.  Raises ConfigError that names the part that is wrong.
    """
    if isinstance(target, str):
        text = plain_text(target).strip()
        said = _Said(text)
        scheme, rest = said.split(text)
        if not scheme:
            raise said.problem("has no scheme")
        parts, secure = rest.split(","), scheme == _SECURE
    elif isinstance(target, (list, tuple)) and target and all(isinstance(part, str) for part in target):
        texts = [plain_text(part).strip() for part in target]
        said = _Said(",".join(texts))
        split = [said.split(text) for text in texts]
        kinds = {scheme == _SECURE for scheme, _ in split}
        if len(kinds) > 1:
            raise said.problem("has masters with and without TLS", "give only one kind")
        parts, secure = [part for _, rest in split for part in rest.split(",")], kinds == {True}
    else:
        raise ConfigError(f"target {shown(target)} is not an address", hint=_FORMS)
    secure = secure or tls
    usual = MASTER_TLS_PORT if secure else MASTER_PORT
    found = dict.fromkeys(_address(said, part.strip(), usual) for part in parts)
    return Target(tuple(found), secure)


class _Said:
    """A target as errors show it: without credentials, and not longer than people read."""

    def __init__(self, text: str) -> None:
        self._shown = _cut(without_secrets(text))

    def problem(self, what: str, hint: str = _FORMS) -> ConfigError:
        """Return the error for a target."""
        return ConfigError(f"target {self._shown!r} {what}", hint=hint)

    def split(self, text: str) -> tuple[str, str]:
        """Return the scheme of an address, empty for none, and what is behind it.  Raises ConfigError."""
        scheme, separator, rest = text.partition("://")
        scheme, rest = (scheme.lower(), rest) if separator else ("", text)
        if "@" in text:
            raise ConfigError(
                "the target contains '@' (user or password in the address)",
                hint="give credentials as user and password",
            )
        for mark in "?#":
            if mark in text:
                raise self.problem(f"holds {mark!r}", "give addresses only")
        if not rest.strip():
            raise self.problem("is not an address")
        if separator and scheme not in (_PLAIN, _SECURE):
            raise self.problem(f"has the unknown scheme {_cut(scheme)!r}", _MEANT.get(scheme, "") + _FORMS)
        if "://" in rest:
            raise self.problem("has several schemes", f"write one, once: '{_PLAIN}://master1:8715,master2:8715'")
        return scheme, rest


def _address(said: _Said, part: str, usual: int) -> Address:
    if not part:
        raise said.problem("has an empty address")
    if part.startswith("["):
        host, bracket, tail = part[1:].partition("]")
        if not bracket or (tail and not tail.startswith(":")):
            raise said.problem(f"has {_cut(part)!r}, which is not an address", _IPV6)
        return Address(_ipv6(said, host), _port(said, tail[1:] if tail else None, usual))
    if part.count(":") > 1:
        raise said.problem(f"has {_cut(part)!r} with several colons", _IPV6)
    host, colon, port = part.partition(":")
    if not _HOST.fullmatch(host):
        raise said.problem(f"has {_cut(host)!r}, which is not a host name or an address")
    return Address(host.lower(), _port(said, port if colon else None, usual))


def _ipv6(said: _Said, host: str) -> str:
    try:
        if "%" in host:
            raise ValueError(host)  # a scope: which interface is meant is known to this machine alone
        return ipaddress.IPv6Address(host).compressed
    except ValueError:
        raise said.problem(
            f"has {_cut(host)!r} in brackets, which is not an IPv6 address", "brackets are for IPv6 addresses only"
        ) from None


def _port(said: _Said, text: str | None, usual: int) -> int:
    if text is None:
        return usual
    allowed = f"allowed is 1 .. {_LAST_PORT}"
    if not (text.isascii() and text.isdigit()):
        raise said.problem(f"has the port {_cut(text)!r}, which is not a number", allowed)
    port = int(text[:10])
    if not 1 <= port <= _LAST_PORT:
        raise said.problem(f"has the port {_cut(text)}, which is out of range", allowed)
    return port


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
