"""One fault of a TCP proxy: what happens to which bytes of which connections."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from dataproxy.config.suggestion import nearest_name
from dataproxy.errors import ConfigError

__all__ = ["PROXY_KINDS", "ArmedProxyFault", "ProxyFault"]

#: Every kind with the parameters that it takes besides the triggers, and their defaults (None: has to be given).
PROXY_KINDS: Final[Mapping[str, Mapping[str, object]]] = {
    "refuse": {},
    "reset": {"at_byte": 0},
    "close": {"at_byte": 0},
    "half_close": {"at_byte": 0},
    "freeze": {"at_byte": 0},
    "vanish": {"at_byte": 0},
    "corrupt": {"at_byte": None, "mask": 0xFF},
    "delay": {"seconds": None},
    "slice": {"size": 1},
    "bandwidth": {"bytes_per_second": None},
}
_SIDES: Final = ("to_server", "to_client", "both")
_RANGES: Final[dict[str, tuple[float, float]]] = {
    "connection": (1, 2**62),
    "every": (1, 2**62),
    "times": (1, 2**62),
    "seed": (0, 2**64 - 1),
    "share": (0.0, 1.0),
    "at_byte": (0, 2**62),
    "mask": (1, 255),
    "seconds": (0.0, 86400.0),
    "size": (1, 2**20),
    "bytes_per_second": (1, 2**40),
}


@dataclass(frozen=True, slots=True)
class ProxyFault:
    """Say what a FaultProxy does wrong; ``PROXY_KINDS`` lists the kinds with their parameters.

    ``side`` is the direction of the bytes, "to_server", "to_client" or "both".  ``connection`` chooses the n-th
    connection of the proxy, ``every`` each k-th, ``share`` (with ``seed``) a share of them, ``times`` at most this
    many; without them every connection is chosen, those that are open included.  ``at_byte`` n acts directly after the
    n-th byte of a direction (0: at once), for "corrupt" on the n-th byte.  "vanish" drops the packets of a direction,
    acknowledgements too, until it is removed; without a choice of connections and ``at_byte`` new ones are not answered
    either.  ``seconds`` 0 of "delay" holds bytes back until the fault is removed.

    Raises ConfigError.
    """

    kind: str
    side: str = "both"
    connection: int | None = None
    every: int | None = None
    share: float | None = None
    seed: int | None = None
    times: int | None = None
    at_byte: int | None = None
    mask: int | None = None
    seconds: float | None = None
    size: int | None = None
    bytes_per_second: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in PROXY_KINDS:
            raise _unknown("kind", self.kind, tuple(PROXY_KINDS))
        if self.side not in _SIDES:
            raise ConfigError(f"side={self.side!r} is not a direction", hint=f"choose one of {', '.join(_SIDES)}")
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ConfigError(f"{name}={value!r} of a fault is not allowed", hint="it must be a number")
            if type(low) is int and not isinstance(value, int):
                raise ConfigError(f"{name}={value!r} of a fault is not allowed", hint="it must be a whole number")
            if not low <= value <= high:
                raise ConfigError(f"{name}={value!r} of a fault is not allowed", hint=f"it must be {low} to {high}")
        self._check_parameters()

    @classmethod
    def _of(cls, kind: str, options: Mapping[str, Any]) -> ProxyFault:
        """Make a fault from a kind and fields by name.  Raises ConfigError with the nearest name."""
        known = tuple(field.name for field in fields(cls) if field.name != "kind")
        for name in options:
            if name not in known:
                raise _unknown("field", name, known)
        return cls(kind, **options)

    def _hides_host(self) -> bool:
        """Tell whether no client can connect, because packets to the host are lost from the beginning."""
        return (
            self.kind == "vanish"
            and self.side != "to_client"
            and not self.at_byte
            and not any((self.connection, self.every, self.share, self.times))
        )

    def _parameter(self, name: str) -> Any:
        """Return a parameter, or its default."""
        value = getattr(self, name)
        return PROXY_KINDS[self.kind].get(name) if value is None else value

    def _check_parameters(self) -> None:
        parameters = PROXY_KINDS[self.kind]
        for name in ("at_byte", "mask", "seconds", "size", "bytes_per_second"):
            if getattr(self, name) is not None and name not in parameters:
                takes = ", ".join(parameters) or "no parameters"
                raise ConfigError(f"fault {self.kind!r} takes no {name}", hint=f"it takes {takes}")
            if name in parameters and self._parameter(name) is None:
                raise ConfigError(f"fault {self.kind!r} needs {name}", hint=f"give {name}=")
        if self.kind == "corrupt" and self.at_byte == 0:
            raise ConfigError("at_byte=0 of 'corrupt' is not a byte", hint="bytes are counted from 1")
        if self.kind == "refuse" and any((self.connection, self.every, self.share, self.times)):
            raise ConfigError(
                "fault 'refuse' holds for all connections",
                hint="use reset to choose connections; they are accepted first",
            )


class ArmedProxyFault:
    """Refer to a fault of a proxy.  ``seen`` counts connections, ``fired`` how often it did something."""

    def __init__(self, fault: ProxyFault) -> None:
        self.fault = fault
        self.seen = 0
        self.fired = 0
        self._random = random.Random(fault.seed)
        self._chosen: dict[int, bool] = {}

    def _chooses(self, connection: int) -> bool:
        """Tell whether it applies to a connection; decided once for each, in the order of their numbers."""
        if connection not in self._chosen:
            self._chosen[connection] = self._decide(connection)
        return self._chosen[connection]

    def _strikes(self, side: str) -> bool:
        """Tell whether it applies to a direction."""
        return self.fault.side in ("both", side)

    def _decide(self, connection: int) -> bool:
        fault = self.fault
        if fault.connection not in (None, connection):
            return False
        self.seen += 1
        if self.seen % (fault.every or 1) or (fault.share is not None and self._random.random() >= fault.share):
            return False
        return fault.times is None or sum(self._chosen.values()) < fault.times


def _unknown(what: str, name: object, known: tuple[str, ...]) -> ConfigError:
    near = nearest_name(str(name), known)
    hint = f"did you mean {near!r}?" if near else f"choose one of {', '.join(known)}"
    return ConfigError(f"a proxy's fault has no {what} {name!r}", hint=hint)
