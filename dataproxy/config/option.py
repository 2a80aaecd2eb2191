"""Descriptions of options: parsing, documentation and types of an option are all made from its description."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from dataproxy.config.secret import Secret
from dataproxy.config.units import format_duration, format_size, parse_duration, parse_size
from dataproxy.errors import ConfigError
from dataproxy.problems import plain_text, shown
from dataproxy.shown import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Alias", "Kind", "NoCounterpart", "Option", "OptionTable", "Refusal", "Rule", "Word"]

Kind = Literal[
    "text", "bool", "int", "duration", "size", "choice", "names", "target", "masters", "topics", "offsets", "secret"
]

_TRUE: Final = frozenset({"true", "yes", "on", "1"})
_FALSE: Final = frozenset({"false", "no", "off", "0"})
#: Between the filter items of a topic in text.  A shell needs no quotes for it, and no name has it.
_ITEM_MARK: Final = "+"
_WHOLE: Final = "sql:"  # begins a filter item that is not divided
_TYPE_TEXT: Final = {
    "text": "text",
    "bool": "true or false",
    "int": "whole number",
    "duration": "duration",
    "size": "size",
    "choice": "choice",
    "names": "list of names",
    "target": "text, or list of proxies",
    "masters": "text, or list of masters",
    "topics": "topics, with filter items",
    "offsets": "offsets of partitions",
    "secret": "secret",
}


class Option(NamedTuple):
    """Describe one option.

    ``default``, ``low`` and ``high`` are in base units: seconds for durations, bytes for sizes.  ``secret``
    values are never shown, nor are secrets in the addresses that ``url`` options hold.  The values of the kind
    ``secret`` are objects of the class Secret.
    """

    name: str
    kind: Kind
    default: Any
    doc: str
    low: float | None = None
    high: float | None = None
    choices: tuple[Any, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()  # words that are refused, and what to do instead
    importance: Literal["high", "medium", "low"] = "medium"
    secret: bool = False
    url: bool = False

    @property
    def type_text(self) -> str:
        """Return the type in words."""
        if self.kind == "choice":
            return " \\| ".join(str(choice) for choice in self.choices)
        return _TYPE_TEXT[self.kind]

    def parse(self, value: object, source: str = "argument") -> Any:
        """Return ``value`` in base units.

        Raises ConfigError that names the option, the value (unless secret), the limit and the way out.
        """
        try:
            parsed = _PARSERS[self.kind](self, value)
            self._check_range(parsed)
        except ValueError as error:
            text = plain_text(value) if isinstance(value, str) else ""
            hidden = self.secret or (self.url and without_secrets(text) != text)
            given = "the given value" if hidden else shown(value)
            raise ConfigError(
                f"option {self.name} ({source}): {given} {error}",
                hint=dict(self.refused).get(text.strip().lower(), ""),
                details={"option": self.name, "source": source, **({} if hidden else {"value": value})},
            ) from None
        return parsed

    def format(self, value: Any) -> str:
        """Return a value in base units as people write it; secrets come out as stars."""
        if self.secret:
            return "***" if value else ""
        if self.url:
            return without_secrets(value)
        if self.kind == "duration":
            return format_duration(value)
        if self.kind == "size":
            return format_size(value)
        if self.kind == "bool":
            return "true" if value else "false"
        if self.kind in ("names", "topics", "offsets"):
            return ",".join(self.format_items(value))
        return str(value)

    def format_items(self, value: Any) -> list[str]:
        """Return the texts of the items of a list; those of topics have their filter items behind ``=``."""
        if self.kind == "offsets":
            return [f"{key}={offset}" for key, offset in value]
        if self.kind != "topics":
            return list(value)
        return [f"{name}={_ITEM_MARK.join(items)}" if items else name for name, items in value]

    def range_text(self) -> str:
        """Return the allowed range in words, empty when there is none."""
        if self.low is None or self.high is None:
            return ""
        return f"{self._shown(self.low)} .. {self._shown(self.high)}"

    def _shown(self, value: float) -> str:
        return self.format(int(value) if self.kind in ("int", "size") else value)

    def _check_range(self, parsed: Any) -> None:
        if self.low is not None and parsed < self.low:
            raise ValueError(f"is too small; allowed is {self.range_text()}")
        if self.high is not None and parsed > self.high:
            raise ValueError(f"is too large; allowed is {self.range_text()}")


class NoCounterpart(ValueError):  # noqa: N818 - it says what is wrong with a value, as part of a sentence
    """Report a value of another SDK's option that nothing here stands for."""


