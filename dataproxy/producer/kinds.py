"""What the target and the options mean for the core: how messages are framed, and who finds the servers."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from dataproxy._core.producer.ingest.stream import SendPolicy
from dataproxy.codes import LATE_ATTEMPTS, RETRY_CLASS, UNKNOWN_ERROR
from dataproxy.config.rules import is_tubemq
from dataproxy.errors import ConfigError, InvalidMessageError
from dataproxy.messagetypes import frame_family, has_item_attributes
from dataproxy.numbers import FAMILY_TUBEMQ
from dataproxy.producer.discovery.proxies import ProxySource
from dataproxy.producer.ingest.names import check_item_attrs
from dataproxy.producer.ingest.times import time_ms

if TYPE_CHECKING:
    import ssl

    from dataproxy.config import ProducerConfig
    from dataproxy.producer.discovery.credentials import ManagerAuth
    from dataproxy.producer.producer import Producer
    from dataproxy.producer.tubemq.source import MasterSource
    from dataproxy.trust.watched import Trust

__all__ = ["Source", "core_options", "send_policy", "source_of"]

ItemText = Callable[[Mapping[str, str] | None, object, Collection[str]], tuple[int, bytes]]
Source: TypeAlias = "ProxySource | MasterSource"

#: Bytes of a request to TubeMQ beside names and message, at most.
_REQUEST_BYTES: Final = 600
_SLICE: Final = 2048  # it has one byte of lengths for so many others, which brokers do not count


def send_policy(config: ProducerConfig) -> SendPolicy:
    """Return how messages are framed."""
    if is_tubemq(config.target):
        from dataproxy.producer.tubemq.attributes import item_text

        family: int = FAMILY_TUBEMQ
        text: ItemText = item_text
    else:
        family, text = frame_family(config.message_type, config.joined_lines, config.protocol), _inlong_text(config)
    return SendPolicy(
        family=family,
        skip_null=config.null_value == "skip" or (config.null_value == "empty" and config.empty_value == "skip"),
        skip_empty=config.empty_value == "skip",
        item_text=text,
    )


def _inlong_text(config: ProducerConfig) -> ItemText:
    """Return the function that makes the attribute text of one message for a DataProxy."""
    escape = config.attribute_escape == "percent"
    family = frame_family(config.message_type, config.joined_lines, config.protocol)

    def item_text(attrs: Mapping[str, str] | None, dt: object, frame_keys: Collection[str]) -> tuple[int, bytes]:
        when = time_ms(dt)
        exact = config.exact_time and when >= 0
        text = ""
        if attrs is not None:
            text = check_item_attrs(attrs, frame_keys, message_type=config.message_type, escape=escape)
        if not text and not exact:
            return when, b""
        if not has_item_attributes(family):
            raise InvalidMessageError(
                "lines (message_type 3 and 2, joined_lines) have no attributes of single messages",
                code="BAD_ATTRIBUTE",
                hint="use message_type=7 or 5",
            )
        parts = [text] if text else []
        if exact:
            parts.append(f"dtMs={when}")
        return when, "&".join(parts).encode()

    return item_text


def core_options(config: ProducerConfig, trust: Trust | None, source: Source, *, report_all: bool) -> dict[str, Any]:
    """Return the options of the core."""
    options = config.as_dict()
    options["tls_contexts"] = None if trust is None else trust.contexts
    options["report_all"] = report_all
    options["by_group"] = source.by_group
    options["late_attempts"] = LATE_ATTEMPTS
    options["classes"] = {code: int(kind) for code, kind in RETRY_CLASS.items() if code < UNKNOWN_ERROR}
    options["unknown_class"] = int(RETRY_CLASS[UNKNOWN_ERROR])
    if is_tubemq(config.target):
        from dataproxy.producer.tubemq.session import proof_size

        options["sender"] = source.sender
        options["proof_bytes"] = proof_size(config.user)
        options["frame_spare"] = _REQUEST_BYTES + options["proof_bytes"]
        options["max_frame_bytes"] += _REQUEST_BYTES + config.max_frame_bytes // _SLICE
    return options


def source_of(
    config: ProducerConfig, producer: Producer, *, inherited: Source | None = None, auth: ManagerAuth | None = None
) -> Source:
    """Return who finds the servers of ``producer``.  Raises ConfigError; ImportError without the package protobuf."""
    if not is_tubemq(config.target):
        known = inherited if isinstance(inherited, ProxySource) else None
        return ProxySource(config, producer, inherited=known, auth=auth)
    if auth is not None:
        raise ConfigError(
            f"manager_auth has no meaning with {config.target}, which names no Manager",
            hint="leave it out; masters take user and password",
        )
    from dataproxy.producer.tubemq.source import MasterSource

    weak = weakref.ref(producer)

    def context() -> ssl.SSLContext:
        trust = getattr(weak(), "_trust", None)
        if trust is None:
            raise ConnectionError("the producer has ended")
        return cast("ssl.SSLContext", trust.context)

    before = inherited if isinstance(inherited, MasterSource) else None
    return MasterSource(config, producer, inherited=before, context=context)
