"""Folders: how many modules they hold, what their heads say, and which way they import."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.arch.cycles import knots, module_uses

__all__ = ["crowded_folders", "folder_cycles", "headless_folders", "unnamed_modules"]

MOST_MODULES = 14
HEAD = ("What lives here.", "Threads.", "What it may use.")
CORE = Path("cython_ext/dataproxy/_core")
CORE_HEADS = ("__init__.pxd", "README.md")
QUOTED = re.compile(r"`+([\w./]+)`+")


def _packages(root: Path) -> list[Path]:
    """Return the folders of the Python packages; those of the compiled core have their own heads."""
    names = ("dataproxy", "inlong_dataproxy", "pyspark_dataproxy", "pyspark_tubemq")
    inits = [path for name in names for path in (root / name).rglob("__init__.py")]
    return [path.parent for path in sorted(inits) if "_core" not in path.parts]


def _modules(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.py") if path.stem not in ("__init__", "__main__"))


def crowded_folders(root: Path) -> list[str]:
    """Return the folders of more than 14 modules."""
    counts = {folder: len(_modules(folder)) for folder in _packages(root)}
    return [f"{folder.relative_to(root)}: {n} modules" for folder, n in counts.items() if n > MOST_MODULES]


def headless_folders(root: Path) -> list[str]:
    """Return what the heads of inner folders, such as ``dataproxy/spark/planning``, do not say.

    A head is the docstring of the folder's ``__init__.py``: it names each module, the threads, and what may be used.
    """
    found = []
    for folder in _packages(root):
        if len(folder.relative_to(root).parts) < 3:
            continue
        head = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
        missing = [words for words in HEAD if words not in head]
        missing += [name for name in _modules(folder) if f"`{name}`" not in head]
        found += [f"{folder.relative_to(root)}: its head says nothing of {words!r}" for words in missing]
    return found


def unnamed_modules(root: Path) -> list[str]:
    """Return the modules that the heads of their folders do not name: a newcomer finds a module by this page alone.

    In the package ``dataproxy`` itself the page is docs/internals.md.  A wire is described by the head of ``wire``;
    the modules of ``plat`` are declarations, each named after what it declares.
    """
    pages = {folder: (folder / "__init__.py").read_text() for folder in _packages(root)}
    pages = {folder: ast.get_docstring(ast.parse(text)) or "" for folder, text in pages.items()}
    found = []
    for folder, head in pages.items():
        inner = folder.parent in pages
        page = head if inner else (root / "docs/internals.md").read_text()
        if folder.name == "dataproxy" or inner:
            found += _unnamed(root, folder, _modules(folder), page)
    core = root / CORE
    for folder in sorted({path.parent for path in core.rglob("*.p[xy][dx]")} - {core / "plat"}):
        home = folder.parent if folder.parent == core / "wire" else folder
        page = "".join((home / name).read_text() for name in CORE_HEADS if (home / name).is_file())
        modules = {path.stem for path in folder.glob("*.p[xy][dx]")} - {"__init__"}
        found += _unnamed(root, folder, sorted(modules), page)
    return found


def _unnamed(root: Path, folder: Path, modules: list[str], page: str) -> list[str]:
    named = set(QUOTED.findall(page))
    return [f"{folder.relative_to(root)}: its page does not name {one!r}" for one in modules if one not in named]


def folder_cycles(root: Path) -> list[str]:
    """Return a cycle of each knot of inner folders that import one another."""
    uses: dict[str, set[str]] = {}
    modules = module_uses(root)
    for name, targets in modules.items():
        own = _inner(name, modules)
        if own:
            uses.setdefault(own, set()).update(_inner(target, modules) for target in targets)
    return [" -> ".join(knot) for knot in knots({own: (into - {own, ""}) & set(uses) for own, into in uses.items()})]


def _inner(name: str, modules: dict[str, set[str]]) -> str:
    """Return the inner folder of a module, "" for a module outside of them."""
    package = name if any(other.startswith(f"{name}.") for other in modules) else name.rpartition(".")[0]
    return package if package.count(".") > 1 and "._core" not in package else ""