class Alias(NamedTuple):
    """Describe an option name of another SDK that is accepted.

    ``convert`` turns the foreign value into native ones by name; it may raise NoCounterpart, and ValueError for a value
    that the other SDK would not take either.  ``meaning`` says in words what it stands for, ``sdks`` where it comes
    from.  ``newer`` is the name that has taken its place there: where both are given, this one is left out.  Options
    in ``switches`` count only where this one is true.
    """

    name: str
    convert: Callable[[Any], Mapping[str, Any]]
    meaning: str
    sdks: tuple[str, ...] = ()
    newer: str = ""
    switches: tuple[str, ...] = ()


class Refusal(NamedTuple):
    """Describe an option name of another SDK that has no counterpart, with the reason and where it comes from."""

    name: str
    reason: str
    sdks: tuple[str, ...] = ()


class Word(NamedTuple):
    """Describe option names of another kind of client; they are not accepted, and the error explains them.

    ``answer`` is the explanation; option names in it stand in braces, because some places spell them differently.
    """

    names: tuple[str, ...]
    answer: str


class Rule(NamedTuple):
    """Tie options together: ``check`` gets all values and returns a complaint or None.

    ``yields`` has the options whose *default* is changed first, before the rule is an error, each with a function for
    its new value.  A rule that is not ``binding`` changes defaults and is never an error.
    """

    options: tuple[str, ...]
    check: Callable[[Mapping[str, Any]], str | None]
    yields: Mapping[str, Callable[[Mapping[str, Any]], Any]] = MappingProxyType({})
    binding: bool = True

    def partner(self, name: str) -> str:
        """Return the other option of the rule, for which the default of ``name`` is changed."""
        return next(other for other in self.options if other != name)


class OptionTable:
    """Hold the options of one part, the meanings of foreign names, and the rules between options.

    ``by_alias`` and ``by_refusal`` have lower-case keys; those of ``by_word`` have letters only.
    """

    def __init__(
        self,
        *,
        title: str,
        section: str,
        env_prefix: str,
        options: tuple[Option, ...],
        aliases: tuple[Alias, ...] = (),
        refusals: tuple[Refusal, ...] = (),
        words: tuple[Word, ...] = (),
        rules: tuple[Rule, ...] = (),
    ) -> None:
        self.title = title
        self.section = section
        self.env_prefix = env_prefix
        self.options = options
        self.aliases = aliases
        self.refusals = refusals
        self.words = words
        self.rules = rules
        self.by_name: Mapping[str, Option] = {option.name: option for option in options}
        self.by_alias: Mapping[str, Alias] = {alias.name.lower(): alias for alias in aliases}
        self.by_refusal: Mapping[str, Refusal] = {refusal.name.lower(): refusal for refusal in refusals}
        self.by_word: Mapping[str, Word] = {_letters(name): word for word in words for name in word.names}

    def answer(self, key: str, spell: Callable[[str], str] = str) -> str:
        """Return the explanation of an option name of another kind of client; empty for an unknown name.

        ``spell`` turns the name of an option into the spelling of the place where ``key`` was found.
        """
        word = self.by_word.get(_letters(key.lower().removeprefix("kafka.")))
        return "" if word is None else word.answer.format_map({name: spell(name) for name in self.by_name})


def _letters(name: str) -> str:
    """Return a name in lower case without underscores, dots and hyphens."""
    return name.lower().replace("_", "").replace(".", "").replace("-", "")


def _parse_text(_option: Option, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"is of type {type(value).__name__}; give text")
    text = plain_text(value)
    if "\0" in text:
        raise ValueError("contains a NUL character; remove it")
    return text


