"""Build of the compiled core: module discovery, build profiles, and the check for the libraries it links.

``DATAPROXY_BUILD`` chooses a profile (release, debug, coverage, asan, tsan, annotate),
``DATAPROXY_ONLY`` (folder names below ``_core``, comma separated) restricts a developer's build,
``DATAPROXY_WERROR=1`` makes the C compiler's warnings errors, as ``.ci/run`` does, and
``DATAPROXY_NATIVE=1`` adds the modules of ``tests/native``, through which tests reach private C functions.
``DATAPROXY_HUB`` says whether the hub is built, which alone needs liblmdb: ``auto`` (the default) builds it where the
library is found, ``yes`` stops where it is not, ``no`` leaves it out.
``DATAPROXY_TRANSLATIONS`` names a folder in which Cython keeps the C text of modules for builds of other profiles.
Everything in between lies in ``build/<profile>/``, so profiles never share an object file; the modules built in
place belong to one profile at a time, which ``build/inplace`` names.  ``make test-asan`` and its like build in a copy
of the tree instead (``tools/build.py``) and leave the modules of the checkout alone.
"""

import gc
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path("cython_ext")
CORE = ROOT / "dataproxy" / "_core"
INPLACE = Path("dataproxy", "_core")
STAMP = Path("build", "inplace")
PLANTED = Path("tests", "sanitizer")  # mistakes that show a sanitizer to be awake
NATIVE = Path("tests", "native")  # how tests reach private C functions; in no wheel

WARNINGS = [
    "-Wall",
    "-Wextra",
    *(["-Werror"] if os.environ.get("DATAPROXY_WERROR") == "1" else []),  # a user's newer compiler may warn of more
    "-Wno-unused-parameter",  # function tables give every entry the same signature
    "-Wno-unused-function",  # Cython emits conversion helpers it may not call
    "-Wno-unused-const-variable",  # texts of assertions, which a release drops
    "-Wno-missing-field-initializers",  # CPython's type slots are filled from the front
    "-Wno-cast-function-type",  # METH_FASTCALL entries, as CPython documents them
    "-Wno-sign-compare",  # raised by Cython's own enum comparisons
]
UNFORTIFIED = "-U_FORTIFY_SOURCE"  # Debian's Python asks for it; without optimisation or with a sanitizer it only warns
SANITIZED = [UNFORTIFIED, "-O0", "-g1", "-fno-omit-frame-pointer"]  # compiles in half the time of -O1
PROFILES = {
    "release": {"cflags": ["-O2", "-g1"]},
    "debug": {"cflags": [UNFORTIFIED, "-O0", "-g3"], "macros": [("DATAPROXY_DEBUG", "1")]},
    "coverage": {
        "cflags": [UNFORTIFIED, "-O0", "-g1"],
        "macros": [("DATAPROXY_DEBUG", "1"), ("CYTHON_TRACE_NOGIL", "1"), ("CYTHON_USE_SYS_MONITORING", "0")],
        "directives": {"linetrace": True},
    },
    "asan": {
        # A local variable that nothing was written to is no zero: the sanitizer does not see that it is read.
        "cflags": [*SANITIZED, "-fsanitize=address,undefined", "-ftrivial-auto-var-init=pattern"],
        "ldflags": ["-fsanitize=address,undefined"],
        "macros": [("DATAPROXY_DEBUG", "1")],
        "folders": [PLANTED],
    },
    "tsan": {
        "cflags": [*SANITIZED, "-fsanitize=thread"],
        "ldflags": ["-fsanitize=thread"],
        "macros": [("DATAPROXY_DEBUG", "1")],
        "folders": [PLANTED],
    },
    "annotate": {"cflags": ["-O2"], "annotate": True},
}
# Libraries by the folder or module that needs them; everything else links nothing.
LIBRARIES = {"base/snappy/compress": ["snappy"], "server/store": ["lmdb"]}
HUB, HUB_LIBRARY = "server", "lmdb"  # the hub's folder below _core; no module outside of it cimports one of these
# What each library needs: its header, one function to link against, the name pkg-config knows, Debian's package.
NEEDS = {
    "snappy": ("snappy-c.h", "snappy_compress", "snappy", "libsnappy-dev"),
    "lmdb": ("lmdb.h", "mdb_env_create", "lmdb", "liblmdb-dev"),
}


