"""Several Managers of one InLong cluster: all give the same answer, so one that answers is enough."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final

from dataproxy.errors import DiscoveryError
from dataproxy.logs import logger
from dataproxy.producer.discovery.credentials import Credentials
from dataproxy.producer.discovery.manager import ManagerClient

if TYPE_CHECKING:
    from dataproxy.config.model import ProducerConfig
    from dataproxy.trust.watched import Trust
    from dataproxy.types import ManagerTarget, ProxyList

__all__ = ["about_the_group", "ask_managers"]

_LOG: Final = logger("route")
#: Codes of answers about the group.  All Managers read the same database, so the next one would answer the same.
_ANSWERS: Final = frozenset({"GROUP_REFUSED", "NO_PROXIES"})


def about_the_group(error: DiscoveryError) -> bool:
    """Tell whether an error is what a Manager says about the group, and not the failure to get an answer."""
    return error.code in _ANSWERS


def ask_managers(
    target: ManagerTarget,
    config: ProducerConfig,
    trust: Trust | None = None,
    *,
    group_id: str = "",
    credentials: Credentials | None = None,
) -> tuple[ProxyList, ManagerTarget]:
    """Return the proxies of a group, and the target with the Manager that answered moved to the front.

    ``trust``: settings for ``https://``; None: they are made from ``config``.  ``group_id`` is that of ``config`` if it
    is empty.  The Managers are asked in turn, each for at most ``manager_timeout``, until one answers.  Raises
    DiscoveryError; if several were asked, it has the failure of each of them and the code of the first one's error.
    ConfigError for credentials that cannot be used.
    """
    credentials = credentials or Credentials(config)
    failures: list[DiscoveryError] = []
    urls = (target.url, *target.others)
    for i, url in enumerate(urls):
        try:
            with closing(ManagerClient(target._replace(url=url), config, trust, credentials=credentials)) as client:
                answer = client.fetch(group_id or config.group_id)
        except DiscoveryError as error:
            if error.code in _ANSWERS:
                raise
            failures.append(error)
            continue
        for failure in failures:
            _LOG.warning("%s; the Manager at %s answered", failure.message, url)
        return answer, target._replace(url=url, others=urls[i + 1 :] + urls[:i])
    first = failures[0]
    if len(failures) == 1:
        raise first
    raise DiscoveryError(
        f"none of {len(urls)} Managers answered: {'; '.join(error.message for error in failures)}",
        code=first.code,
        hint=first.hint,
        details={"urls": urls},
    ) from first
