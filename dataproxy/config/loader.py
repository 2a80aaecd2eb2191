"""From defaults, file, environment and arguments to values: later layers win, and unknown names are errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dataproxy.config.suggestion import nearest_name
from dataproxy.errors import ConfigError
from dataproxy.problems import plain_text
from dataproxy.problems import shown as as_shown

if TYPE_CHECKING:
    from dataproxy.config.option import OptionTable, Rule
    from dataproxy.logs import Log

__all__ = ["read_environment", "settle", "unknown_option"]

_Layer = tuple[str, Mapping[str, Any]]


def settle(
    table: OptionTable,
    layers: Iterable[_Layer],
    *,
    base: tuple[Mapping[str, Any], Mapping[str, str]] | None = None,
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the value and the origin of every option of ``table``, each by name.

    ``layers`` are ``(source, raw values)``, later ones win; None as a value counts as not given.  ``base`` takes
    the place of the defaults.  Raises ConfigError.
    """
    values = {option.name: option.default for option in table.options}
    origins: dict[str, str] = {}
    if base is not None:
        origins.update({name: origin for name, origin in base[1].items() if not origin.startswith("default")})
        values.update({name: base[0][name] for name in origins})
    for source, raw in layers:
        for name, (value, key) in _native(table, source, raw).items():
            origin = key if source == "environment" else source
            label = origin if source != "environment" else f"environment variable {origin}"
            values[name] = table.by_name[name].parse(value, label)
            origins[name] = label
    _apply_rules(table, values, origins)
    return values, origins


def read_environment(table: OptionTable, env: Mapping[str, str], foreign: Iterable[str] = ()) -> dict[str, str]:
    """Return the raw values that the environment gives, by option name.

    Empty variables count as not set.  A variable that looks like a misspelt option is refused with ConfigError; other
    variables with the prefix (an orchestrator's, for example) and those with a prefix in ``foreign`` are ignored.
    """
    found: dict[str, str] = {}
    slips: list[str] = []
    for variable, value in sorted(env.items()):
        if not variable.startswith(table.env_prefix) or variable.startswith(tuple(foreign)) or value == "":
            continue
        name = variable[len(table.env_prefix) :].lower()
        if name in table.by_name:
            found[name] = value
            continue
        near = nearest_name(name, table.by_name) if len(name) > 4 else None
        said = table.answer(name, lambda option: f"{table.env_prefix}{option.upper()}")
        if near is not None and said:
            slips.append(f"{variable}: {said}")
        elif near is not None:
            slips.append(f"{variable}; did you mean {table.env_prefix}{near.upper()}?")
        else:
            _logger().debug("environment variable %s is not an option and is ignored", variable)
    if slips:
        raise ConfigError(
            f"environment: these are not options: {' '.join(slips)}",
            code="UNKNOWN_OPTION",
            hint="CONFIGURATION.md lists every option",
        )
    return found


def unknown_option(table: OptionTable, key: str, also: Iterable[str] = ()) -> str:
    """Return the error text for a key that is not an option: the option that replaces it, or the nearest name."""
    said = table.answer(key)
    if said:
        return f"there is no option {key!r}: {said}"
    others = [alias.name for alias in table.aliases] + [name for word in table.words for name in word.names]
    near = nearest_name(key, [*table.by_name, *also], others)
    if near is None:
        return f"there is no option {key!r}"
    meant = "" if near in table.by_name else table.answer(near)
    return f"there is no option {key!r}, did you mean {near!r}?" + (f" {meant}" if meant else "")


def _native(table: OptionTable, source: str, raw: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
    """Return native name -> (raw value, key as written) for one layer.  Raises ConfigError."""
    found: dict[str, tuple[Any, str]] = {}
    complaints: list[str] = []
    unknown = False
    for key, value in raw.items():
        shown = f"{table.env_prefix}{key.upper()}" if source == "environment" else key
        if key in table.by_name:
            given: Mapping[str, Any] = {key: value}
        elif key.lower() in table.by_alias:
            if value is None:
                continue
            given = _translate(table, source, key, value, complaints)
        elif key.lower() in table.by_refusal:
            complaints.append(f"{key!r} has no counterpart here: {table.by_refusal[key.lower()].reason}")
            continue
        else:
            unknown = True
            complaints.append(unknown_option(table, key))
            continue
        for name, native in given.items():
            if native is None:
                continue
            if name in found and found[name][0] != native:
                complaints.append(f"{found[name][1]!r} and {shown!r} both set {name}, to different values; keep one")
            found[name] = (native, shown)
    if complaints:
        raise ConfigError(
            f"{source}: {'; '.join(complaints)}",
            code="UNKNOWN_OPTION" if unknown else "CONFIG",
            hint="CONFIGURATION.md lists every option",
            details={"source": source},
        )
    return found


def _translate(table: OptionTable, source: str, key: str, value: Any, complaints: list[str]) -> Mapping[str, Any]:
    alias = table.by_alias[key.lower()]
    if isinstance(value, str):
        value = plain_text(value)
    try:
        given = alias.convert(value)
    except ValueError as error:
        complaints.append(f"{key!r}: {as_shown(value)} {error}")
        return {}
    _logger().warning("%s: %r is an option name of another SDK and means %s", source, key, alias.meaning)
    return given


def _apply_rules(table: OptionTable, values: dict[str, Any], origins: dict[str, str]) -> None:
    for rule in table.rules:
        complaint = rule.check(values)
        if complaint is not None and not _give_way(table, rule, values, origins) and rule.binding:
            raise ConfigError(complaint)


def _give_way(table: OptionTable, rule: Rule, values: dict[str, Any], origins: dict[str, str]) -> bool:
    """Change the default of one option of a broken rule, if the rule has an option that was not set; tell whether."""
    for name, adjust in rule.yields.items():
        option = table.by_name[name]
        value = adjust(values)
        fits = (option.low is None or value >= option.low) and (option.high is None or value <= option.high)
        if fits and origins.get(name, "default").startswith("default"):
            values[name] = value
            origins[name] = f"default, changed to fit {rule.partner(name)}"
            return True
    return False


def _logger() -> Log:
    from dataproxy.logs import logger

    return logger("config")
