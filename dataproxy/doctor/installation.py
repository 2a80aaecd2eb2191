"""What is installed: the package and its compiled core, libraries, optional packages."""

from __future__ import annotations

import platform
import re
import ssl
import sys
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dataproxy._version import __version__
from dataproxy.doctor.findings import Finding, Level

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["EXTRAS", "installation_findings", "read_versions"]

#: Extra of the distribution ("" for what is always needed) -> its packages, each with the least version.
EXTRAS: Final[dict[str, dict[str, str]]] = {
    "": {"msgspec": "0.19", "urllib3": "2.1"},
    "cli": {"typer": "0.15", "rich": "13"},
    "hub": {"aiohttp": "3.10"},
    "tubemq": {"protobuf": "4.22"},
    "zookeeper": {"kazoo": "2.10"},
    "spark": {"pyspark": "4.0", "pyarrow": "15", "pandas": "2.2"},
    "plot": {"matplotlib": "3.8"},
    "prometheus": {"prometheus-client": "0.20"},
    "opentelemetry": {"opentelemetry-api": "1.25"},
}
_CORE: Final = "dataproxy._core.producer.producer"
_HUB: Final = "dataproxy._core.server.core"
_MISSING: Final = ""


def read_versions(maps: Path = Path("/proc/self/maps")) -> dict[str, str]:
    """Return versions by name: ``dataproxy``, ``python``, ``kernel``, ``libc``, ``openssl``, ``libsnappy``, ``hub``.

    And each package of `EXTRAS`, "" where it is not installed.  ``core``: the profile of its build, or why it cannot be
    loaded.  Loads the core.
    """
    core = _loaded_core()
    found = {
        "dataproxy": __version__,
        "core": core,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "libc": " ".join(platform.libc_ver()).strip(),
        "openssl": ssl.OPENSSL_VERSION,
        "libsnappy": _MISSING if core.startswith("cannot") else _library(maps, "libsnappy"),
        "hub": "built" if _has_hub() else "left out",
    }
    for packages in EXTRAS.values():
        found.update({name: _installed(name) for name in packages})
    return found


def _loaded_core() -> str:
    try:
        from dataproxy._core import build_info  # fails where no compiled module is there

        import_module(_CORE)
    except ImportError as error:
        return f"cannot be loaded: {error}"
    return build_info()["profile"]


def _has_hub() -> bool:
    try:
        return find_spec(_HUB) is not None
    except ImportError:
        return False


def _library(maps: Path, stem: str) -> str:
    """Return the file of a loaded library, whose name has its version; portable wheels have it inside of a module."""
    try:
        text = maps.read_text()
    except OSError:
        return _MISSING
    found = re.search(rf"\S*/{stem}[^/\s]*\.so[^/\s]*$", text, re.MULTILINE)
    return Path(found[0]).resolve().name if found else f"{stem} built in"


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return _MISSING


def installation_findings(versions: Mapping[str, str]) -> list[Finding]:
    """Return what is wrong with the installation, and its versions."""
    found = [_core(versions), _system(versions)]
    for extra, packages in EXTRAS.items():
        found += _packages(extra, packages, versions)
    there = [extra for extra, packages in EXTRAS.items() if extra and all(versions[name] for name in packages)]
    absent = [extra for extra in EXTRAS if extra and extra not in there]
    text = f"{', '.join(there) or 'none'}; not installed: {', '.join(absent) or 'none'}; hub {versions['hub']}"
    found.append(Finding("version", "extras", Level.OK, text))
    return found


def _core(versions: Mapping[str, str]) -> Finding:
    core = versions["core"]
    if core.startswith("cannot"):
        return Finding(
            "version", "dataproxy", Level.ERROR, f"{versions['dataproxy']}, the compiled core {core}",
            "no producer can be made with this installation",
            f"in a checkout: make build; else: {sys.executable} -m pip install --force-reinstall dataproxy-sdk",
        )  # fmt: skip
    if core != "release":
        return Finding(
            "version", "dataproxy", Level.WARNING, f"{versions['dataproxy']}, built as {core}",
            "this build is for tests of the package itself, and much slower", "build it again: make build",
        )  # fmt: skip
    return Finding("version", "dataproxy", Level.OK, versions["dataproxy"])


def _system(versions: Mapping[str, str]) -> Finding:
    names = ("python", "kernel", "libc", "openssl", "libsnappy")
    return Finding("version", "system", Level.OK, ", ".join(versions[name] for name in names if versions[name]))


def _packages(extra: str, packages: Mapping[str, str], versions: Mapping[str, str]) -> list[Finding]:
    """Return findings for packages that are too old, or of which only some are there."""
    found = []
    there = {name: versions[name] for name in packages if versions[name]}
    wanted = f"dataproxy-sdk[{extra}]" if extra else "dataproxy-sdk"
    for name, version in there.items():
        if _numbers(version) < _numbers(packages[name]):
            found.append(
                Finding(
                    "version", name, Level.WARNING, f"{version} is installed, {packages[name]} is the least",
                    "the package was not tried with it", f"pip install --upgrade '{wanted}'",
                )
            )  # fmt: skip
    if not extra and len(there) < len(packages):
        lost = ", ".join(name for name in packages if not versions[name])
        found.append(
            Finding(
                "version", lost, Level.ERROR, "is not installed", "the package needs it for each producer",
                f"pip install '{wanted}'",
            )
        )  # fmt: skip
    return found


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
