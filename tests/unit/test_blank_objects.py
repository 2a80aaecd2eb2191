"""Objects of compiled classes that were made without being filled: refused, or safe in all they can be asked for."""

import gc
import importlib
import os
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import dataproxy._core

ROOT = Path(dataproxy._core.__file__).parent
VALUES = (None, 0, 1.5, b"x", "s", (), [], {}, print)
CALLS = [(), *((value,) for value in VALUES), *((value,) * n for value in VALUES for n in (2, 3, 5)), ("s", b"x")]
KEPT = {"__class__", "__init__", "__new__", "__init_subclass__", "__subclasshook__"}


def classes() -> dict[str, type]:
    """Return every compiled class by its full name."""
    found = {}
    for path in sorted(ROOT.rglob(f"*{EXTENSION_SUFFIXES[0]}")):
        below = path.relative_to(ROOT).with_name(path.name.removesuffix(EXTENSION_SUFFIXES[0]))
        module = importlib.import_module(".".join(("dataproxy._core", *below.parts)))
        for value in vars(module).values():
            if isinstance(value, type) and value.__module__ == module.__name__:
                found[f"{value.__module__}.{value.__name__}"] = value
    return found


def try_call(function: object, *arguments: object) -> object:
    """Call and take any error for an answer."""
    try:
        return function(*arguments)  # type: ignore[operator]
    except BaseException:  # every error is an answer; a crash is none
        return None


def use(kind: type) -> None:
    """Make a blank object and ask it for everything."""
    try:
        blank = kind.__new__(kind)
    except TypeError:
        return
    for ask in (repr, str, hash, len, bool, iter, next, list, memoryview, lambda x: x == x):
        try_call(ask, blank)
    for name in sorted(set(dir(kind)) - KEPT):
        value = try_call(getattr, blank, name)
        if callable(value):
            for arguments in CALLS:
                try_call(value, *arguments)
    del blank
    gc.collect()


def test_blank_objects_are_refused_or_safe() -> None:
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{len(classes())} classes\n"), done.stderr[-2000:]


def test_what_only_compiled_code_makes_is_refused() -> None:
    waiter = classes()["dataproxy._core.producer.aio.waiter.Waiter"]
    for make in (waiter.__new__, object.__new__):
        with pytest.raises(TypeError):
            make(waiter)
    with pytest.raises(TypeError, match="made by AsyncProducer"):
        waiter()


def main() -> None:
    """Use every class in a child process of its own, and print those that ended it."""
    found = classes()
    for name, kind in found.items():
        child = os.fork()
        if child == 0:
            use(kind)
            os._exit(0)  # what a blank producer keeps is leaked on purpose
        _, status = os.waitpid(child, 0)
        if status:
            print(name, "ends its process with", os.waitstatus_to_exitcode(status))
    print(len(found), "classes")


if __name__ == "__main__":
    main()
