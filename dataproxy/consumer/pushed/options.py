"""Options of a consumer of RocketMQ: which have a meaning, and what they are for the client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataproxy.errors import ConfigError
from dataproxy.problems import shown
from dataproxy.rocketmq.arguments import TlsOptions
from dataproxy.rocketmq.group.shares import SQL, TAG, check_clear, subscriptions

if TYPE_CHECKING:
    from dataproxy.config import ConsumerConfig
    from dataproxy.config.secret import Secret
    from dataproxy.wire.rocketmq.bodies import Subscription

__all__ = ["check_options", "target_of", "tls_of", "wanted_of"]

_DIVIDED: Final = "the members of a group divide its queues"
_BEGINS: Final = "a group begins where start says"
_PUSHED: Final = "messages come without being asked for"
_CLIENT: Final = "the client of RocketMQ has no such setting"
_ANYBODY: Final = "brokers with access control are not supported"
#: Options that have no meaning, and why.
_MEANINGLESS: Final = {
    "offsets": _BEGINS,
    "session": _BEGINS,
    "larger_offset": _BEGINS,
    "balance": _DIVIDED,
    "members": _DIVIDED,
    "node": _DIVIDED,
    "prefetch_bytes": "the hub bounds what is on its way (4 MiB of a queue, 16 MiB of a connection)",
    "not_found_wait": _PUSHED,
    "heartbeat_interval": _CLIENT,
    "master_retry_max": _CLIENT,
    "register_retries": _DIVIDED,
    "register_retry_wait": _DIVIDED,
    "dns_interval": _CLIENT,
    "user": _ANYBODY,
    "password": _ANYBODY,
    "tls_server_name": _CLIENT,
    "tls_min_version": _CLIENT,
}


def check_options(config: ConsumerConfig) -> None:
    """Raise ConfigError for an option that was given and has no meaning here, or contradicts the target."""
    for name, why in _MEANINGLESS.items():
        if config.origin(name) != "default":
            raise ConfigError(
                f"{name} has no meaning with rocketmq://: {why}",
                code="NO_MEANING",
                hint=f"leave {name} out ({config.origin(name)})",
            )
    if config.origin("tls") != "default" and not config.tls and _scheme_of(config) == "rocketmqs":
        raise ConfigError(
            "tls=False does not go with rocketmqs://, which is TLS",
            hint=f"write the target as 'rocketmq://...', or leave tls out ({config.origin('tls')})",
        )
    if config.start == "end":
        raise ConfigError(
            "start='end' has no meaning with rocketmq://: a group goes on where it was",
            code="NO_MEANING",
            hint="give start='latest', and seek(partition, 'latest') where messages are to be skipped",
        )


def _scheme_of(config: ConsumerConfig) -> str:
    return config.target.strip().partition("://")[0].lower()


def target_of(config: ConsumerConfig) -> str:
    """Return the target; ``tls=True`` is the same as the scheme for TLS."""
    scheme, (_, mark, rest) = _scheme_of(config), config.target.strip().partition("://")
    return f"{scheme}{'s' if config.tls and scheme == 'rocketmq' else ''}{mark}{rest}"


def tls_of(config: ConsumerConfig) -> TlsOptions:
    """Return the options of TLS."""
    return TlsOptions(
        config.tls_ca, config.tls_certificate, config.tls_key, _text_of(config.tls_key_password), config.tls_verify
    )


def _text_of(secret: Secret) -> str:
    """Return a text that means the same: the client looks for a place in it."""
    return f"value:{secret.reveal()}" if secret else ""


def wanted_of(config: ConsumerConfig, version: int) -> dict[str, Subscription]:
    """Return what is subscribed: filter items are tags, or one expression.  Raises ConfigError, InvalidMessageError."""
    return subscriptions({topic: _filter_of(topic, items) for topic, items in config.topics}, version)


def _filter_of(topic: str, items: tuple[str, ...]) -> str:
    """Return what is wanted of a topic as one text that names its kind, empty for everything.  Raises ConfigError."""
    if any(item.startswith(SQL) for item in items):
        if len(items) > 1:
            raise ConfigError(
                f"topics: an expression of SQL92 stands alone, and {topic!r} has {len(items)} filter items",
                hint="join them by OR: \"sql:n>3 OR TAGS='a'\"",
            )
        return items[0]
    for item in items:
        tag = item.removeprefix(TAG)
        if tag == item:
            check_clear(topic, tag)
        if not tag or not tag.isprintable() or set(tag) & set(" |*"):
            raise ConfigError(
                f"topics: {shown(item)} of {topic!r} is not a tag",
                hint="tags are not empty, and have no blanks, '|' and '*'; write 'sql:...' for an expression of SQL92",
            )
    return TAG + " || ".join(item.removeprefix(TAG) for item in items) if items else ""
