"""The JSON file of ``InLongApi``: read as InLong's own SDK reads it, and turned into options of a producer.

That SDK ignores names it does not know and takes its default for values that it cannot use, without a word.  Nothing
here stops a program either that has run with such a file, but each such entry is one warning with the reason.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dataproxy.config import PRODUCER, ProducerConfig
from dataproxy.config.foreign import translate
from dataproxy.config.loader import read_environment, settle
from dataproxy.config.rules import FRAME_OVERHEAD_BYTES, LARGEST_FRAME_BYTES
from dataproxy.errors import ConfigError
from dataproxy.logs import logger
from dataproxy.problems import shown

__all__ = ["Settings", "read_settings"]

_LOG: Final = logger("inlong")
_SECTION: Final = "init-param"
_MARGIN: Final = 10  # what InLong's own SDK keeps of ext_pack_size for each message
#: What holds where neither the file nor the environment says anything else: the behaviour of InLong's own SDK.
_DEFAULTS: Final = {
    "target": "http://127.0.0.1:8099/inlong/manager/openapi/dataproxy/getIpList",
    "on_full": "raise",
    "start": "lazy",
    "compression": "snappy",
}
#: Numbers that mean something for this module alone, with its defaults.
_OWN_NUMBERS: Final = {"ext_pack_size": 409600, "max_group_id_num": 50, "max_stream_id_num": 100}
_SECRETS: Final = ("auth_id", "auth_key")
_SCALABLE: Final = frozenset({"int", "duration", "size"})


class Settings(NamedTuple):
    """Hold what a file says.

    ``groups`` are opened at once; ``most_groups`` may be used in all.  ``most_bytes`` is the length of the longest
    body.  ``client_ip`` is the address that callbacks get, empty for the one that is found.
    """

    config: ProducerConfig
    groups: tuple[str, ...]
    most_groups: int
    most_bytes: int
    client_ip: str


def read_settings(path: str, env: Mapping[str, str] | None = None) -> Settings:
    """Return the settings in a JSON file; ``DATAPROXY_*`` variables win over it.

    ``env`` is the environment (None: that of the process).  Raises ConfigError where the file cannot be read, is no
    JSON or has no table ``init-param``, or where its options contradict each other.
    """
    given = _read(path)
    numbers = {name: _own_number(path, name, given.pop(name, None)) for name in _OWN_NUMBERS}
    groups = _texts(path, "inlong_group_ids", given.pop("inlong_group_ids", None)).split(",")
    client_ip = _texts(path, "ser_ip", given.pop("ser_ip", None))
    _keep_secrets(path, given)
    options = _options(path, given)
    most_bytes = numbers["ext_pack_size"] - _MARGIN
    _make_room(options, most_bytes)
    environment = read_environment(PRODUCER, os.environ if env is None else env)
    layers = [
        ("inlong_dataproxy", _defaults({**options, **environment})),
        (f"file {path}", options),
        ("environment", environment),
    ]
    return Settings(
        ProducerConfig(*settle(PRODUCER, layers)),
        tuple(dict.fromkeys(name.strip() for name in groups if name.strip())),
        max(numbers["max_group_id_num"], numbers["max_stream_id_num"]) + 1,
        most_bytes,
        client_ip,
    )


def _defaults(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what holds beside the given options: the HTTP report has no compression, so nobody asks for it there."""
    over_http = str(given.get("protocol")).lower() == "http"
    return {name: value for name, value in _DEFAULTS.items() if not (over_http and name == "compression")}


def _read(path: str) -> dict[str, Any]:
    def first(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                _LOG.warning("file %s: %r is given twice; the first counts", path, key)
            found.setdefault(key, value)
        return found

    try:
        with open(path, "rb") as stream:  # noqa: PTH123 - as in dataproxy.config.file
            text = stream.read().decode("utf-8")
        document = json.loads(text, object_pairs_hook=first)
    except OSError as error:
        raise ConfigError(f"file {path!r} cannot be read: {error.strerror or error}") from None
    except (RecursionError, ValueError) as error:
        raise ConfigError(f"file {path!r} is not valid JSON: {error}") from None
    part = document.get(_SECTION) if isinstance(document, dict) else None
    if not isinstance(part, dict):
        raise ConfigError(
            f"file {path!r} has no table {_SECTION!r}", hint=f'write {{"{_SECTION}": {{"manager_url": "http://..."}}}}'
        )
    return part


def _own_number(path: str, name: str, value: Any) -> int:
    usual = _OWN_NUMBERS[name]
    if value is None:
        return usual
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    _leave_out(path, f"{name!r}: {shown(value)} is not a whole number above 0; {usual} is used")
    return usual


def _texts(path: str, name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is not None:
        _leave_out(path, f"{name!r}: {shown(value)} is not text")
    return ""


def _keep_secrets(path: str, given: dict[str, Any]) -> None:
    """Take out what the Manager is not to be given: secrets count with ``need_auth`` alone, and both or none."""
    needed = given.get("need_auth") is True
    both = all(isinstance(given.get(name), str) for name in _SECRETS)
    if needed and not both:
        _leave_out(path, "'need_auth': auth_id and auth_key are not both given as texts")
        given.pop("need_auth")
    if not (needed and both):
        for name in _SECRETS:
            given.pop(name, None)


def _options(path: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a producer that a file sets; what cannot be used is left out, each with a warning."""
    found = translate(PRODUCER, given)
    for key, meaning in found.renamed.items():
        _LOG.debug("file %s: %r means %s", path, key, meaning)
    for complaint in found.complaints:
        _leave_out(path, complaint.text)
    options: dict[str, Any] = {}
    for name, (value, key) in found.options.items():
        try:
            options[name] = _within(path, name, key, value)
        except ConfigError as error:
            _leave_out(path, f"{key!r}: {error.message}")
    return options


def _within(path: str, name: str, key: str, value: Any) -> Any:
    """Return a value in base units; a number out of the option's range becomes the nearest that it takes."""
    option = PRODUCER.by_name[name]
    if option.kind not in _SCALABLE or option.low is None or option.high is None:
        return option.parse(value, key)
    parsed = option._replace(low=None, high=None).parse(value, key)
    nearest = min(max(parsed, option.low), option.high)
    if nearest == parsed:
        return parsed
    number = nearest if option.kind == "duration" else int(nearest)
    _LOG.warning(
        "file %s: %r: %s is outside of %s; %s is used",
        path,
        key,
        shown(value),
        option.range_text(),
        option.format(number),
    )
    return number


def _make_room(options: dict[str, Any], most_bytes: int) -> None:
    """Fit the limits of frames and of the buffer to the sizes that the file asks for."""
    largest = max(options.get("batch_bytes", 0), most_bytes) + FRAME_OVERHEAD_BYTES
    if largest > PRODUCER.by_name["max_frame_bytes"].default:
        options.setdefault("max_frame_bytes", min(largest, LARGEST_FRAME_BYTES))
    if "buffer_bytes" in options and options.get("batch_bytes", 0) > options["buffer_bytes"]:
        options["batch_bytes"] = options["buffer_bytes"]


def _leave_out(path: str, text: str) -> None:
    _LOG.warning("file %s: %s; it is left out", path, text)
