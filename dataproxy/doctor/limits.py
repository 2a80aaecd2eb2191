"""What this machine allows: open files, memory, cores, local ports, against what a producer of these options uses."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dataproxy.config.units import format_size
from dataproxy.doctor.findings import Finding, Level

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dataproxy.config import ProducerConfig

__all__ = ["limit_findings", "read_limits"]

_MIB: Final = 1 << 20
_UNLIMITED: Final = 1 << 60  # cgroup version 1 writes a number near 2**63 for no limit
_SPARE_FILES: Final = 64
_AUTO_CONNECTIONS: Final = 8
_BUSY_SHARE: Final = 0.8
_USED_SHARE: Final = 0.5
_FEW_PORTS: Final = 4096

Limits = dict[str, "int | float | None"]


def read_limits(root: Path = Path("/")) -> Limits:
    """Return the limits of this process; None where there is none, or it cannot be read.

    ``open_files_limit``, ``open_files_hard_limit``, ``open_files``; ``memory_limit`` (the smallest of the cgroups and
    of RLIMIT_AS, bytes), ``memory_available``; ``cores`` (that it may run on), ``core_quota`` (of the cgroups);
    ``local_ports``, ``time_wait`` (closed connections that still occupy one).
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    low, high = [*_numbers(root / "proc/sys/net/ipv4/ip_local_port_range"), 0, 0][:2]
    return {
        "open_files_limit": None if soft == resource.RLIM_INFINITY else soft,
        "open_files_hard_limit": None if hard == resource.RLIM_INFINITY else hard,
        "open_files": _count(root / "proc/self/fd"),
        "memory_limit": _memory_limit(root),
        "memory_available": _after(root / "proc/meminfo", "MemAvailable:", 0, 1024),
        "cores": len(os.sched_getaffinity(0)),
        "core_quota": _core_quota(root),
        "local_ports": high - low + 1 if high else None,
        "time_wait": _after(root / "proc/net/sockstat", "TCP:", 5, 1),
    }


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def _numbers(path: Path) -> list[int]:
    return [int(word) for word in _text(path).split() if word.isdecimal()]


def _count(folder: Path) -> int | None:
    try:
        return sum(1 for _ in folder.iterdir())
    except OSError:
        return None


def _after(path: Path, word: str, skipped: int, unit: int) -> int | None:
    """Return the number that stands ``skipped`` words after ``word`` in its line, times ``unit``."""
    for line in _text(path).splitlines():
        words = line.split()
        if words and words[0] == word and len(words) > skipped + 1 and words[skipped + 1].isdecimal():
            return int(words[skipped + 1]) * unit
    return None


