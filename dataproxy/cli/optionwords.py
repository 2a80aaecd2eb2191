"""Finding options by any of their names: ours, Spark's spelling, and names from other clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dataproxy.config.option import Option, OptionTable

__all__ = [
    "NamedOption",
    "every_option",
    "find_options",
    "foreign_answer",
    "foreign_names",
    "plain_option",
]

_PREFIX: Final = "dataproxy."
#: Whose option names a part understands beside its own.
_CLIENTS: Final = {"producer": "InLong's SDKs", "consumer": "TubeMQ's consumers"}


class NamedOption(NamedTuple):
    """Hold one option with the part that it belongs to, its environment variable ("" for none), and its page."""

    part: str
    option: Option
    variable: str
    page: str

    @property
    def name(self) -> str:
        """Return the option's name."""
        return self.option.name

    def facts(self) -> dict[str, str]:
        """Return its facts (type, default and so on) as texts."""
        option = self.option
        return {
            "option": option.name,
            "part": self.part,
            "meaning": option.doc,
            "type": option.type_text.replace("\\|", "|"),
            "default": option.format(option.default),
            "range": option.range_text(),
            "environment": self.variable,
            "page": self.page,
        }


def plain_option(word: str) -> str:
    """Return an option name without the prefix that Spark's users may write."""
    return word.strip().removeprefix(_PREFIX)


def every_option() -> Iterator[NamedOption]:
    """Yield the options of producer, consumer and hub, then those that only Spark's sink, reader and source have."""
    from dataproxy.config.tables import TABLES
    from dataproxy.config.tables.spark import READ_OPTIONS, SINK_OPTIONS, SOURCE_OPTIONS

    for table in TABLES:
        for option in table.options:
            variable = f"{table.env_prefix}{option.name.upper()}"
            yield NamedOption(table.section, option, variable, "CONFIGURATION.md")
    for part, options in (("Spark sink", SINK_OPTIONS), ("Spark reader", READ_OPTIONS)):
        for option in options:
            yield NamedOption(part, option, "", "docs/spark.md")
    for option in SOURCE_OPTIONS:
        yield NamedOption("Spark source", option, "", "docs/spark-source.md")


def find_options(word: str) -> list[NamedOption]:
    """Return the options with this name, in any of their spellings.

    Upper and lower case differ, except in Spark's spelling: ``store`` is an option, ``STORE`` a code.
    """
    from dataproxy.config.spark import camel_case

    name = plain_option(word)

    def is_meant(one: NamedOption) -> bool:
        if not one.variable:
            return name.lower() == one.name.lower()
        return name in (one.name, camel_case(one.name), one.variable)

    return [one for one in every_option() if is_meant(one)]


def foreign_names(table: OptionTable) -> Iterator[tuple[str, str]]:
    """Yield the known option names of other clients, each with the client's name."""
    for alias in table.aliases:
        yield alias.name, _CLIENTS[table.section]
    for refusal in table.refusals:
        yield refusal.name, _CLIENTS[table.section]
    for word in table.words:
        for name in word.names:
            yield name, "Kafka's clients"


def foreign_answer(word: str) -> tuple[str, str, str] | None:
    """Return (name, its client, what replaces it here); None if no other client has such an option."""
    from dataproxy.config.tables import TABLES

    name = plain_option(word)
    for table in TABLES:
        alias, refusal = table.by_alias.get(name.lower()), table.by_refusal.get(name.lower())
        if alias is not None:
            return alias.name, _CLIENTS[table.section], f"it is accepted and means {alias.meaning}"
        if refusal is not None:
            return refusal.name, _CLIENTS[table.section], f"it has no counterpart here: {refusal.reason}"
    said = {table.section: answer for table in TABLES if (answer := table.answer(name))}
    if len(set(said.values())) > 1:
        return name, "Kafka's clients", "; ".join(f"for a {section}, {answer}" for section, answer in said.items())
    return (name, "Kafka's clients", next(iter(said.values()))) if said else None
