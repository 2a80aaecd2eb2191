"""Cycles of imports between the modules of the project, Python (imports inside functions included) and compiled."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

__all__ = ["cimport_cycles", "import_cycles", "knots", "module_uses"]

PACKAGES = ("dataproxy", "inlong_dataproxy", "pyspark_dataproxy", "pyspark_tubemq")
_CIMPORT = re.compile(r"^\s*from (dataproxy\._core[\w.]*) cimport", re.MULTILINE)


def import_cycles(root: Path) -> list[str]:
    """Return a cycle, as ``a -> b -> a``, of each knot of modules that import one another.

    An import for the type checker alone does not count, because it never runs.
    """
    return [" -> ".join(knot) for knot in knots(module_uses(root))]


def cimport_cycles(root: Path) -> list[str]:
    """Return a cycle of each knot of compiled modules that cimport one another; a module is its pyx and its pxd."""
    sources = root / "cython_ext"
    uses: dict[str, set[str]] = defaultdict(set)
    for path in sorted([*sources.rglob("*.pyx"), *sources.rglob("*.pxd")]):
        own = ".".join(path.relative_to(sources).with_suffix("").parts)
        uses[own] |= set(_CIMPORT.findall(path.read_text())) - {own}
    for targets in list(uses.values()):
        for target in targets:
            uses.setdefault(target, set())
    return [" -> ".join(knot) for knot in knots(uses)]


def module_uses(root: Path) -> dict[str, set[str]]:
    """Return the modules of the project that each of its Python modules imports."""
    files = {_name(root, path): path for package in PACKAGES for path in sorted((root / package).rglob("*.py"))}
    return {name: _uses(path, name, set(files)) for name, path in files.items()}


def _name(root: Path, path: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _uses(path: Path, own: str, names: set[str]) -> set[str]:
    """Return the modules of ``names`` that a file imports, at module level or inside a function."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inside & names or {node.module}
        waiting += ast.iter_child_nodes(node)
    found &= names
    # What is outside a package runs its ``__init__`` when it imports a module of it.
    parents = {parent for name in found for parent in _parents(name) if not f"{own}.".startswith(f"{parent}.")}
    return (found | parents & names) - {own}


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts))]


def knots(uses: dict[str, set[str]]) -> list[list[str]]:
    """Return a shortest cycle for each set of modules that reach one another."""
    found = []
    seen: set[str] = set()
    for name in sorted(uses):
        if name in seen:
            continue
        cycle = _shortest(uses, name)
        if cycle:
            found.append(cycle)
            seen |= _reached(uses, name) & _reached(_turned(uses), name)
    return found


def _shortest(uses: dict[str, set[str]], start: str) -> list[str]:
    """Return the shortest way from a module back to itself, empty without one."""
    before: dict[str, str] = {}
    line = [start]
    for name in line:
        for target in sorted(uses[name]):
            if target == start:
                way = [start, name]
                while way[-1] != start:
                    way.append(before[way[-1]])
                return way[::-1]
            if target not in before:
                before[target] = name
                line.append(target)
    return []


def _reached(uses: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for name in uses[waiting.pop()] - found:
            found.add(name)
            waiting.append(name)
    return found


def _turned(uses: dict[str, set[str]]) -> dict[str, set[str]]:
    turned: dict[str, set[str]] = defaultdict(set)
    for name, targets in uses.items():
        for target in targets:
            turned[target].add(name)
    return turned
