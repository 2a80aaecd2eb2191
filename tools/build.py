"""Build the compiled core in one profile, and only when something changed.

``python tools/build.py`` builds the release profile inside the checkout.  Any other profile is built in a copy of the
checkout, ``build/tree-<profile>``, so that a sanitizer or coverage run never touches the modules a developer works
with.  The path of the tree is printed on stdout, everything else goes to stderr.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = {
    ".cache", ".git", ".hypothesis", ".interop", ".mypy_cache", ".pytest_cache", ".ruff_cache", "__pycache__",
    "build", "demo-out", "dist",
}  # fmt: skip
PRODUCTS = (".so", ".pyc")


def sources(tree: Path) -> list[Path]:
    """Return the files of ``tree`` that belong to the project, relative to it."""
    found = []
    for folder, names, files in os.walk(tree):
        names[:] = [name for name in names if name not in LEFT_OUT and not name.startswith(".venv")]
        found += [Path(folder, name).relative_to(tree) for name in files if not name.endswith(PRODUCTS)]
    return found


def is_strict() -> bool:
    """Return whether a warning of the C compiler ends this build (``DATAPROXY_WERROR=1``)."""
    return os.environ.get("DATAPROXY_WERROR") == "1"


def was_strict(tree: Path) -> bool:
    """Return whether the last complete build of ``tree`` was a strict one, so that no module has a warning."""
    complete = tree / "build" / "complete"
    return complete.is_file() and complete.read_text() == "strict"


def is_current(tree: Path, profile: str) -> bool:
    """Return whether every module of ``tree`` is built, in this profile, and newer than all sources.

    A strict build (``is_strict``) is only current where the last one was strict as well.
    """
    stamp, complete = tree / "build" / "inplace", tree / "build" / "complete"
    if not stamp.is_file() or stamp.read_text() != profile or not complete.exists():
        return False
    if is_strict() and not was_strict(tree):
        return False
    core, native, planted = tree / "cython_ext", tree / "tests" / "native", tree / "tests" / "sanitizer"
    inputs = [
        tree / "setup.py",
        *core.rglob("*.p[yx]*"),
        *core.rglob("*.h"),
        *native.glob("*.p[yx]*"),
        *planted.glob("*.pyx"),
    ]
    newest = max(path.stat().st_mtime for path in inputs)
    suffix = EXTENSION_SUFFIXES[0]
    built = [tree / module.relative_to(core).with_suffix(suffix) for module in core.rglob("*.pyx")]
    built += [module.with_suffix(suffix) for module in native.glob("*.pyx")]
    return all(module.exists() for module in built) and newest <= complete.stat().st_mtime


def synchronise(tree: Path) -> None:
    """Make ``tree`` a copy of the checkout: copy changed files with their times, remove files that no longer exist."""
    wanted = sources(ROOT)
    for name in wanted:
        source, target = ROOT / name, tree / name
        facts = source.stat()
        if target.exists() and (target.stat().st_mtime, target.stat().st_size) == (facts.st_mtime, facts.st_size):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
    known = set(wanted)
    generated = {name.with_suffix(".c") for name in wanted if name.suffix == ".pyx"}
    for name in sources(tree):
        if name not in known and name not in generated and not name.name.startswith(".coverage"):
            (tree / name).unlink()
    remove_orphans(tree)


def remove_orphans(tree: Path) -> None:
    """Remove compiled modules without a source, as after a change of branch: they would still be imported."""
    for top, sources_of in ((tree / "dataproxy", tree / "cython_ext"), (tree / "tests" / "native", tree)):
        for module in top.rglob("*.so"):
            source = (sources_of / module.relative_to(tree)).with_name(module.name.split(".")[0] + ".pyx")
            if not source.exists():
                module.unlink()


def build(tree: Path, profile: str) -> None:
    """Compile in ``tree``; the compiler's output is shown only when it fails."""
    print(f"building the compiled core ({profile}) ...", file=sys.stderr, flush=True)
    environment = {**os.environ, "DATAPROXY_BUILD": profile, "DATAPROXY_NATIVE": "1", "DATAPROXY_HUB": "yes"}
    environment["PYTHONPATH"] = ""
    environment.setdefault("DATAPROXY_TRANSLATIONS", str(ROOT / ".cache" / "cython"))
    environment.pop("DATAPROXY_ONLY", None)
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    if is_strict() and not was_strict(tree):
        command.append("--force")  # objects of a build that let warnings pass are compiled again
    begun = time.time()
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout + done.stderr + f"\nbuild failed: DATAPROXY_BUILD={profile} {' '.join(command)}")
    complete = tree / "build" / "complete"
    complete.write_text("strict" if is_strict() else "")
    os.utime(complete, (begun, begun))  # so files that were edited during the build count as newer


def main() -> None:
    """Bring one profile's tree up to date and print its path."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profile", nargs="?", default="release")
    parser.add_argument("--tree", action="store_true", help="copy the release profile too")
    arguments = parser.parse_args()
    tree = ROOT
    if arguments.tree or arguments.profile != "release":
        tree = ROOT / "build" / f"tree-{arguments.profile}"
        synchronise(tree)
    remove_orphans(tree)
    if not is_current(tree, arguments.profile):
        build(tree, arguments.profile)
    print(tree)


if __name__ == "__main__":
    main()