def profile_name() -> str:
    """Return the chosen profile."""
    name = os.environ.get("DATAPROXY_BUILD", "release")
    if name not in PROFILES:
        sys.exit(f"DATAPROXY_BUILD={name!r} is unknown; choose one of {', '.join(PROFILES)}")
    return name


def builds_hub() -> bool:
    """Return whether the hub's modules are built."""
    wish = os.environ.get("DATAPROXY_HUB", "auto")
    if wish not in ("auto", "yes", "no"):
        sys.exit(f"DATAPROXY_HUB={wish!r} is unknown; choose one of auto, yes, no")
    return wish == "yes" or (wish == "auto" and not missing({HUB_LIBRARY}))


def libraries(module: Path) -> list[str]:
    """Return the libraries that one ``.pyx`` file links."""
    key = module.relative_to(CORE).with_suffix("").as_posix()
    return [lib for prefix, libs in LIBRARIES.items() if key == prefix or key.startswith(prefix + "/") for lib in libs]


def flags(library: str, option: str) -> list[str]:
    """Return what pkg-config says about ``library``, nothing where it is not installed or does not know it."""
    if not shutil.which("pkg-config"):
        return []
    asked = subprocess.run(["pkg-config", option, NEEDS[library][2]], capture_output=True, text=True, check=False)
    return shlex.split(asked.stdout) if asked.returncode == 0 else []


