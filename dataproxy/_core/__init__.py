"""Compiled core. Private: its modules may change in any release.

There is no slow path in plain Python: where a compiled module is missing, importing it fails with the command
that builds it.
"""

import sys
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

__all__ = ["build_info", "explain_missing"]


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
    """Return what is wrong and which command repairs it, for the missing compiled module ``name``."""
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
        found = f"only {', '.join(others)} is there, built for another Python"
    else:
        found = f"{home / stem}{wanted} does not exist"
    if (home.parents[1] / "setup.py").is_file():
        cure = f"build the checkout with 'make build', or '{sys.executable} setup.py build_ext --inplace'"
    else:
        cure = f"install it again with '{sys.executable} -m pip install --force-reinstall dataproxy'"
    return f"compiled module {name} is missing ({found}); {cure}"


def _refuse_subinterpreter() -> None:
    """Raise ImportError outside of the main interpreter: threads and hooks of the core belong to the whole process."""
    try:
        interpreters = import_module("_interpreters")
    except ImportError:
        try:
            interpreters = import_module("_xxsubinterpreters")  # as it was called before 3.13
        except ImportError:
            return
    if interpreters.get_current() != interpreters.get_main():
        raise ImportError(
            "dataproxy works in the main interpreter of a process, and this is a sub-interpreter; use threads or "
            "processes instead (under mod_wsgi: WSGIApplicationGroup %{GLOBAL})",
            name=__name__,
        )


class _MissingModule:
    """Asked last, when nobody else has found a module below this package: raises the helpful error."""

    @classmethod
    def find_spec(cls, fullname: str, path: object = None, target: object = None) -> None:
        """Raise ImportError for a module of the compiled core, and leave every other name alone."""
        if fullname.startswith(__name__ + "."):
            raise ModuleNotFoundError(explain_missing(fullname), name=fullname)


_refuse_subinterpreter()
sys.meta_path.append(_MissingModule)
