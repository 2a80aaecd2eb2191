"""Builds the floor programs and modules with gcc into ``build/bench``, anew where their sources changed."""

import importlib.util
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

__all__ = ["BUILT", "CFLAGS", "ENCRYPTED", "MODULES", "PROGRAMS", "ROOT", "build", "load"]

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "benchmarks" / "floor"
BUILT = ROOT / "build" / "bench"
PROGRAMS = ("blast", "sink", "pingpong", "copyloop", "snappyloop", "tubebroker", "tubepull", "rocketsink")
ENCRYPTED = ("blast", "sink")  # also built as blast-tls and sink-tls, where OpenSSL 3 has its headers installed
MODULES = ("calls", "due")  # in Cython: calls that do next to nothing, and messages that are due at a rate
CFLAGS = ("-D_GNU_SOURCE", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror")


def build() -> None:
    """Compile programs that are missing or older than their source.  Raises CalledProcessError with gcc's output."""
    BUILT.mkdir(parents=True, exist_ok=True)
    for name in PROGRAMS:
        _compile(name, name)
    if Path("/usr/include/openssl/ssl.h").exists():
        for name in ENCRYPTED:
            _compile(name, f"{name}-tls", "-DBENCH_TLS", "-lssl", "-lcrypto")
    for name in MODULES:
        build_module(name)


def _compile(name: str, built: str, *extra: str) -> None:
    """Compile one program, if its source or a header is newer."""
    source, target = SOURCES / f"{name}.c", BUILT / built
    newest = max(path.stat().st_mtime for path in (source, *SOURCES.glob("*.h")))
    if not target.exists() or target.stat().st_mtime <= newest:
        words = ("gcc", *CFLAGS, "-o", str(target), str(source), *extra, "-lsnappy", "-lpthread")
        subprocess.run(words, check=True)


def build_module(name: str) -> None:
    """Compile one Cython module.  Raises CalledProcessError with the compiler's output."""
    source, target = SOURCES / f"{name}.pyx", module_path(name)
    if target.exists() and target.stat().st_mtime > source.stat().st_mtime:
        return
    text = BUILT / f"bench_{name}.c"
    words = (sys.executable, "-m", "cython", "-3", "--module-name", f"bench_{name}", str(source), "-o", str(text))
    subprocess.run(words, check=True)
    flags = ("-O2", "-shared", "-fPIC", f"-I{sysconfig.get_path('include')}")
    subprocess.run(("gcc", *flags, str(text), "-o", str(target)), check=True)


def module_path(name: str) -> Path:
    """Return where a Cython module of this interpreter is built."""
    return BUILT / f"bench_{name}{sysconfig.get_config_var('EXT_SUFFIX')}"


def load(name: str) -> ModuleType:
    """Import one of ``MODULES``; it must have been built."""
    spec = importlib.util.spec_from_file_location(f"bench_{name}", module_path(name))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
