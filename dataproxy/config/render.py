"""CONFIGURATION.md, docs/errors.md, samples in ``conf/``, types of options: written by ``python -m`` this module.

So are the tables of docs/migration.md, whose other text stays.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dataproxy.config.migration import PAGE, with_tables
from dataproxy.config.spark import camel_case
from dataproxy.config.tables import TABLES
from dataproxy.config.tables.consumer import CONSUMER
from dataproxy.config.tables.hub import HUB
from dataproxy.config.tables.producer import PRODUCER
from dataproxy.config.tables.spark import OF_CONSUMERS, SOURCE_OPTIONS
from dataproxy.explain import render_page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dataproxy.config.option import Option, OptionTable

__all__ = ["main", "rendered_files"]

_WIDTH: Final = 100
#: Options that a sample sets; the other options are comments in it, with their defaults.
_SAMPLE_VALUES: Final[dict[str, dict[str, Any]]] = {
    "producer": {"target": "tcp://127.0.0.1:46801", "group_id": "b_app"},
    "consumer": {
        "target": "tubemq://127.0.0.1:8715",
        "group": "b_app_readers",
        "topics": (("b_app", ()), ("b_clicks", ("view", "buy"))),
    },
    "hub": {"store": "hub-store", "port": 46801, "manager_port": 8083},
}

_INTRODUCTION: Final = """\
<!-- Written by `python -m dataproxy.config.render` from the tables in dataproxy/config. Do not edit. -->

# Configuration

Every option can be given in each of these places; a later one wins:

1. the default in the tables below;
2. a file, TOML or JSON by its suffix (samples are in `conf/`): options stand at the top or in a table named
   `producer`, `consumer` or `hub`;
3. an environment variable: `DATAPROXY_` (producer), `DATAPROXY_CONSUMER_` (consumer) or `DATAPROXY_HUB_` (hub) and the
   name in capitals, e.g. `DATAPROXY_BATCH_BYTES=64KiB`; an empty variable counts as not set;
4. an argument of `dataproxy.Producer(...)` or `dataproxy.hub.Hub(...)`, an option of Spark, `-o name=value` of the
   command line.

`dataproxy config show --origin` prints each value and where it comes from.

**Names.** An unknown name is refused together with the nearest known one; for an option of another part the error says
whose it is. Environment variables are the one exception, since orchestrators put variables of their own next to ours:
those that look like a mistyped option are refused, others are left alone. Spark accepts the names in lowerCamelCase
(`batchBytes`) or with the prefix `dataproxy.` (`dataproxy.batch_bytes`), without regard to case.

**Durations** are numbers of seconds or texts with a unit: `us`, `ms`, `s`, `m` (or `min`), `h`, `d`; `1m30s` is fine.
**Sizes** are numbers of bytes or texts with a unit: `KiB`, `MiB`, `GiB`, `TiB` (powers of 1024), `KB`, `MB`, `GB`, `TB`
(powers of 1000), `B`. **Switches** are `true` or `false`.

**Defaults give way.** Some options bound others. When only one of the two is set, the other one's default is lowered to
fit, or raised where that asks nothing of memory or of others (its origin then says so); `max_frame_bytes` and
`buffer_bytes` are never raised by themselves. Two set values that clash are refused.
"""

_LOGGING_SAMPLE: Final = """\
# Written by `python -m dataproxy.config.render`. A sample for `dataproxy --log-config conf/logging.toml ...`, or for
#   logging.config.dictConfig(tomllib.load(open("conf/logging.toml", "rb")))
# The library logs below "dataproxy" and writes nothing by itself.
version = 1
disable_existing_loggers = false

[formatters.plain]
format = "%(asctime)s %(levelname)s %(name)s: %(message)s"

[handlers.stderr]
class = "logging.StreamHandler"
stream = "ext://sys.stderr"
formatter = "plain"

[loggers.dataproxy]
level = "INFO"
handlers = ["stderr"]
propagate = false
"""


#: What stands above the names of other SDKs that are taken, and above those that are not.
_INLONG_NAMES: Final = (
    """
## Names of the official SDKs

Configurations of InLong's C++, Python, Java and Go SDKs can be moved over as they are, also their JSON files with
the table `init-param`; [docs/migration.md](docs/migration.md) has the names SDK by SDK, and the rest of a move. These
names are understood, each with a warning in the log (`dataproxy.config`), so that they can be replaced one by one:
""",
    """\
