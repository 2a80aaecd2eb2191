"""Compiled core. Private: its modules may change in any release.

There is no slow path in plain Python: where the compiled modules are missing, importing this package fails with the
command that builds them.  The folders that need a library load it first (``base/snappy/__init__.py``,
``server/store/__init__.py``), so that the error names its package.
"""

import sys
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

__all__ = ["build_info", "explain_library", "explain_missing", "explained", "load"]

# Commands that install a library on machines where no wheel contains it.
_PACKAGES = {
    "libsnappy": "Debian, Ubuntu: apt-get install libsnappy1v5; Fedora, Amazon Linux: dnf install snappy",
    "liblmdb": "Debian, Ubuntu: apt-get install liblmdb0; Fedora, Amazon Linux: dnf install lmdb-libs",
}


def build_info() -> dict[str, str]:
    """Return facts for a bug report: ABI tag, folder, number of compiled modules, build profile where known.

    Reads the package's folder; any thread.
    """
    home = Path(__file__).parent
    suffix = EXTENSION_SUFFIXES[0]
    stamp = home.parents[1] / "build" / "inplace"
    return {
        "abi": suffix,
        "folder": str(home),
        "modules": str(sum(1 for _ in home.rglob(f"*{suffix}"))),
        "profile": stamp.read_text().strip() if stamp.is_file() else "release",
    }


def explain_missing(name: str) -> str:
    """Return why the compiled module ``name`` is missing, and the command that helps."""
    home = Path(__file__).parent
    archive = getattr(globals().get("__loader__"), "archive", None)
    if archive:
        return (
            f"compiled module {name} cannot be imported from a zip, and {archive} is one; install the wheel where it "
            "runs, or ship it unpacked (with Spark: --archives in place of --py-files)"
        )
    wanted = EXTENSION_SUFFIXES[0]
    stem = name.removeprefix(__name__ + ".").replace(".", "/")
    others = sorted(path.name for path in home.glob(f"{stem}.*.so"))
    if others:
        found = f"it was built for another Python: {', '.join(others)}"
    else:
        found = f"{home / stem}{wanted} does not exist"
    if (home.parents[1] / "setup.py").is_file():
        cure = f"build the checkout with 'make build', or '{sys.executable} setup.py build_ext --inplace'"
    else:
        cure = f"install it again with '{sys.executable} -m pip install --force-reinstall dataproxy-sdk'"
    return f"compiled module {name} is missing ({found}); {cure}"


def explain_library(name: str, said: str) -> str:
    """Return in words which package has the library that the compiled module ``name`` needs; "" if none is known.

    ``said`` is the message of the system's loader.
    """
    library = said.partition(":")[0]
    command = next((words for stem, words in _PACKAGES.items() if library.startswith(stem)), "")
    if not command or "cannot open shared object file" not in said:
        return ""
    return (
        f"compiled module {name} needs {library}, which this machine does not have; install it ({command}), or install "
        "a wheel that carries it ('make wheel' in a checkout)"
    )


def _refuse_subinterpreter() -> None:
    """Raise ImportError outside of the main interpreter: threads and hooks of the core belong to the whole process."""
    try:
        interpreters = import_module("_interpreters")
    except ImportError:
        try:
            interpreters = import_module("_xxsubinterpreters")  # its name before Python 3.13
        except ImportError:
            return
    if interpreters.get_current() != interpreters.get_main():
        raise ImportError(
            "dataproxy works in the main interpreter of a process, and this is a sub-interpreter; use threads or "
            "processes instead (under mod_wsgi: WSGIApplicationGroup %{GLOBAL})",
            name=__name__,
        )


def load(name: str) -> None:
    """Import the compiled module ``name``, the first in its folder that needs a library.

    Raises ImportError, with the command that installs a missing library or builds a missing module.
    """
    try:
        import_module(name)
    except ImportError as error:
        if cure := explain_library(name, str(error)):
            raise ImportError(cure, name=name, path=error.path) from error
        raise explained(error) from error


def explained(error: ImportError) -> ImportError:
    """Return ``error``, or for a compiled module that is missing the error that says what to do."""
    name = error.name or ""
    if isinstance(error, ModuleNotFoundError) and name.startswith(__name__ + ".") and str(error) == _absent(name):
        return ModuleNotFoundError(explain_missing(name), name=name)
    return error


def _absent(name: str) -> str:
    return f"No module named {name!r}"


def _refuse_absent() -> None:
    """Raise ModuleNotFoundError where no module can be loaded: from a zip, for another Python, in a bare checkout."""
    first = f"base/status{EXTENSION_SUFFIXES[0]}"
    if not (Path(__file__).parent / first).is_file():
        name = f"{__name__}.base.status"
        raise ModuleNotFoundError(explain_missing(name), name=name)


_refuse_subinterpreter()
_refuse_absent()