def _parse_target(option: Option, value: object) -> str:
    """Return a target's text; a list or tuple names proxies, with or without ``tcp://``, or URLs of Managers.

    A list of one may hold any target.
    """
    if not isinstance(value, (list, tuple)):
        return _target_text(option, value, "proxies")
    parts = _target_parts(option, value, "proxies", "['host1:46801', 'host2:46801']")
    if all(part.startswith(("http://", "https://")) for part in parts) or (len(parts) == 1 and "://" in parts[0]):
        return ",".join(parts)
    if any(part.startswith(("tubemq://", "tubemqs://")) for part in parts):
        return _with_scheme(parts, "tubemq://", "tubemqs://", "masters", "mixes kinds of targets; give only masters")
    other = "mixes kinds of targets; give only proxies, or only Managers"
    return _with_scheme(parts, "tcp://", "tls://", "proxies", other)


def _parse_masters(option: Option, value: object) -> str:
    """Return the text that names TubeMQ's masters, from a text or a list; a list of one may hold any target."""
    if not isinstance(value, (list, tuple)):
        return _target_text(option, value, "masters")
    parts = _target_parts(option, value, "masters", "['master1:8715', 'master2:8715']")
    if len(parts) == 1 and "://" in parts[0]:
        return parts[0]
    other = "has a scheme that masters do not; give host:port of each"
    return _with_scheme(parts, "tubemq://", "tubemqs://", "masters", other)


def _target_text(option: Option, value: object, what: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"is of type {type(value).__name__}; give text, or a list of {what}")
    return _parse_text(option, value)


def _target_parts(option: Option, value: list[Any] | tuple[Any, ...], what: str, example: str) -> list[str]:
    parts = [_parse_text(option, part).strip() if isinstance(part, str) else "" for part in value]
    if not parts or not all(parts):
        raise ValueError(f"is not a list of {what}; give e.g. {example}")
    return parts


def _with_scheme(parts: list[str], plain: str, secure: str, what: str, other: str) -> str:
    """Return addresses as one text; each may have the scheme already.  ``other`` complains about any other scheme."""
    scheme = secure if all(part.startswith(secure) for part in parts) else plain
    hosts = [_bracketed(part.removeprefix(scheme)) for part in parts]
    if any(host.startswith((secure, plain)) for host in hosts):
        raise ValueError(f"contains {what} with and without TLS; give only one kind")
    if any("://" in host for host in hosts):
        raise ValueError(other)
    return scheme + ",".join(hosts)


def _bracketed(host: str) -> str:
    """Return an IPv6 address in brackets, as it stands in a target; anything else as it is."""
    if host.count(":") < 2:
        return host
    import socket

    try:
        socket.inet_pton(socket.AF_INET6, host)
    except OSError:
        return host
    return f"[{host}]"


def _parse_secret(_option: Option, value: object) -> Secret:
    if isinstance(value, str):
        value = Secret(plain_text(value))
    elif callable(value):
        value = Secret(value)
    if isinstance(value, Secret):
        if value.has_nul:
            raise ValueError("contains a NUL character; remove it")
        return value
    raise ValueError(f"is of type {type(value).__name__}; give text, 'env:NAME', 'file:PATH', or a function")


def _parse_bool(_option: Option, value: object) -> bool:
    if isinstance(value, bool):
        return value
    word = plain_text(value).strip().lower() if isinstance(value, str) else None
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError("is neither true nor false; write true or false")


def _parse_int(option: Option, value: object) -> int:
    form = f"is not a whole number; allowed is {option.range_text()}"
    if isinstance(value, str):
        try:
            return int(plain_text(value).strip())
        except ValueError:
            raise ValueError(form) from None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise ValueError(form)


def _parse_choice(option: Option, value: object) -> Any:
    word = plain_text(value).strip().lower() if isinstance(value, str) else shown(value)
    if not isinstance(value, bool):
        for choice in option.choices:
            if str(choice) == word:
                return choice
    raise ValueError(f"is not one of {', '.join(repr(choice) for choice in option.choices)}")