def _cgroups(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of this process's cgroup and of those above it; version 2 and 1."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, names, own = [*line.split(":", 2), "", ""][:3]
        if names and controller not in names.split(","):
            continue
        home = root / "sys/fs/cgroup" / controller if names else root / "sys/fs/cgroup"
        below = Path(own.lstrip("/"))
        yield from (home / one for one in (below, *below.parents))


def _memory_limit(root: Path) -> int | None:
    found = [
        number
        for folder in _cgroups(root, "memory")
        for name in ("memory.max", "memory.limit_in_bytes")
        for number in _numbers(folder / name)
    ]
    address_space = resource.getrlimit(resource.RLIMIT_AS)[0]
    if address_space != resource.RLIM_INFINITY:
        found.append(address_space)
    return min((number for number in found if number < _UNLIMITED), default=None)


def _core_quota(root: Path) -> float | None:
    found = []
    for folder in _cgroups(root, "cpu"):
        numbers = _numbers(folder / "cpu.max")  # "max 100000" has one number
        if len(numbers) < 2:
            numbers = _numbers(folder / "cpu.cfs_quota_us") + _numbers(folder / "cpu.cfs_period_us")
        if len(numbers) == 2 and numbers[1]:
            found.append(numbers[0] / numbers[1])
    return min(found, default=None)


def limit_findings(limits: Mapping[str, int | float | None], config: ProducerConfig, proxies: int) -> list[Finding]:
    """Return whether the limits leave room for a producer with these options and so many proxies."""
    return [_files(limits, config, proxies), _memory(limits, config), _cores(limits, config), _ports(limits)]


def _files(limits: Mapping[str, int | float | None], config: ProducerConfig, proxies: int) -> Finding:
    soft, used = limits["open_files_limit"], limits["open_files"] or 0
    connections = config.connections or min(max(proxies, 1), _AUTO_CONNECTIONS)
    needed = max(connections, config.executors) + 4 * config.executors + _SPARE_FILES
    if soft is None:
        return Finding("limit", "open files", Level.OK, "no limit")
    text = f"{soft:,} allowed, {used:,} open; a producer needs about {needed - _SPARE_FILES}"
    if used + needed <= soft:
        return Finding("limit", "open files", Level.OK, text)
    return Finding(
        "limit", "open files", Level.ERROR if soft < needed - _SPARE_FILES else Level.WARNING, text,
        "where they run out, no connection can be opened: messages wait and expire",
        "raise it: ulimit -n 65536, LimitNOFILE= of a systemd unit, or ulimits of a container",
    )  # fmt: skip


def _memory(limits: Mapping[str, int | float | None], config: ProducerConfig) -> Finding:
    need = int(config.buffer_bytes * 1.25) + 8 * _MIB + config.undelivered_bytes
    limit, available = limits["memory_limit"], limits["memory_available"]
    text = f"a producer with buffer_bytes={format_size(config.buffer_bytes)} uses up to {_size(need)}"
    for what, number, name in ((limit, limit, "allowed"), (None, available, "available")):
        if number is None:
            continue
        text += f"; {_size(number)} {name}"
        share = need / max(number, 1)
        if share > (_USED_SHARE if what is not None else _BUSY_SHARE):
            return Finding(
                "limit", "memory", Level.ERROR if what is not None and share > 1 else Level.WARNING, text,
                "while proxies are slow or away the buffer fills; at the limit the kernel kills the process, and what"
                " is not delivered is lost",
                "lower buffer_bytes (and undelivered_bytes), or give the process more memory",
            )  # fmt: skip
    return Finding("limit", "memory", Level.OK, text)


def _size(number: float) -> str:
    return f"{number / _MIB:,.0f} MiB" if number < 10 << 30 else f"{number / (1 << 30):,.0f} GiB"


def _cores(limits: Mapping[str, int | float | None], config: ProducerConfig) -> Finding:
    cores, quota = limits["cores"] or 1, limits["core_quota"]
    most = cores if quota is None else min(cores, quota)
    text = f"{cores} to run on" + ("" if quota is None else f", {quota:.2g} by quota")
    text += f"; executors={config.executors}"
    if config.executors <= max(most, 1):
        return Finding("limit", "cores", Level.OK, text)
    return Finding(
        "limit", "cores", Level.WARNING, text,
        "more network threads than cores take time from each other and from the application",
        f"set executors={max(int(most) - 1, 1)}; one executor fills a fast network",
    )  # fmt: skip


def _ports(limits: Mapping[str, int | float | None]) -> Finding:
    ports, waiting = limits["local_ports"], limits["time_wait"] or 0
    if ports is None:
        return Finding("limit", "local ports", Level.OK, "their number cannot be read")
    text = f"{ports:,} for outgoing connections, {waiting:,} closed connections wait"
    if ports >= _FEW_PORTS and waiting < _BUSY_SHARE * ports:
        return Finding("limit", "local ports", Level.OK, text)
    return Finding(
        "limit", "local ports", Level.WARNING, text,
        "where they run out, connections fail with 'Cannot assign requested address'",
        "widen net.ipv4.ip_local_port_range, and look for the program that opens so many connections",
    )  # fmt: skip