These have no counterpart. In a file each of them is left out, with a warning that says why; everywhere else (arguments,
options of Spark and of the command line) it is refused with the reason:""",
)
_TUBEMQ_NAMES: Final = (
    """
## Names of TubeMQ's consumers

Settings of TubeMQ's own consumers in Java and C++ are understood as options of the consumer, each with a warning in the
log. Their names are those of setters without `set` (`msgNotFoundWaitPeriodMs`), or of arguments (`consumerGroup`).
""",
    """\
These have no counterpart: in a file they are left out with a warning, elsewhere they are refused with the reason:""",
)

_SOURCE_TEXT: Final = """
## Spark source

`spark.read.format("tubemq")` and `spark.readStream` ([docs/spark-source.md](docs/spark-source.md)) have these options
of a consumer: {shared}. Their own are:

"""

#: Python types that are accepted for each kind of option.
_TYPES: Final = {
    "text": "str",
    "target": "str | list[str] | tuple[str, ...]",
    "masters": "str | list[str] | tuple[str, ...]",
    "bool": "bool | str",
    "int": "int | str",
    "duration": "float | str | timedelta",
    "size": "int | str",
    "offsets": "str | list[str] | Mapping[str, int]",
    "names": "str | list[str] | tuple[str, ...]",
    "secret": "str | Secret | Callable[[], str | bytes]",
}

#: Classes of options by keyword, and the options that are arguments of their own.
_CLASSES: Final[tuple[tuple[OptionTable, str, tuple[str, ...]], ...]] = (
    (PRODUCER, "ProducerOptions", ("target", "group_id")),
    (CONSUMER, "ConsumerOptions", ("target", "group", "topics")),
    (HUB, "HubOptions", ("store",)),
)

_TYPED_HEAD: Final = '''\
"""Options as keyword arguments, for type checkers.  Written by ``python -m dataproxy.config.render``; do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import timedelta

    from dataproxy.config.secret import Secret

__all__ = ["ConsumerOptions", "HubOptions", "ProducerOptions"]


