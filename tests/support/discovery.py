"""Whom a source of proxies tells, in tests."""

from __future__ import annotations

from dataproxy.producer.discovery.clusters import Picture
from dataproxy.producer.discovery.proxies import ProxySource

__all__ = ["Told", "refresh"]


class Told:
    """Note what a producer would be told; ``active`` are the numbers of clusters with a connection, None: all."""

    def __init__(self) -> None:
        self.pictures: list[Picture] = []
        self.lengths: list[int] = []
        self.troubles: list[str] = []
        self.active: set[int] | None = None
        self.errors: list[Exception] = []  # to be raised by the next calls

    def _use_clusters(self, picture: Picture) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.pictures.append(picture)

    def _limit_frames(self, max_packet_length: int) -> None:
        self.lengths.append(max_packet_length)

    def _not_found(self, text: str) -> None:
        self.troubles.append(text)

    def _active_clusters(self) -> set[int]:
        if self.active is None:
            return set(range(100))
        return self.active

    def addresses(self) -> list[list[str]]:
        """Return the addresses of all clusters of each picture."""
        return [[one.address for cluster in picture.clusters for one in cluster.proxies] for picture in self.pictures]

    def labels(self) -> list[list[str]]:
        """Return the labels of all clusters of each picture."""
        return [[one.label for cluster in picture.clusters for one in cluster.proxies] for picture in self.pictures]


def refresh(source: ProxySource) -> None:
    """Do what the discovery thread, which sleeps, would do at its next round."""
    source._schedule.at_once(0.0)
    source._turn()