def _parse_names(_option: Option, value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        parts: list[object] = [part.strip() for part in plain_text(value).split(",")]
    elif isinstance(value, (list, tuple)):
        parts = list(value)
    else:
        raise ValueError("is not a list; give names, in text with commas between them")
    if not all(isinstance(part, str) for part in parts):
        raise ValueError("contains an item that is not text; give names")
    return tuple(name for name in map(plain_text, parts) if name)


def _parse_topics(_option: Option, value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return topics by name, each with its filter items, from a text, a list of texts, or a mapping."""
    if isinstance(value, Mapping):
        pairs = [(_topic_name(name), _topic_items(items)) for name, items in value.items()]
    else:
        parts = plain_text(value).split(",") if isinstance(value, str) else value
        if not isinstance(parts, (list, tuple)):
            raise ValueError("is not a list of topics; give e.g. ['orders'], or {'clicks': ['view', 'buy']}")
        texts = [_topic_name(part) for part in parts]
        pairs = [_topic_of(text) for text in texts if text or not isinstance(value, str)]
    found: dict[str, tuple[str, ...]] = {}
    for name, items in pairs:
        if set(found.setdefault(name, items)) != set(items):
            raise ValueError(f"has the topic {name!r} twice, with different filter items; keep one")
    return tuple(found.items())


def _topic_of(text: str) -> tuple[str, tuple[str, ...]]:
    name, mark, items = text.partition("=")
    if mark and not items.strip(f"{_ITEM_MARK} "):
        raise ValueError(f"has no filter item behind {text!r}; write '{name}=item', or only the topic")
    return name.strip(), _topic_items(items) if mark else ()


def _topic_name(name: object) -> str:
    if not isinstance(name, str):
        raise ValueError(f"contains {shown(name)}, which is not text; give names of topics")
    return plain_text(name).strip()


def _topic_items(items: object) -> tuple[str, ...]:
    """Return filter items, each once; sets have no order, so theirs are sorted."""
    if items is None:
        return ()
    if isinstance(items, str):
        text = _item_text(items)
        items = [text] if text.startswith(_WHOLE) else [part.strip() for part in text.split(_ITEM_MARK)]
    if isinstance(items, (set, frozenset)):
        items = sorted(items, key=str)
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) for item in items):
        raise ValueError(f"has {shown(items)} as filter items; give a list of texts")
    return tuple(dict.fromkeys(map(_item_text, items)))


def _item_text(item: str) -> str:
    """Return a filter item as a text; what is of a kind (`dataproxy.rocketmq.Sql`) has that in front of it."""
    kind = getattr(type(item), "_filter_kind", "")
    return f"{kind}:{plain_text(item)}" if kind else plain_text(item)


def _parse_offsets(_option: Option, value: object) -> tuple[tuple[str, int], ...]:
    """Return offsets by the keys of partitions, from a mapping, a text, or a list of texts."""
    form = "is not a mapping of partitions to offsets; give e.g. {'1:orders:0': 280}"
    if isinstance(value, Mapping):
        pairs = list(value.items())
    else:
        parts = plain_text(value).split(",") if isinstance(value, str) else value
        if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
            raise ValueError(form)
        split = (plain_text(part).rpartition("=") for part in parts if part.strip())
        pairs = [(key, offset) for key, _, offset in split]
    found: dict[str, int] = {}
    for key, offset in pairs:
        text = plain_text(offset).strip() if isinstance(offset, str) else offset
        if isinstance(text, str):
            whole = text.isascii() and text.isdigit()
        else:  # NumPy's numbers are as good as Python's
            whole = hasattr(type(text), "__index__") and not isinstance(text, bool)
        if not isinstance(key, str) or not whole:
            raise ValueError(form)
        if found.setdefault(plain_text(key).strip(), int(text)) != int(text):
            raise ValueError(f"has the partition {key!r} twice, with different offsets; keep one")
    return tuple(found.items())


_PARSERS: Final[dict[str, Callable[[Option, object], Any]]] = {
    "text": _parse_text,
    "target": _parse_target,
    "masters": _parse_masters,
    "topics": _parse_topics,
    "offsets": _parse_offsets,
    "bool": _parse_bool,
    "int": _parse_int,
    "duration": lambda _option, value: parse_duration(value),
    "size": lambda _option, value: parse_size(value),
    "choice": _parse_choice,
    "names": _parse_names,
    "secret": _parse_secret,
}
