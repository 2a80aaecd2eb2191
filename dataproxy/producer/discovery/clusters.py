"""Which clusters a producer sends to, and which groups go where: made of answers, without threads or time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from dataproxy.types import ProxyList, ResolvedEndpoint

__all__ = ["Answer", "Cluster", "ClusterMap", "Picture"]

#: In `Picture.groups`: nothing is known of the group yet.
_NOWHERE = -1


class Answer(NamedTuple):
    """Hold a list of proxies with their addresses; ``age`` in seconds if it comes from ``cache_dir``, else None."""

    found: ProxyList
    proxies: tuple[ResolvedEndpoint, ...]
    age: float | None = None


class Cluster(NamedTuple):
    """Hold the proxies of a cluster under the number that the engine knows it by.

    ``layouts``: where proxies have partitions, the stores and the partitions in each, by a proxy's label.
    """

    number: int
    proxies: tuple[ResolvedEndpoint, ...]
    layouts: Mapping[str, tuple[int, int]] | None = None


class Picture(NamedTuple):
    """Hold all clusters of a producer.

    ``groups`` has the number of the cluster of each group, in the order of the groups' numbers, -1 where nothing is
    known yet.  None: there is one cluster, for every group.  ``fixed``: in the same order the partition that takes the
    messages of a group, -1 for any.  ``admission``: the token and the proof that requests show.
    """

    clusters: tuple[Cluster, ...] = ()
    groups: tuple[int, ...] | None = None
    fixed: tuple[int, ...] | None = None
    admission: tuple[int, bytes] | None = None

    def same(self, other: Picture) -> bool:
        """Tell whether both have the same clusters with the same ids, addresses and ports, in any order."""
        return self.groups == other.groups and self.same_proxies(other)

    def same_proxies(self, other: Picture) -> bool:
        """Tell whether both have the same clusters, wherever the groups go."""
        return _as_sets(self) == _as_sets(other)


def _as_sets(picture: Picture) -> dict[int, frozenset[tuple[str, str, str]]]:
    return {
        cluster.number: frozenset((one.label, one.other, one.node) for one in cluster.proxies)
        for cluster in picture.clusters
    }


class ClusterMap:
    """Number clusters.  A number is never used again, so that a cluster with a new number has new connections.

    Groups with the same ``clusterId`` share a cluster, and the newest answer has its proxies.  Another ``isSwitch``
    makes another cluster of it.  Where a Manager gives no ``clusterId``, each group has a cluster of its own.
    """

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._next = 0
        self._single: ProxyList | None = None

    def picture(self, answers: Mapping[str, Answer], groups: Iterable[str]) -> Picture:
        """Return the clusters of ``answers``, by group with the newest last, and where each of ``groups`` goes."""
        clusters: dict[object, tuple[ResolvedEndpoint, ...]] = {}
        keys: dict[str, object] = {}
        for group, answer in answers.items():
            found = answer.found
            key = (found.cluster_id, found.is_switch, group if found.cluster_id is None else "")
            keys[group] = key
            clusters[key] = answer.proxies
        self._numbers = {key: self._numbers[key] for key in clusters if key in self._numbers}
        for new in clusters:
            if new not in self._numbers:
                self._numbers[new] = self._new()
        return Picture(
            tuple(Cluster(self._numbers[key], proxies) for key, proxies in clusters.items()),
            tuple(self._numbers[keys[group]] if group in keys else _NOWHERE for group in groups),
        )

    def single(self, answer: Answer | None) -> Picture:
        """Return the picture of a target that has one list for all groups."""
        if answer is None:
            return Picture()
        before, self._single = self._single, answer.found
        if before is not None and _moved(before, answer.found):
            self._new()
        return Picture((Cluster(self._next, answer.proxies),))

    def _new(self) -> int:
        self._next += 1
        return self._next


def _moved(before: ProxyList, after: ProxyList) -> bool:
    """Tell whether clients have to move; a list without a ``clusterId`` (a task's first one) says nothing about it."""
    if before.cluster_id is None or after.cluster_id is None:
        return False
    return (before.cluster_id, before.is_switch) != (after.cluster_id, after.is_switch)
