"""Lists of proxies kept in a folder, for starts at which no Manager answers."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dataproxy.logs import logger
from dataproxy.producer.discovery.answer import decode_data
from dataproxy.producer.discovery.smallfile import read_small

if TYPE_CHECKING:
    from dataproxy.types import ManagerTarget, ProxyList

__all__ = ["ListCache"]

_LOG: Final = logger("route")
_FORMAT: Final = 1
_MAX_BYTES: Final = 16 << 20
_NAME: Final = 40  # characters of a group in a file's name


class _Kept(msgspec.Struct):
    """The content of a file.  ``written`` is in seconds since 1970, ``data`` as a Manager gives it."""

    format: int
    managers: list[str]
    tenant: str
    group: str
    cluster: str
    protocol: str
    written: float
    data: msgspec.Raw


class ListCache:
    """Keep one file for each Manager, group (or cluster) and protocol in ``folder``; it is made if it is missing.

    Files are replaced by a rename, so that a reader never sees half of one; of several processes the last one wins.  A
    folder or a disk that takes nothing, and a file that cannot be used, are told by a warning, and nothing fails for
    them.  Any thread.
    """

    def __init__(
        self,
        folder: str,
        max_age: float,
        *,
        tenant: str = "",
        protocol: str = "TCP",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._max_age = max_age
        self._tenant = tenant
        self._protocol = protocol
        self._clock = clock
        self._complaint = ""

    def write(self, target: ManagerTarget, group: str, found: ProxyList) -> None:
        """Keep a list.  Raises nothing that the file system may cause."""
        kept = {
            "format": _FORMAT, "managers": _managers(target), "tenant": self._tenant,
            "group": "" if target.cluster else group, "cluster": target.cluster, "protocol": self._protocol,
            "written": self._clock(), "data": _data(found, self._protocol),
        }  # fmt: skip
        path = self._path(target, group)
        part = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.part"
        try:
            os.makedirs(self._folder, exist_ok=True)  # noqa: PTH103 - pathlib costs every program that starts 4 ms
            try:
                _write(part, msgspec.json.format(msgspec.json.encode(kept), indent=1))
                os.replace(part, path)  # noqa: PTH105
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(part)  # noqa: PTH108
                raise
        except OSError as error:
            why = error.strerror or str(error)
            if why != self._complaint:
                _LOG.warning("the list of proxies is not kept in cache_dir %r: %s", self._folder, why)
            self._complaint = why
        else:
            self._complaint = ""

    def read(self, target: ManagerTarget, group: str) -> tuple[ProxyList, float] | None:
        """Return a list and its age in seconds; None, with a warning where a file is of no use, if there is none."""
        path = self._path(target, group)
        try:
            kept = msgspec.json.decode(read_small(path, _MAX_BYTES), type=_Kept)
            self._check(kept, target, group)
            found = decode_data(bytes(kept.data), self._protocol)
            if not found.endpoints:
                raise ValueError("names no proxy")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:  # msgspec's errors are ValueErrors
            why = error.strerror or error if isinstance(error, OSError) else error
            _LOG.warning("the file %r in cache_dir is not used: %s", path, why)
            return None
        return found, max(0.0, self._clock() - kept.written)

    def _check(self, kept: _Kept, target: ManagerTarget, group: str) -> None:
        """Raise ValueError for a file of another format or Manager, or one that is too old."""
        if kept.format != _FORMAT:
            raise ValueError(f"its format is {kept.format}, not {_FORMAT}")
        of = (kept.managers, kept.tenant, kept.cluster or kept.group, kept.protocol)
        if of != (_managers(target), self._tenant, target.cluster or group, self._protocol):
            raise ValueError("it is about another Manager, group or protocol")
        age = self._clock() - kept.written
        if not age <= self._max_age:
            raise ValueError(f"it is {age:.0f} s old, and cache_max_age is {self._max_age:g} s")

    def _path(self, target: ManagerTarget, group: str) -> str:
        """Return the path of a file: the name begins as the group does, and the rest tells all apart."""
        name = target.cluster or group
        parts = [*_managers(target), self._tenant, "cluster" if target.cluster else "group", name, self._protocol]
        digest = hashlib.blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:_NAME]
        return os.path.join(self._folder, f"{plain}-{digest}.json")  # noqa: PTH118


def _managers(target: ManagerTarget) -> list[str]:
    return sorted((target.url, *target.others))  # the one that answered last is not always the first


def _data(found: ProxyList, protocol: str) -> dict[str, Any]:
    """Return a list in the form of a Manager's ``data`` object."""
    ids = found.ids or ("",) * len(found.endpoints)
    nodes = [
        {"id": number or None, "ip": one.host, "port": one.port, "protocolType": protocol}
        for one, number in zip(found.endpoints, ids, strict=True)
    ]
    return {
        "clusterId": found.cluster_id, "isSwitch": found.is_switch, "load": found.load,
        "maxPacketLength": found.max_packet_length or None, "nodeList": nodes,
    }  # fmt: skip


def _write(path: str, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)  # else a power cut after the rename may leave an empty file
    finally:
        os.close(descriptor)
