"""Producer options as Spark writes them: lowerCamelCase, without regard to case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataproxy.config.foreign import unknown_option
from dataproxy.config.secret import Secret
from dataproxy.config.suggestion import nearest_name
from dataproxy.config.tables.producer import PRODUCER
from dataproxy.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["camel_case", "concealed", "plain_name", "spark_options"]

_PREFIX: Final = "dataproxy."
_HINT: Final = "CONFIGURATION.md lists every option"


def camel_case(name: str) -> str:
    """Return the lowerCamelCase spelling of an option name."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def spark_options(options: Mapping[str, Any], *, known: Iterable[str] = ()) -> dict[str, Any]:
    """Return keyword arguments for ``load_producer_config`` from the options of a Spark reader or writer.

    Accepted without regard to case: lowerCamelCase (``batchBytes``), native names with or without the prefix
    ``dataproxy.`` (``dataproxy.batch_bytes``), names of the official SDKs.  ``known`` are other names, which the
    caller reads itself; they are left out.  Raises ConfigError for unknown and for repeated options.
    """
    own = {name.lower() for name in known}
    found: dict[str, Any] = {}
    written: dict[str, str] = {}
    complaints: list[str] = []
    for key, value in options.items():
        word = plain_name(key)
        if word in own:
            continue
        name = _NAMES.get(word) or _NAMES.get(word.replace("_", ""))
        if name is None:
            complaints.append(_complaint(key, known))
        elif name in found:
            complaints.append(f"options {written[name]!r} and {key!r} both set {name}; keep one")
        else:
            found[name] = value
            written[name] = key
    if complaints:
        kafka = any(key.lower().startswith("kafka.") for key in options)
        hint = _HINT + ("; docs/spark.md lists the counterparts of the Kafka sink's options" if kafka else "")
        raise ConfigError("; ".join(complaints), code="UNKNOWN_OPTION", hint=hint)
    return found


def concealed(options: Mapping[str, str]) -> dict[str, Any]:
    """Return options of Spark with the producer's secrets in objects that show nothing."""

    def secret(key: str) -> bool:
        word = plain_name(key)
        option = PRODUCER.by_name.get(_NAMES.get(word) or _NAMES.get(word.replace("_", ""), ""))
        return option is not None and option.kind == "secret"

    return {key: Secret(options[key]) if secret(key) else options[key] for key in options}


def plain_name(key: str) -> str:
    """Return an option's name in lower case and without the prefix ``dataproxy.``."""
    return key.lower().removeprefix(_PREFIX)


def _complaint(key: str, known: Iterable[str]) -> str:
    said = PRODUCER.answer(key.removeprefix(_PREFIX), camel_case)
    if said:
        return f"there is no option {key!r}: {said}"
    spellings = [camel_case(name) for name in PRODUCER.by_name]
    near = nearest_name(key.removeprefix(_PREFIX), [*spellings, *known])
    if near is not None:
        return f"there is no option {key!r}, did you mean {near!r}?"
    return unknown_option(PRODUCER, key)


def _names() -> dict[str, str]:
    names = {refusal.name.lower(): refusal.name for refusal in PRODUCER.refusals}
    for alias in PRODUCER.aliases:
        names[alias.name.lower()] = alias.name
        names[alias.name.lower().replace("_", "")] = alias.name
    for name in PRODUCER.by_name:
        names[name] = name
        names[name.replace("_", "")] = name
    return names


_NAMES: Final = _names()
