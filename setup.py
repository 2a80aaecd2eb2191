"""Build of the compiled core: module discovery and build profiles.

``DATAPROXY_BUILD`` chooses a profile (release, debug, coverage, asan, tsan, annotate) and
``DATAPROXY_ONLY`` (folder names below ``_core``, comma separated) restricts a developer's build.
"""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

ROOT = Path("cython_ext")
CORE = ROOT / "dataproxy" / "_core"

WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-unused-parameter",  # function tables give every entry the same signature
    "-Wno-unused-function",  # Cython emits conversion helpers it may not call
    "-Wno-missing-field-initializers",  # CPython's type slots are filled from the front
    "-Wno-cast-function-type",  # METH_FASTCALL entries, as CPython documents them
    "-Wno-sign-compare",  # raised by Cython's own enum comparisons
]
PROFILES = {
    "release": {"cflags": ["-O2", "-g1"]},
    "debug": {"cflags": ["-O0", "-g3"], "macros": [("DATAPROXY_DEBUG", "1")]},
    "coverage": {
        "cflags": ["-O0", "-g1"],
        "macros": [("CYTHON_TRACE_NOGIL", "1"), ("CYTHON_USE_SYS_MONITORING", "0")],
        "directives": {"linetrace": True},
    },
    "asan": {
        "cflags": ["-O1", "-g1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined"],
        "ldflags": ["-fsanitize=address,undefined"],
        "macros": [("DATAPROXY_DEBUG", "1")],
    },
    "tsan": {
        "cflags": ["-O1", "-g1", "-fno-omit-frame-pointer", "-fsanitize=thread"],
        "ldflags": ["-fsanitize=thread"],
        "macros": [("DATAPROXY_DEBUG", "1")],
    },
    "annotate": {"cflags": ["-O2"], "annotate": True},
}
# Libraries by the folder or module that needs them; everything else links nothing.
LIBRARIES = {"base/compress": ["snappy"], "hub": ["lmdb"]}


def libraries(module: Path) -> list[str]:
    """Return the libraries that one ``.pyx`` file links."""
    key = module.relative_to(CORE).with_suffix("").as_posix()
    return [lib for prefix, libs in LIBRARIES.items() if key == prefix or key.startswith(prefix + "/") for lib in libs]


def extensions(profile: dict) -> list[Extension]:
    """Return one extension for each ``.pyx`` file, in a stable order."""
    only = [part for part in os.environ.get("DATAPROXY_ONLY", "").split(",") if part]
    found = []
    for module in sorted(CORE.rglob("*.pyx")):
        below = module.relative_to(CORE)
        if only and below.parts[0] not in only:
            continue
        target = Path("dataproxy", "_core", below.parent)
        target.mkdir(parents=True, exist_ok=True)
        name = ".".join(("dataproxy", "_core", *below.with_suffix("").parts))
        found.append(
            Extension(
                name,
                [str(module)],
                include_dirs=[str(CORE / "plat")],
                libraries=libraries(module),
                extra_compile_args=["-std=gnu11", *WARNINGS, *profile["cflags"]],
                extra_link_args=profile.get("ldflags", []),
                define_macros=profile.get("macros", []),
            )
        )
    return found


def main() -> None:
    """Compile in the chosen profile and hand over to setuptools."""
    name = os.environ.get("DATAPROXY_BUILD", "release")
    if name not in PROFILES:
        sys.exit(f"DATAPROXY_BUILD={name!r} is unknown; choose one of {', '.join(PROFILES)}")
    profile = PROFILES[name]
    modules = cythonize(
        extensions(profile),
        include_path=[str(ROOT)],
        nthreads=os.cpu_count() or 1,
        build_dir=None if name == "coverage" else f"build/cython-{name}",
        force=name == "coverage",
        annotate=profile.get("annotate", False),
        emit_linenums=name in ("asan", "tsan", "debug"),
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
    setup(ext_modules=modules, options={"build_ext": {"parallel": os.cpu_count() or 1}})


if __name__ == "__main__":
    main()
