"""Rules over the text of the sources: sizes, documentation, names, words."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.arch.sources import cython_functions, python_functions, tracked

__all__ = [
    "declared_names_missing", "forbidden_constructs", "forbidden_words", "long_files", "long_functions", "stray_files",
    "undocumented",
]  # fmt: skip

PACKAGES = ("dataproxy", "inlong_dataproxy", "pyspark_dataproxy", "pyspark_tubemq")
FILE_LINES = 800
FUNCTION_LINES = 60
SOURCES = {".py", ".pyx", ".pxd", ".pyi", ".c", ".h"}
CONSTRUCTS = {
    "textual include": re.compile(r"^\s*include\s+[\"']", re.MULTILINE),
    "DEF": re.compile(r"^\s*DEF\s+\w", re.MULTILINE),
    "IF": re.compile(r"^\s*(IF|ELIF)\s.*:\s*$", re.MULTILINE),
}
EXTERN = re.compile(r"^\s*cdef\s+extern\b", re.MULTILINE)
# Spelled in pieces, so that this file does not break its own rule.
WORDS = {
    "a path of one machine": re.compile(r"(?<![\w./-])/(home|root|work|tmp|Users)" + r"/\w"),
    "a note of unfinished work": re.compile(r"\b(TO" + "DO|FIX" + "ME|XX" + r"X)\b"),
    "an unfinished function": re.compile(r"\bNotImplemented" + r"Error\b"),
    "the number of a ticket": re.compile(r"\b(issue|ticket)\s+#?\d", re.IGNORECASE),
}
TEXT = SOURCES | {".md", ".toml", ".sh", ".in", ".txt", ".lock", ".java", ".xml", ".yml", ".cfg", ""}
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}


def long_files(root: Path) -> list[str]:
    """Return the source files of more than 800 lines, but for those that a tool writes."""
    found = []
    for path in tracked(root):
        if path.suffix in SOURCES and not path.read_text()[:200].count("Do not edit."):
            count = path.read_text().count("\n")
            if count > FILE_LINES:
                found.append(f"{path.relative_to(root)}: {count} lines")
    return found


def long_functions(root: Path) -> list[str]:
    """Return the functions of more than 60 lines."""
    found = []
    for path in tracked(root):
        functions = []
        if path.suffix == ".py":
            functions = python_functions(path)
        elif path.suffix in (".pyx", ".pxd"):
            functions = cython_functions(path)
        found += [
            f"{path.relative_to(root)}:{function.line}: {function.name} has {function.length} lines"
            for function in functions
            if function.length > FUNCTION_LINES
        ]
    return found


def forbidden_constructs(root: Path) -> list[str]:
    """Return textual includes, DEF and IF in Cython files, and externs outside ``plat``."""
    found = []
    for path in tracked(root):
        if path.suffix not in (".pyx", ".pxd"):
            continue
        text = path.read_text()
        found += [f"{path.relative_to(root)}: {name}" for name, pattern in CONSTRUCTS.items() if pattern.search(text)]
        if EXTERN.search(text) and "plat" not in path.relative_to(root).parts:
            found.append(f"{path.relative_to(root)}: extern outside plat")
    return found


def forbidden_words(root: Path) -> list[str]:
    """Return lines that speak of a machine, of unfinished work or of a ticket."""
    found = []
    for path in tracked(root):
        if path.suffix not in TEXT or path.stat().st_size > 1 << 20:
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            found += [
                f"{path.relative_to(root)}:{number}: {name}" for name, pattern in WORDS.items() if pattern.search(line)
            ]
    return found


def stray_files(root: Path) -> list[str]:
    """Return files that do not belong into the repository, and modules with a name that says nothing."""
    found = []
    for path in tracked(root):
        below = path.relative_to(root)
        generated = below.parts[0] == "cython_ext" and path.suffix in (".c", ".cpp", ".html")
        if generated or path.suffix in (".so", ".pyc", ".log", ".orig", ".rej"):
            found.append(f"{below}: a build product")
        if path.suffix in (".py", ".pyx", ".pxd") and path.stem in VAGUE_NAMES:
            found.append(f"{below}: a name that says nothing")
    return found


def undocumented(root: Path) -> list[str]:
    """Return the public modules, classes and functions without a docstring.

    Compiled functions above ``wire`` that run without the GIL also have to name their thread (``Locality:``) and their
    locks (``Locks:``): each of the two in the function's docstring, or once in the docstring of its module.
    """
    found = []
    for path in tracked(root):
        below = path.relative_to(root)
        if below.parts[0] in PACKAGES and path.suffix == ".py":
            tree = ast.parse(path.read_text())
            found += [f"{below}:{line}: {name}" for name, line in _python_undocumented(tree)]
        elif below.parts[0] == "cython_ext" and path.suffix in (".pyx", ".pxd"):
            found += [f"{below}:{line}: {name}" for name, line in _cython_undocumented(path)]
    return found


def _python_undocumented(tree: ast.Module) -> list[tuple[str, int]]:
    found = [] if ast.get_docstring(tree) else [("module", 1)]
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If | ast.Try):
            waiting += node.body
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
            continue
        overload = any(getattr(mark, "id", "") == "overload" for mark in node.decorator_list)
        if not ast.get_docstring(node) and not overload:
            found.append((node.name, node.lineno))
        if isinstance(node, ast.ClassDef):
            waiting += node.body
    return found


def below_core(path: Path) -> tuple[str, ...]:
    """Return the folders of a compiled module below the core; none for other files."""
    parts = path.parent.parts
    return parts[parts.index("_core") + 1 :] if "_core" in parts else ()


def _cython_undocumented(path: Path) -> list[tuple[str, int]]:
    found = []
    head = re.match(r'(?:#.*\n|\s)*r?"""(.*?)"""', path.read_text(), re.DOTALL)
    if head is None:
        found.append(("module", 1))
    said = head[1] if head else ""
    threaded = bool({"conn", "net", "producer", "server"} & set(below_core(path)))
    for function in cython_functions(path):
        if function.name.startswith("_"):
            continue
        if not function.docstring:
            found.append((function.name, function.line))
        elif threaded and "nogil" in function.signature:
            missing = [word for word in ("Locality:", "Locks:") if word not in said + function.docstring]
            if missing:
                found.append((f"{function.name}: names no {' '.join(missing)}", function.line))
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r"^(?:cdef |cpdef )?class\s+([A-Za-z]\w*).*:\s*$", line)
        if match and path.suffix == ".pyx" and not _documented_class(path, number):
            found.append((match[1], number))
    return found


def _documented_class(path: Path, line: int) -> bool:
    rest = "\n".join(path.read_text().splitlines()[line:]).lstrip()
    return rest.startswith(('"""', 'r"""'))


def declared_names_missing(root: Path) -> list[str]:
    """Return the Python modules without ``__all__``, and names in it that the module does not define."""
    found = []
    for path in tracked(root):
        below = path.relative_to(root)
        if below.parts[0] not in PACKAGES or path.suffix != ".py":
            continue
        names = _all_of(ast.parse(path.read_text()))
        if names is None:
            found.append(f"{below}: no __all__")
        else:
            text = path.read_text()
            found += [f"{below}: {name} of __all__" for name in names if len(re.findall(rf"\b{name}\b", text)) < 2]
    return found


def _all_of(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(getattr(target, "id", "") == "__all__" for target in targets):
            value = getattr(node, "value", None)
            if isinstance(value, ast.List | ast.Tuple):
                return [item.value for item in value.elts if isinstance(item, ast.Constant)]
            return []
    return None
