"""Refreshing the proxies in tasks: a task begins with the driver's list, and asks the Manager itself when it is old."""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dataproxy.errors import ConfigError
from dataproxy.logs import logger

if TYPE_CHECKING:
    from dataproxy.config import ProducerConfig

__all__ = ["NOT_ASKED", "KnownProxies", "asking", "first_question"]

_log = logger("spark.following")

_SECRETS: Final = ("manager_secret_id", "manager_secret_key")


@dataclass(frozen=True, slots=True)
class KnownProxies:
    """The proxies that the driver found, as a static target, with the Manager that it asked and the time.

    ``manager`` is the address of the Manager, empty if the user named the proxies; ``secret`` tells that the driver
    used credentials; ``found_at`` is in seconds since 1970.  Holds no secret.
    """

    target: str
    manager: str = ""
    secret: bool = False
    found_at: float = field(default=0.0, compare=False)

    def age(self) -> float:
        """Return how many seconds ago the driver asked; it compares the clocks of both machines."""
        return time.time() - self.found_at


NOT_ASKED: Final = KnownProxies("")
"""For options that no driver has made: there is no Manager to ask."""


def asking(found: KnownProxies, config: ProducerConfig) -> ProducerConfig | None:
    """Return the configuration with which a task asks the Manager; None if it cannot or need not ask.

    A plan holds no secrets.  If the Manager requires them, they must be in the executors' environment, or in a file
    that an option names; else the task keeps the driver's list.
    """
    if not found.manager:
        return None
    wanted = found.secret and not (config.manager_secret_file or config.manager_header_file)
    values = {name: os.environ.get(f"DATAPROXY_{name.upper()}", "") for name in _SECRETS} if wanted else {}
    if wanted and not all(values.values()):
        _log.debug(
            "the Manager %s requires credentials, and this executor has none: its list is not refreshed", found.manager
        )
        return None
    try:
        return config.replace(target=found.manager, **values)
    except ConfigError as error:  # from an environment variable of this machine
        _log.warning("the list of the Manager %s is not refreshed: %s", found.manager, error)
        return None


def first_question(interval: float, age: float) -> float:
    """Return how many seconds to wait before the first question, for a list that is `age` seconds old.

    An old list is refreshed at once, a fresh one when it gets old; tasks that start together ask at different times.
    """
    return max(0.0, interval - max(0.0, age)) * random.uniform(0.5, 1.0)
