"""Finds code that changes what belongs to the interpreter, or a type after it is ready: patterns with their reasons."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["RULES", "Rule", "changes"]

COMPILED = "cython_ext"
PYTHON = "dataproxy", "inlong_dataproxy", "pyspark_dataproxy", "pyspark_tubemq"
TUPLE_FILLED = "cython_ext/dataproxy/_core/producer/results/outcomes.pyx"
OWN_PROCESS = "dataproxy/cli/main.py"  # a command's own process, whose standard streams may be closed
CALLTYPES = "cython_ext/dataproxy/_core/plat/dp_calltypes.h"


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern that no source has, why, and the files that may have it."""

    name: str
    pattern: re.Pattern[str]
    reason: str
    folders: tuple[str, ...] = (COMPILED,)
    allowed: tuple[str, ...] = ()


def _rule(name: str, pattern: str, reason: str, *, python: bool = False, allowed: tuple[str, ...] = ()) -> Rule:
    return Rule(name, re.compile(pattern), reason, PYTHON if python else (COMPILED,), allowed)


RULES = (
    _rule(
        "type dictionary",
        r"\btp_dict\b|\bPyType_GetDict\b|\bPyType_Modified\b",
        "the dictionary of a ready type belongs to the interpreter, which caches what it finds there",
    ),
    _rule(
        "type slot",
        r"(?:->|(?<=[\w)\]])\.)\s*(?:tp|am|nb|sq|mp|bf)_\w+\s*(?:->\s*\w+\s*)?[|&^+-]?=(?!=)",
        "slots and flags are given in the type's initialiser, before PyType_Ready copies and caches them",
    ),
    _rule(
        "method descriptor",
        r"\bml_meth\b|\bml_flags\b|\bd_method\b|\bPyMethodDescrObject\b|\bPyMethodDef\b|->\s*vectorcall\s*=(?!=)",
        "a function that others may hold is never made to call something else",
    ),
    _rule(
        "vectorcall field of a foreign object",
        r"\btp_vectorcall_offset\b",
        "only types of our own have a field that we fill, and only their functions write to it",
        allowed=(CALLTYPES,),
    ),
    _rule("type of an object", r"\bPy_SET_TYPE\b|\bob_type\b|__class__\s*=(?!=)", "an object keeps its type"),
    _rule(
        "reference count",
        r"\bPy_SET_REFCNT\b|\bob_refcnt\b|\bPy_REFCNT\b|\bPy_SET_SIZE\b|\bob_size\b",
        "that nobody else refers to an object gives no permission to change it: weak references, the collector and "
        "other threads find it too",
    ),
    _rule(
        "tuple",
        r"\bPyTuple_SET_ITEM\b|\bPyTuple_SetItem\b|\b_PyTuple_Resize\b|\bob_item\b",
        "a tuple is filled once, by the function that has just made it",
        allowed=(TUPLE_FILLED,),
    ),
    _rule("private name of CPython", r"\b_Py[A-Z]\w+", "its meaning changes from release to release"),
    _rule(
        "import system",
        r"\bmeta_path\b|\bpath_hooks\b|\bpath_importer_cache\b",
        "errors are raised by who imports",
        python=True,
    ),
    _rule(
        "the interpreter by ctypes", r"\bpythonapi\b|\bpy_object\b", "ctypes reaches no object of Python", python=True
    ),
    _rule(
        "a module of others",
        r"^\s*(?:sys|os|socket|threading|asyncio|logging|signal|warnings|builtins|pickle|copyreg|pyspark|pyarrow)"
        r"(?:\.\w+)+\s*(?::[^=]+)?=(?!=)|\bsetattr\(\s*(?:sys|os|socket|threading|asyncio|logging|builtins)\b",
        "other code in the process relies on it",
        python=True,
        allowed=(OWN_PROCESS,),
    ),
    _rule(
        "class or code of an object", r"\.__(?:class|code|dict|globals)__\s*=(?!=)", "an object keeps both", python=True
    ),
)


def changes(root: Path) -> list[str]:
    """Return the lines below ``root`` that break a rule, with the rule's name and reason."""
    found = []
    for rule in RULES:
        for folder in rule.folders:
            for path in sorted(Path(root, folder).rglob("*")):
                below = path.relative_to(root).as_posix()
                if path.suffix not in (".py", ".pyx", ".pxd", ".h") or below in rule.allowed:
                    continue
                for number, line in enumerate(path.read_text().splitlines(), 1):
                    if rule.pattern.search(line):
                        found.append(f"{below}:{number}: {rule.name}: {line.strip()[:80]}; {rule.reason}")
    return found
