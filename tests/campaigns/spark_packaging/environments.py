"""The wheel, and the environments and archives in which it travels to a cluster."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Packages", "prepare"]

ROOT = Path(__file__).parents[3]
_QUIET = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore", "PIP_NO_INPUT": "1"}


@dataclass(frozen=True)
class Packages:
    """What the ways of packaging need, made once."""

    wheel: Path
    driver: Path  # an environment with PySpark and without the package
    image: Path  # an environment with the package
    environment: Path  # the same, packed
    modules: Path  # the package and what it needs alone, as a zip


def _run(*command: object, cwd: Path = ROOT) -> None:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **_QUIET},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def _wheel(folder: Path) -> Path:
    """Build the wheel from what was compiled for the checkout, with its libraries in it."""
    plain = folder / "plain"
    _run(
        *(sys.executable, "setup.py", "-q", "egg_info", "--egg-base", folder),
        *("bdist_wheel", "--dist-dir", plain, "--bdist-dir", folder / "bdist"),
    )
    _run(sys.executable, ROOT / "tools" / "graft.py", next(plain.glob("*.whl")), folder)
    return next(folder.glob("*.whl"))


def _driver(folder: Path) -> Path:
    """Return an environment that sees this one's packages, but not the checkout that this one points to."""
    _run(sys.executable, "-m", "venv", "--without-pip", folder)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def prepare(folder: Path) -> Packages:
    """Make everything below ``folder``: a minute or two, most of it pip's.  Exits with its output when a step fails."""
    wheel = _wheel(folder)
    base = getattr(sys, "_base_executable", sys.executable)
    image, pins = folder / "image", ROOT / "requirements" / "dev.lock"
    _run(base, "-m", "venv", image)
    _run(image / "bin" / "python", "-m", "pip", "install", "-q", "-c", pins, wheel, "pyarrow", "pandas")
    with tarfile.open(folder / "environment.tar.gz", "w:gz", compresslevel=1) as archive:
        archive.add(image, arcname=".")
    _run(sys.executable, "-m", "pip", "install", "-q", "-c", pins, "--target", folder / "modules", wheel)
    modules = shutil.make_archive(str(folder / "modules"), "zip", folder / "modules")
    return Packages(wheel, _driver(folder / "driver"), image, folder / "environment.tar.gz", Path(modules))
