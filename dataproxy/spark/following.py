"""Tasks follow the Manager: they begin with the driver's list of proxies, and ask for themselves once it is old."""

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
    """What the driver found: the proxies as a static target, and whom it asked for them and when.

    ``manager`` is the address of the Manager, empty where the user named the proxies; ``secret`` tells that it was
    asked with credentials; ``found_at`` is in seconds since 1970.  Holds no secret.
    """

    target: str
    manager: str = ""
    secret: bool = False
    found_at: float = field(default=0.0, compare=False)

    def age(self) -> float:
        """Return how many seconds ago the driver asked, by the clocks of both machines."""
        return time.time() - self.found_at


NOT_ASKED: Final = KnownProxies("")
"""Of options that no driver has made: there is no Manager to follow."""


def asking(found: KnownProxies, config: ProducerConfig) -> ProducerConfig | None:
    """Return the configuration by which a task asks the Manager; None where it cannot or need not.

    A plan holds no secrets: where the Manager wants them, the executors' environment has them, or the driver's
    list stays what it is.
    """
    if not found.manager:
        return None
    values = {name: os.environ.get(f"DATAPROXY_{name.upper()}", "") for name in _SECRETS} if found.secret else {}
    if found.secret and not all(values.values()):
        _log.debug(
            "the Manager %s requires credentials, and this executor has none: its list is not refreshed", found.manager
        )
        return None
    try:
        return config.replace(target=found.manager, **values)
    except ConfigError as error:  # of a variable that only this machine has
        _log.warning("the list of the Manager %s is not refreshed: %s", found.manager, error)
        return None


def first_question(interval: float, age: float) -> float:
    """Return how many seconds to wait before the first question, for a list that is `age` seconds old.

    An old list is asked for at once, a fresh one when it gets old; tasks that begin together do not all ask together.
    """
    return max(0.0, interval - max(0.0, age)) * random.uniform(0.5, 1.0)
