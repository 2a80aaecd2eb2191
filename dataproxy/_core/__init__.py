"""Compiled core. Private: its modules may change in any release.

There is no slow path in plain Python: where a compiled module is missing, importing it fails with the command
that builds it.
"""

import sys
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec, PathFinder
from pathlib import Path

TYPE_CHECKING = False  # stands for typing's, whose import would cost more than this whole module
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

__all__ = ["build_info", "explain_library", "explain_missing"]

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


class _CompiledLoader(ExtensionFileLoader):
    """Load a compiled module, and say what to install if one of its libraries is missing."""

    def create_module(self, spec: ModuleSpec) -> "ModuleType":
        """Return the module.  Raises ImportError, with the command that installs a missing library."""
        try:
            return super().create_module(spec)
        except ImportError as error:
            if cure := explain_library(spec.name, str(error)):
                raise ImportError(cure, name=spec.name, path=self.path) from error
            raise


class _CompiledModule:
    """Find the compiled modules below this package; other modules are left to the next finders.  Asked first."""

    @classmethod
    def find_spec(
        cls, fullname: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of the compiled core, None for any other module."""
        if not fullname.startswith(__name__ + "."):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not ExtensionFileLoader:
            return None
        spec.loader = _CompiledLoader(spec.loader.name, spec.loader.path)
        return spec


class _MissingModule:
    """Raise the error with the remedy when no other finder has found a module below this package.  Asked last."""

    @classmethod
    def find_spec(cls, fullname: str, path: object = None, target: object = None) -> None:
        """Raise ImportError for a module of the compiled core; return None for every other name."""
        if fullname.startswith(__name__ + "."):
            raise ModuleNotFoundError(explain_missing(fullname), name=fullname)


_refuse_subinterpreter()
sys.meta_path.insert(0, _CompiledModule)
sys.meta_path.append(_MissingModule)