def missing(libs: set[str]) -> list[str]:
    """Return those of ``libs`` that a small program cannot be compiled and linked with."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    extra = shlex.split(os.environ.get("CPPFLAGS", "")) + shlex.split(os.environ.get("CFLAGS", ""))
    absent = []
    with tempfile.TemporaryDirectory() as folder:
        for library in sorted(libs):
            header, function, _, _ = NEEDS[library]
            program = f"#include <{header}>\nint main(void) {{ return (void *)&{function} == 0; }}\n"
            source = Path(folder, "program.c")
            source.write_text(program)
            tail = [*flags(library, "--libs-only-L"), *shlex.split(os.environ.get("LDFLAGS", "")), f"-l{library}"]
            command = [*compiler, str(source), "-o", f"{folder}/program", *extra, *flags(library, "--cflags"), *tail]
            if subprocess.run(command, capture_output=True, check=False).returncode:
                absent.append(library)
    return absent


def extensions(profile: dict) -> list[Extension]:
    """Return one extension for each ``.pyx`` file, in a stable order."""
    only = [part for part in os.environ.get("DATAPROXY_ONLY", "").split(",") if part]
    with_hub = builds_hub()
    found = []
    for module in sorted(CORE.rglob("*.pyx")):
        below = module.relative_to(CORE)
        if (only and below.parts[0] not in only) or (below.parts[0] == HUB and not with_hub):
            continue
        (INPLACE / below.parent).mkdir(parents=True, exist_ok=True)
        found.append(extension(".".join(("dataproxy", "_core", *below.with_suffix("").parts)), module, profile))
    folders = [] if only or not os.environ.get("DATAPROXY_NATIVE") else [NATIVE]
    for folder in [*folders, *profile.get("folders", [])]:
        found += [extension(".".join(m.with_suffix("").parts), m, profile) for m in sorted(folder.rglob("*.pyx"))]
    return found


def extension(name: str, module: Path, profile: dict) -> Extension:
    """Return the extension ``name`` that is built from ``module``."""
    libs = libraries(module) if module.is_relative_to(CORE) else []
    cflags = [flag for lib in libs for flag in flags(lib, "--cflags")]
    ldflags = [flag for lib in libs for flag in flags(lib, "--libs-only-L")]
    return Extension(
        name,
        [str(module)],
        include_dirs=[str(CORE / "plat")],
        libraries=libs,
        depends=["setup.py", *map(str, sorted(CORE.rglob("*.h")))],
        extra_compile_args=["-std=gnu11", *WARNINGS, *cflags, *profile["cflags"]],
        extra_link_args=[*ldflags, *profile.get("ldflags", [])],
        define_macros=profile.get("macros", []),
    )


def trace_without_values(modules: list[Extension]) -> None:
    """Let the traced C text report None for what a C function returns.

    Cython converts the value for the tracer, and reads a struct's bytes up to a NUL that borrowed bytes do not have.
    """
    for source in (Path(name) for module in modules for name in module.sources):
        text = source.read_text()
        source.write_text(re.sub(r"__Pyx_TraceReturnCValue\(__pyx_r, \w+,", "__Pyx_TraceReturnValue(Py_None,", text))


class BuildCore(build_ext):
    """``build_ext`` that checks for the libraries first and never leaves modules of two profiles side by side."""

    def build_extensions(self) -> None:
        """Compile, or stop with the command that installs what is missing."""
        absent = missing({lib for ext in self.extensions for lib in ext.libraries})
        if absent:
            packages = " ".join(NEEDS[lib][3] for lib in absent)
            sys.exit(
                f"The compiled core needs {' and '.join('lib' + lib for lib in absent)} with headers, not found here.\n"
                f"Install with:  apt-get install {packages}\n"
                "(elsewhere: set CPPFLAGS=-I... and LDFLAGS=-L... to where the library is)"
            )
        if not builds_hub():
            asked = os.environ.get("DATAPROXY_HUB") == "no"
            why = "as DATAPROXY_HUB=no asks" if asked else "liblmdb was not found here"
            sys.stderr.write(
                f"dataproxy: built without the hub, {why}; producer and Spark sink are complete.  With the hub:  "
                f"apt-get install {NEEDS[HUB_LIBRARY][3]}, then DATAPROXY_HUB=yes and the same command again\n"
            )
        super().build_extensions()

    def copy_extensions_to_source(self) -> None:
        """Copy the built modules into the checkout, and throw out those of another profile."""
        name = profile_name()
        if not STAMP.exists() or STAMP.read_text() != name:
            for module in [*INPLACE.rglob("*.so"), *NATIVE.glob("*.so")]:
                module.unlink()
        super().copy_extensions_to_source()
        STAMP.parent.mkdir(exist_ok=True)
        STAMP.write_text(name)


def main() -> None:
    """Compile in the chosen profile and hand over to setuptools."""
    name = profile_name()
    profile = PROFILES[name]
    base = Path("build", name)
    gc.set_threshold(1_000_000)  # Cython keeps large trees, and to look through them took a third of its time
    modules = cythonize(
        extensions(profile),
        include_path=[str(ROOT), "."],
        nthreads=os.cpu_count() or 1,
        cache=os.environ.get("DATAPROXY_TRANSLATIONS") or False,  # keyed by the contents of sources and the options
        # The coverage plugin finds the C text only beside the .pyx.
        build_dir=None if name == "coverage" else str(base / "cython"),
        force=name == "coverage",
        annotate=profile.get("annotate", False),
        emit_linenums=True,  # in every profile, so that all share one translation
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "warn.undeclared": True,
            "warn.unused": True,
            "warn.maybe_uninitialized": True,
            **profile.get("directives", {}),
        },
    )
    if name == "coverage":
        trace_without_values(modules)
    setup(
        ext_modules=modules,
        cmdclass={"build_ext": BuildCore},
        options={"build": {"build_base": str(base)}, "build_ext": {"parallel": os.cpu_count() or 1}},
    )


if __name__ == "__main__":
    main()
