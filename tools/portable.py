"""Prepare the build of a wheel for old systems: a compiler that links for an old glibc, and both libraries built by it.

``python tools/portable.py FOLDER`` leaves headers and libraries in FOLDER and prints the environment with which
``setup.py`` builds the core against them, one ``NAME=value`` a line.  The compiler is Zig's clang, from the package
index (``requirements/wheel.lock``).  The sources of snappy and LMDB come from Debian's archive, by ``apt-get`` with a
configuration of its own; only those of ``requirements/sources.toml`` are taken.  Downloads stay in ``.cache``.

snappy becomes a static library that exports nothing.  LMDB becomes a shared one, because several modules share it; its
functions get names of their own, so that no other LMDB in the process can take their place.
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache"
LOCK = ROOT / "requirements" / "wheel.lock"
PINS = ROOT / "requirements" / "sources.toml"
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
GLIBC = "2.26"  # the core calls getrandom, which exists since 2.25
TARGET = ("-target", f"x86_64-linux-gnu.{GLIBC}")
PREFIX = "dataproxy_"  # of LMDB's functions
COMMON = ("-O2", "-g1", "-DNDEBUG", "-fPIC")
# Each function gets its own section, so that the linker can leave out functions that the C interface does not call.
SNAPPY = (
    *("-std=c++11", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections"),
    *("-D_LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_NONE", "-DHAVE_CONFIG_H"),
)
# Python 3.11.2, as Debian 12 has it, knows no filters; what is unpacked has a pinned checksum.
FILTER = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
# The same as in Debian: for every x86-64 processor.
SNAPPY_CONFIG = """\
#define HAVE_ATTRIBUTE_ALWAYS_INLINE 1
#define HAVE_BUILTIN_CTZ 1
#define HAVE_BUILTIN_EXPECT 1
#define HAVE_FUNC_MMAP 1
#define HAVE_FUNC_SYSCONF 1
#define HAVE_SYS_MMAN_H 1
#define HAVE_SYS_UIO_H 1
#define HAVE_UNISTD_H 1
#define SNAPPY_HAVE_SSSE3 0
#define SNAPPY_HAVE_BMI2 0
"""


def say(text: str) -> None:
    """Print progress on stderr; stdout is for the environment."""
    print(f"portable: {text}", file=sys.stderr)


def run(*command: object, **options: object) -> str:
    """Run a command and return what it printed.  Exits with all of it when the command fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\nportable: failed: {' '.join(map(str, command))}")
    return done.stdout


def compiler() -> Path:
    """Return the pinned Zig, installed in ``.cache`` at the first call."""
    folder = CACHE / f"zig-{hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]}"
    if not folder.exists():
        say("installing the compiler")
        CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as fresh:
            options = ("--quiet", "--no-deps", "--no-compile", "--require-hashes", "--target", fresh, "-r", LOCK)
            run(sys.executable, "-m", "pip", "install", *options)
            Path(fresh, "ziglang").rename(folder)
    return folder / "zig"


def archive_address() -> str:
    """Return the address of Debian's archive that this machine is set up with."""
    if not shutil.which("apt-get") or not KEYS.exists():
        sys.exit("portable: the sources come from Debian's archive, by apt-get; elsewhere: make wheel WHEEL=machine")
    codename = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    told = run("apt-get", "-oDebug::NoLocking=1", "update", "--print-uris")  # works also before the first update
    if found := re.search(rf"'(\S+?)/dists/{re.escape(codename)}/InRelease'", told):
        return found[1]
    sys.exit(f"portable: apt-get knows no archive with the suite {codename!r}; elsewhere: make wheel WHEEL=machine")


def is_pinned(file: Path, sha256: str) -> bool:
    """Return whether ``file`` is there and has the checksum."""
    return file.exists() and hashlib.sha256(file.read_bytes()).hexdigest() == sha256


