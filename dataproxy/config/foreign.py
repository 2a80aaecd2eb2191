"""Option names of InLong's own SDKs, turned into options of this package, with an answer for each that is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from dataproxy.config.option import NoCounterpart
from dataproxy.config.suggestion import nearest_name
from dataproxy.config.tables import TABLES
from dataproxy.problems import plain_text, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dataproxy.config.option import Alias, OptionTable

__all__ = ["Complaint", "Translation", "translate", "unknown_option"]


class Complaint(NamedTuple):
    """Say what is wrong with one name or value.

    ``kind``: ``left_out`` for something that has no counterpart here, ``value`` for a value that its option does not
    take, ``clash`` for two names that set one option to different values, ``unknown`` for a name that no SDK has.
    """

    kind: Literal["left_out", "value", "clash", "unknown"]
    key: str
    text: str


class Translation(NamedTuple):
    """Hold options by native name, each with its raw value and the name it was given by, and what was not taken.

    ``renamed`` has the foreign names that were understood, each with what it stands for.
    """

    options: dict[str, tuple[Any, str]]
    renamed: dict[str, str]
    complaints: list[Complaint]


def translate(table: OptionTable, raw: Mapping[str, Any], spell: Callable[[str], str] = str) -> Translation:
    """Return the options that ``raw`` gives, whatever names it uses.

    ``spell`` writes a name for people as it stands where ``raw`` comes from.  Values are not checked here, except those
    that have to be converted.  Raises nothing.
    """
    found = Translation({}, {}, [])
    given = {key.lower() for key, value in raw.items() if value is not None}
    off = _switched_off(table, raw)
    for key, value in raw.items():
        low = key.lower()
        if key in table.by_name:
            _settle(found, key, spell(key), {key: value})
        elif low in table.by_alias:
            if value is not None and low not in off:
                _rename(found, table.by_alias[low], key, value, given)
        elif low in table.by_refusal:
            reason = table.by_refusal[low].reason
            found.complaints.append(Complaint("left_out", key, f"{key!r} has no counterpart here: {reason}"))
        else:
            found.complaints.append(Complaint("unknown", key, unknown_option(table, key)))
    return found


def _switched_off(table: OptionTable, raw: Mapping[str, Any]) -> set[str]:
    """Return the names, in lower case, whose switch is given and off: their values do not count."""
    names: set[str] = set()
    for key, value in raw.items():
        alias = table.by_alias.get(key.lower())
        if alias is not None and alias.switches and str(value).strip().lower() in ("false", "0"):
            names |= {name.lower() for name in alias.switches}
    return names


def _rename(found: Translation, alias: Alias, key: str, value: Any, given: set[str]) -> None:
    if alias.newer and alias.newer.lower() in given:
        text = f"{key!r} is the old name of {alias.newer!r}, which is given too"
        found.complaints.append(Complaint("left_out", key, text))
        return
    if isinstance(value, str):
        value = plain_text(value)
    try:
        native = alias.convert(value)
    except NoCounterpart as error:
        found.complaints.append(Complaint("left_out", key, f"{key!r}: {shown(value)} {error}"))
    except ValueError as error:
        found.complaints.append(Complaint("value", key, f"{key!r}: {shown(value)} {error}"))
    else:
        found.renamed[key] = alias.meaning
        _settle(found, key, key, native)


def _settle(found: Translation, key: str, label: str, native: Mapping[str, Any]) -> None:
    for name, value in native.items():
        if value is None:
            continue
        if name in found.options and found.options[name][0] != value:
            other = found.options[name][1]
            text = f"{other!r} and {label!r} both set {name}, to different values; keep one"
            found.complaints.append(Complaint("clash", key, text))
        found.options[name] = (value, label)


def unknown_option(table: OptionTable, key: str) -> str:
    """Return the error text for a key that is not an option: what has it or replaces it, or the nearest name."""
    said = table.answer(key)
    if said:
        return f"there is no option {key!r}: {said}"
    owners = " and the ".join(other.section for other in TABLES if key in other.by_name)
    if owners:
        near = nearest_name(key, table.by_name)
        instead = f"; the nearest one of the {table.section} is {near!r}" if near else ""
        return f"there is no option {key!r} of the {table.section}: it is one of the {owners}{instead}"
    others = [alias.name for alias in table.aliases] + [name for word in table.words for name in word.names]
    near = nearest_name(key, table.by_name, others)
    if near is None:
        return f"there is no option {key!r}"
    meant = "" if near in table.by_name else table.answer(near)
    return f"there is no option {key!r}, did you mean {near!r}?" + (f" {meant}" if meant else "")
