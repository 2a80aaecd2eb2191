"""Public names of public classes are those that docs/api.md lists: what tab completion shows is what may be used."""

import ast
import importlib
import inspect
import re
import textwrap
from pathlib import Path

import pytest

import dataproxy

PACKAGE = Path(dataproxy.__file__).parent  # installed, when a wheel is tested
PAGE = Path(__file__).parents[2] / "docs" / "api.md"
MODULES = (
    "dataproxy",
    "dataproxy.codes",
    "dataproxy.config",
    "dataproxy.doctor",
    "dataproxy.errors",
    "dataproxy.hub",
    "dataproxy.outcomes",
    "dataproxy.perf",
    "dataproxy.rocketmq",
    "dataproxy.spark",
    "dataproxy.testing",
    "dataproxy.types",
    "inlong_dataproxy",
)
SPARKS_OWN = {"dataproxy.spark.DataProxyDataSource", "dataproxy.spark.TubeMQDataSource"}  # not there with older Sparks
OPTIONS = {
    "dataproxy.config.ProducerConfig": dataproxy.config.PRODUCER,
    "dataproxy.config.ConsumerConfig": dataproxy.config.CONSUMER,
    "dataproxy.config.HubConfig": dataproxy.config.HUB,
}


def documented() -> dict[str, set[str]]:
    """Return the names that the page lists for each class, by its full name."""
    rows = re.findall(r"^\| `([\w.]+)` \| (.*?) \|", PAGE.read_text(), re.MULTILINE)
    found = {name: set(re.findall(r"`(\w+)`", names)) for name, names in rows}
    assert len(found) == len(rows)
    return found


def documented_here() -> list[str]:
    """Return the classes of the page that this version of Spark allows."""
    return sorted(name for name in documented() if name not in SPARKS_OWN or name in exported())


def ours(kind: type) -> list[type]:
    """Return the classes of this package that a class is made of."""
    own = ("dataproxy", "inlong_dataproxy", "pyspark_dataproxy", "pyspark_tubemq")
    return [base for base in kind.__mro__ if base.__module__.split(".")[0] in own]


def names_of(kind: type) -> set[str]:
    """Return the public names of a class and of its objects; without those that it has from foreign classes."""
    foreign = {name for base in kind.__mro__ if base not in ours(kind) for name in vars(base)}
    found = set(dir(kind)) - foreign
    for base in ours(kind):
        found |= set(inspect.get_annotations(base))
        if not base.__module__.startswith("dataproxy._core"):
            for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(base)))):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    found |= {node.attr} if getattr(node.value, "id", "") == "self" else set()
    return {name for name in found if not name.startswith("_")}


def exported() -> dict[str, type]:
    """Return every public class by the shortest name that it can be imported by."""
    found: dict[type, str] = {}
    for module in MODULES:
        home = importlib.import_module(module)
        for name in home.__all__:
            thing = getattr(home, name, None)  # older Sparks have no data sources
            if inspect.isclass(thing):
                found.setdefault(thing, f"{module}.{name}")
    return {name: kind for kind, name in found.items()}


def resolve(name: str) -> type:
    """Return the class of a full name."""
    module, _, last = name.rpartition(".")
    kind = getattr(importlib.import_module(module), last)
    assert inspect.isclass(kind)
    return kind


def documented_of(kind: type) -> set[str]:
    """Return the names that the page lists for a class; an error has those of its bases, too."""
    known = documented()
    bases = kind.__mro__ if issubclass(kind, dataproxy.DataProxyError) else [kind]
    return set().union(
        *(names for name, names in known.items() if name in documented_here() and resolve(name) in bases)
    )


def test_each_public_class_is_on_the_page() -> None:
    plain = {name for name, kind in exported().items() if not issubclass(kind, dataproxy.DataProxyError)}
    assert not plain - set(documented())


@pytest.mark.parametrize("name", sorted({*documented_here(), *exported()}))
def test_public_names_are_those_of_the_page(name: str) -> None:
    found = names_of(resolve(name))
    if name in OPTIONS:
        found -= set(OPTIONS[name].by_name)
    assert found == documented_of(resolve(name)), (
        "docs/api.md lists what is public: document it, or begin its name with _"
    )


def stub_names(kind: type) -> set[str] | None:
    """Return the public names that stubs give to a class of compiled code, with its compiled bases; None for others."""
    found: set[str] = set()
    for base in kind.__mro__:
        if base.__module__.startswith("dataproxy._core"):
            stub = PACKAGE.parent.joinpath(*base.__module__.split(".")).with_suffix(".pyi")
            for node in ast.parse(stub.read_text()).body:
                if isinstance(node, ast.ClassDef) and node.name == base.__name__:
                    found |= {one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
                    found |= {one.target.id for one in node.body if isinstance(one, ast.AnnAssign)}  # type: ignore[union-attr]
    return {name for name in found if not name.startswith("_")} or None


@pytest.mark.parametrize("name", [name for name in documented_here() if stub_names(resolve(name))])
def test_stubs_have_no_other_names_than_the_page(name: str) -> None:
    found = stub_names(resolve(name))
    assert found is not None
    assert found <= documented()[name]