def fetch(pins: dict) -> dict[str, Path]:
    """Return the source archive of each library.  Exits when one is not the pinned one."""
    folder = CACHE / "sources"
    names = [name for name, pin in pins.items() if isinstance(pin, dict)]
    wanted = [name for name in names if not is_pinned(folder / pins[name]["archive"], pins[name]["sha256"])]
    if wanted:
        say(f"fetching the sources of {' and '.join(wanted)}")
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as private:
            for part in ("lists/partial", "cache/archives/partial"):
                Path(private, part).mkdir(parents=True)
            sources = Path(private, "sources.list")
            sources.write_text(f"deb-src [signed-by={KEYS}] {archive_address()} {pins['suite']} main\n")
            settings = {
                "Dir::Etc::SourceList": sources, "Dir::Etc::SourceParts": "-", "Dir::State::Lists": f"{private}/lists",
                "Dir::Cache": f"{private}/cache", "Acquire::Languages": "none", "APT::Sandbox::User": "",
                "Acquire::Retries": 3,
            }  # fmt: skip
            apt = ["apt-get", "-q", *(f"-o{key}={value}" for key, value in settings.items())]
            run(*apt, "update")
            run(*apt, "source", "--download-only", "--tar-only", "--only-source", *wanted, cwd=folder)
    for name in names:
        if not is_pinned(folder / pins[name]["archive"], pins[name]["sha256"]):
            sys.exit(f"portable: {name}: {pins[name]['archive']} is not there, or not with the pinned checksum")
    return {name: folder / pins[name]["archive"] for name in names}


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a source archive below ``folder`` and return the folder that is in it."""
    with tarfile.open(archive) as file:
        outside = [name for name in file.getnames() if not (folder / name).resolve().is_relative_to(folder.resolve())]
        if outside:
            sys.exit(f"portable: {archive.name} would write {outside[0]}, which is outside of {folder}")
        top = file.getnames()[0].split("/")[0]
        file.extractall(folder, **FILTER)  # noqa: S202 - its checksum is pinned; Python 3.11.2 knows no filters
    return folder / top


def check_licence(tree: Path, pin: dict) -> None:
    """Exit when the licence in the sources is not, word by word, in the text that wheels carry."""
    theirs = " ".join((tree / pin["licence"]).read_text().partition("\n===\n")[0].split())
    if theirs not in " ".join((ROOT / pin["ours"]).read_text().split()):
        sys.exit(f"portable: {pin['ours']} has not the words of {pin['licence']} in {pin['archive']}")


def renamed(header: str) -> str:
    """Return ``lmdb.h`` with a new name for each function that it declares, for the library and its callers."""
    declarations = re.sub(r"/\*.*?\*/|^#[^\n]*", "", header, flags=re.DOTALL | re.MULTILINE)  # no comments, no macros
    names = sorted(set(re.findall(r"\b(mdb_\w+)\s*\(", declarations)))
    return "".join(f"#define {name} {PREFIX}{name}\n" for name in names) + header


def build_snappy(zig: Path, tree: Path, work: Path, folder: Path, version: str) -> None:
    """Compile snappy's C interface into ``lib/libsnappy.a``."""
    (tree / "config.h").write_text(SNAPPY_CONFIG)
    public = (tree / "snappy-stubs-public.h.in").read_text().replace("${HAVE_SYS_UIO_H_01}", "1")
    for part, number in zip(("MAJOR", "MINOR", "PATCH"), version.split("."), strict=True):
        public = public.replace(f"${{PROJECT_VERSION_{part}}}", number)
    (tree / "snappy-stubs-public.h").write_text(public)
    sources = [tree / f"{name}.cc" for name in ("snappy", "snappy-c", "snappy-sinksource")]
    objects = []
    for source in (*sources, Path(__file__).with_suffix(".cc")):
        objects.append(work / f"{source.stem}.o")
        run(zig, "c++", *TARGET, *COMMON, *SNAPPY, f"-I{tree}", "-c", source, "-o", objects[-1])
    run(zig, "ar", "rcs", folder / "lib" / "libsnappy.a", *objects)
    shutil.copy(tree / "snappy-c.h", folder / "include")


def build_lmdb(zig: Path, tree: Path, work: Path, folder: Path, _version: str) -> None:
    """Compile LMDB into ``lib/liblmdb.so.0``, without options of the preprocessor, as Debian does."""
    tree = tree / "libraries" / "liblmdb"
    header = renamed((tree / "lmdb.h").read_text())
    (tree / "lmdb.h").write_text(header)
    (folder / "include" / "lmdb.h").write_text(header)
    objects = []
    for name in ("mdb", "midl"):
        objects.append(work / f"{name}.o")
        run(zig, "cc", *TARGET, *COMMON, "-c", tree / f"{name}.c", "-o", objects[-1])
    exported = work / "exported"
    exported.write_text(f"{{ global: {PREFIX}mdb_*; local: *; }};\n")
    options = ("-shared", "-pthread", "-Wl,-z,defs", "-Wl,-soname,liblmdb.so.0", f"-Wl,--version-script={exported}")
    run(zig, "cc", *TARGET, *options, *objects, "-o", folder / "lib" / "liblmdb.so.0")
    (folder / "lib" / "liblmdb.so").symlink_to("liblmdb.so.0")


def environment(zig: Path, folder: Path) -> dict[str, str]:
    """Return the environment in which the core is built against the libraries in ``folder``."""
    command = f"{zig} cc {' '.join(TARGET)}"
    include = f"-I{folder / 'include'}"
    # Debian's pyconfig.h includes another one by a path below the compiler's folders, which Zig does not search.
    multiarch = next(Path("/usr/include").glob("*-linux-gnu/python3*"), None)
    if multiarch is not None and not (folder / "include" / multiarch.parent.name).exists():
        (folder / "include" / multiarch.parent.name).mkdir()
        for config in multiarch.parent.glob("python3*"):
            (folder / "include" / multiarch.parent.name / config.name).symlink_to(config)
    return {
        "CC": command,
        "LDSHARED": f"{command} -shared -Wl,--gc-sections",
        "CPPFLAGS": include,
        "LDFLAGS": f"-L{folder / 'lib'}",
        "LD_LIBRARY_PATH": str(folder / "lib"),
        "PKG_CONFIG_LIBDIR": str(folder / "lib"),
        "ZIG_GLOBAL_CACHE_DIR": str(CACHE / "zig"),
        "ZIG_LOCAL_CACHE_DIR": str(CACHE / "zig"),
    }


def main() -> None:
    """Build both libraries and print the environment."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if platform.machine() != "x86_64":
        sys.exit(f"portable: made for x86_64, this machine is {platform.machine()}; use: make wheel WHEEL=machine")
    folder = Path(sys.argv[1]).resolve()
    for part in ("include", "lib"):
        (folder / part).mkdir(parents=True)
    pins = tomllib.loads(PINS.read_text())
    with ThreadPoolExecutor(1) as beside:
        archives = beside.submit(fetch, pins)
        zig = compiler()
        archives = archives.result()
    settings = environment(zig, folder)
    os.environ.update({name: settings[name] for name in settings if name.startswith("ZIG_")})
    say("compiling snappy and LMDB")
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        for name, build in (("snappy", build_snappy), ("lmdb", build_lmdb)):
            tree = unpack(archives[name], work)
            check_licence(tree, pins[name])
            build(zig, tree, work, folder, pins[name]["version"])
    for name, value in settings.items():
        print(f"{name}={value}")


if __name__ == "__main__":
    main()