'''


def rendered_files() -> dict[str, str]:
    """Return the text of every generated file by its path below the project's folder."""
    return {
        "CONFIGURATION.md": _manual(),
        "conf/producer.toml": _sample(PRODUCER),
        "conf/consumer.toml": _sample(CONSUMER),
        "conf/hub.toml": _sample(HUB),
        "conf/logging.toml": _LOGGING_SAMPLE,
        "docs/errors.md": render_page(),
        "dataproxy/config/typed.py": _typed(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the generated files, or with ``--check`` compare them; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m dataproxy.config.render", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is not current")
    parser.add_argument("--root", type=Path, default=Path(), help="the project's folder (default: the current one)")
    chosen = parser.parse_args(arguments)
    files = rendered_files()
    page = _text_at(chosen.root / PAGE)
    if page is not None:
        files[PAGE] = with_tables(page, PRODUCER)
    stale = [name for name, text in files.items() if _text_at(chosen.root / name) != text]
    for name in stale:
        if not chosen.check:
            path = chosen.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[name], encoding="utf-8")
        sys.stderr.write(
            f"{name} {'is not current; run python -m dataproxy.config.render' if chosen.check else 'written'}\n"
        )
    return 1 if chosen.check and stale else 0


def _text_at(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def _manual() -> str:
    sections = [f"\n## {table.title}\n\n" + "\n".join(_option_rows(table)) + "\n" for table in TABLES]
    sections.append(_source_section())
    words = [_WORDS, _words(PRODUCER), _READ_WORDS, _words(CONSUMER)]
    names = [_foreign_names(PRODUCER, *_INLONG_NAMES), _foreign_names(CONSUMER, *_TUBEMQ_NAMES), *words]
    return "".join([_INTRODUCTION, *sections, *names])


def _source_section() -> str:
    """Return the options that only Spark's source of TubeMQ's topics has."""
    shared = ", ".join(f"`{camel_case(name)}`" for name in OF_CONSUMERS)
    rows = [
        f"| `{option.name}` | {option.type_text} | {f'`{default}`' if default else '-'} |"
        f" {option.range_text() or '-'} | {option.importance} | {option.doc} |"
        for option in SOURCE_OPTIONS
        for default in [option.format(option.default)]
    ]
    head = "| option | type | default | range | importance | meaning |\n|---|---|---|---|---|---|\n"
    return f"{_SOURCE_TEXT.format(shared=shared)}{head}" + "\n".join(rows) + "\n"


def _option_rows(table: OptionTable) -> Iterator[str]:
    spark = table is PRODUCER
    yield f"| option | type | default | range | importance |{' Spark |' if spark else ''} meaning |"
    yield f"|---|---|---|---|---|{'---|' if spark else ''}---|"
    for option in table.options:
        camel = f" `{camel_case(option.name)}` |" if spark else ""
        default = option.format(option.default)
        yield (
            f"| `{option.name}` | {option.type_text} | {f'`{default}`' if default else '-'} |"
            f" {option.range_text() or '-'} | {option.importance} |{camel} {option.doc} |"
        )


def _foreign_names(table: OptionTable, taken: str, refused: str) -> str:
    """Return the tables of other SDKs' names, each below its text."""
    aliases = "\n".join(f"| `{alias.name}` | {alias.meaning} |" for alias in table.aliases)
    refusals = "\n".join(f"| `{refusal.name}` | {refusal.reason} |" for refusal in table.refusals)
    return f"""{taken}
| name there | stands for |
|---|---|
{aliases}

{refused}

| name there | why |
|---|---|
{refusals}
"""


_WORDS = """
## Names of Kafka's clients

These are not taken: units differ. The error says what each is here, for `linger.ms` as for `linger_ms`;
[docs/kafka.md](docs/kafka.md) has the rest of a move. Given to a producer:
"""

_READ_WORDS = """
Given to a consumer:
"""


def _words(table: OptionTable) -> str:
    rows = []
    for word in table.words:
        answer = word.answer.format_map({name: f"`{name}`" for name in table.by_name})
        rows.append(f"| {', '.join(f'`{name}`' for name in word.names)} | {answer} |")
    return "\n| name there | here |\n|---|---|\n" + "\n".join(rows) + "\n"


def _typed() -> str:
    parts = [_TYPED_HEAD]
    for table, name, given in _CLASSES:
        lines = [f"{option.name}: {_type_of(option)}" for option in table.options if option.name not in given]
        parts.append(
            f'class {name}(TypedDict, total=False):\n    """Options that a {table.title} takes by keyword."""\n\n'
        )
        parts.append("".join(f"    {line}\n" for line in lines))
        parts.append("\n\n")
    return "".join(parts).rstrip("\n") + "\n"


def _type_of(option: Option) -> str:
    """Return the type of an option's argument as an annotation; None counts as not given."""
    if option.kind == "choice":
        return f"Literal[{', '.join(_quoted(choice) for choice in option.choices)}] | None"
    return f"{_TYPES[option.kind]} | None"


def _quoted(choice: object) -> str:
    return f'"{choice}"' if isinstance(choice, str) else str(choice)


def _sample(table: OptionTable) -> str:
    chosen = _SAMPLE_VALUES[table.section]
    lines = [
        f"# {table.title} options. Written by `python -m dataproxy.config.render`; CONFIGURATION.md has the details.",
        "# A line that is commented out shows the default.",
    ]
    for option in table.options:
        limits = option.range_text()
        doc = option.doc.replace("`", "'") + (f" Range: {limits}." if limits else "")
        if option.kind == "choice":
            doc += " One of: " + ", ".join(str(choice) for choice in option.choices) + "."
        wrapped = textwrap.wrap(doc, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
        sign = "" if option.name in chosen else "#"
        value = _toml(option, chosen.get(option.name, option.default))
        lines += ["", *wrapped, f"{sign}{option.name} = {value}"]
    return "\n".join(lines) + "\n"


def _toml(option: Option, value: Any) -> str:
    if option.kind in ("names", "topics", "offsets"):
        return "[" + ", ".join(f'"{item}"' for item in option.format_items(value)) + "]"
    if isinstance(value, bool) or option.kind == "int":
        return str(value).lower()
    if isinstance(value, int) and option.kind == "choice":
        return str(value)
    if option.secret:
        return '""'
    return f'"{option.format(value)}"'


if __name__ == "__main__":
    sys.exit(main())
