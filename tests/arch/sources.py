"""Reading of the sources for the architecture rules: import lines, functions with their extent, tracked files."""

from __future__ import annotations

import ast
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Function", "Import", "cython_functions", "cython_imports", "python_functions", "python_imports", "tracked"]

CIMPORT = re.compile(r"^\s*from\s+([\w.]+)\s+(?:cimport|import)\s+(.*)$|^\s*(?:cimport|import)\s+(.+)$")
FUNCTION = re.compile(r"^(\s*)(?:async\s+def|def|cdef|cpdef)\b([^=]*?)\b(\w+)\s*\(")
NOT_WALKED = {".git", ".cache", ".interop", "build", "dist", "demo-out", "__pycache__"}


@dataclass(frozen=True, slots=True)
class Import:
    """One module that a file imports or cimports."""

    module: str
    line: int
    lazy: bool = False  # inside a function, or for the type checker only


@dataclass(frozen=True, slots=True)
class Function:
    """One function of a file."""

    name: str
    line: int
    length: int
    signature: str
    docstring: str | None


def tracked(root: Path) -> list[Path]:
    """Return the files of the project below ``root``, in order."""
    if (root / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            capture_output=True,
            check=True,
        )
        names = [root / name for name in listed.stdout.decode().split("\0") if name]
    else:
        names = [path for path in root.rglob("*") if not NOT_WALKED & set(path.relative_to(root).parts)]
    return sorted(path for path in names if path.is_file())


def python_imports(path: Path) -> list[Import]:
    """Return what a ``.py`` or ``.pyi`` file imports; ``from a import b`` counts as ``a.b`` and as ``a``."""
    found: list[Import] = []

    def visit(node: ast.AST, lazy: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend(Import(alias.name, node.lineno, lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            found.extend(Import(f"{base}.{alias.name}", node.lineno, lazy) for alias in node.names)
        inside = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        inside = inside or (isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"))
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(ast.parse(path.read_text()), False)
    return found


def cython_imports(path: Path) -> list[Import]:
    """Return what a ``.pyx`` or ``.pxd`` file imports or cimports."""
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = CIMPORT.match(line)
        if match is None:
            continue
        if match[1] is None:
            found += [Import(name.split(" as ")[0].strip(), number) for name in match[3].split(",")]
        elif re.fullmatch(r"[\w.]*\bwire|[\w.]*_core|\.+", match[1]):
            # `from package cimport module`: each name is a module of its own
            names = match[2].strip("() ").split(",")
            found += [Import(f"{match[1]}.{name.split(' as ')[0].strip()}", number) for name in names if name.strip()]
        else:
            found.append(Import(match[1], number))
    return found


def python_functions(path: Path) -> list[Function]:
    """Return every function and method of a ``.py`` file."""
    tree = ast.parse(path.read_text())
    return [
        Function(
            node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1, "", ast.get_docstring(node)
        )
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def cython_functions(path: Path) -> list[Function]:
    """Return every function with a body of a ``.pyx`` or ``.pxd`` file (declarations are left out)."""
    lines = path.read_text().splitlines()
    found = []
    for start, line in enumerate(lines):
        match = FUNCTION.match(line.split("#")[0])
        if match is None or match[2].lstrip().startswith(("extern", "class")):
            continue
        body = start
        signature = line.split("#")[0]
        while signature.count("(") > signature.count(")") and body + 1 < len(lines):
            body += 1
            signature += " " + lines[body].split("#")[0].strip()
        if not re.search(r":\s*(?:return\b.*|pass)?$", signature):
            continue
        end = _end_of_block(lines, body, len(match[1]))
        found.append(Function(match[3], start + 1, end - start, signature, _docstring(lines, body + 1, end)))
    return found


def _end_of_block(lines: list[str], head: int, indent: int) -> int:
    end = head + 1
    for number in range(head + 1, len(lines)):
        text = lines[number]
        if not text.strip():
            continue
        if len(text) - len(text.lstrip()) <= indent:
            break
        end = number + 1
    return end


def _docstring(lines: list[str], first: int, end: int) -> str | None:
    text = "\n".join(lines[first:end]).strip()
    match = re.match(r'r?"""(.*?)"""', text, re.DOTALL)
    return match[1] if match else None
