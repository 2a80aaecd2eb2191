"""From defaults, file, environment and arguments to values: later layers win, and unknown names are errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from dataproxy.config.foreign import translate
from dataproxy.config.secret import Secret
from dataproxy.config.suggestion import nearest_name
from dataproxy.config.tables import TABLES
from dataproxy.errors import ConfigError
from dataproxy.problems import plain_text

if TYPE_CHECKING:
    from dataproxy.config.option import OptionTable, Rule
    from dataproxy.logs import Log

__all__ = ["conceal", "prefixed", "read_environment", "settle"]

_Layer = tuple[str, Mapping[str, Any]]
#: Names of other SDKs for options that are secrets.
_SECRET_ALIASES = frozenset({"auth_key", "mgrauthsecretkey", "usrpassword"})


def conceal(table: OptionTable, raw: MutableMapping[str, Any]) -> None:
    """Put the secrets among raw values into objects that show nothing: local variables may end up in a traceback."""
    for key, value in raw.items():
        option = table.by_name.get(key)
        secret = key.lower() in _SECRET_ALIASES if option is None else option.kind == "secret"
        if secret and isinstance(value, str):
            raw[key] = Secret(plain_text(value))


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


def read_environment(table: OptionTable, env: Mapping[str, Any]) -> dict[str, Any]:
    """Return the raw values that the environment gives, by option name.

    Empty variables count as not set.  A variable that looks like a misspelt option is refused with ConfigError; other
    variables with the prefix (an orchestrator's, for example) and those of other tables are ignored.
    """
    found: dict[str, Any] = {}
    slips: list[str] = []
    env = prefixed(table, env)  # not the whole environment: it may end up in a traceback
    for variable, value in sorted(env.items()):
        if value == "":
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


def prefixed(table: OptionTable, env: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of a table's prefix, secrets concealed; not those of other tables with a longer prefix."""
    others = tuple(other.env_prefix for other in TABLES if len(other.env_prefix) > len(table.env_prefix))
    names = {option.name.upper() for option in table.options if option.kind == "secret"}
    return {
        key: Secret(plain_text(env[key])) if _is_secret(key[len(table.env_prefix) :], env[key], names) else env[key]
        for key in env
        if key.startswith(table.env_prefix) and not key.startswith(others)
    }


def _is_secret(name: str, value: object, names: set[str]) -> bool:
    return name in names and isinstance(value, str) and value != ""


def _native(table: OptionTable, source: str, raw: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
    """Return native name -> (raw value, key as written) for one layer.  Raises ConfigError.

    A file is often one that another SDK has used until now: what has no counterpart is left out of it, each with a
    warning.  Everywhere else it is an error.
    """
    found = translate(table, raw, lambda key: f"{table.env_prefix}{key.upper()}" if source == "environment" else key)
    for key, meaning in found.renamed.items():
        _logger().warning("%s: %r is an option name of another SDK and means %s", source, key, meaning)
    wrong = []
    for complaint in found.complaints:
        if complaint.kind == "left_out" and source.startswith("file "):
            _logger().warning("%s: %s; it is left out", source, complaint.text)
        else:
            wrong.append(complaint)
    if wrong:
        raise ConfigError(
            f"{source}: {'; '.join(complaint.text for complaint in wrong)}",
            code="UNKNOWN_OPTION" if any(complaint.kind == "unknown" for complaint in wrong) else "CONFIG",
            hint="CONFIGURATION.md lists every option",
            details={"source": source},
        )
    return found.options


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
