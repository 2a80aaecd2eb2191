"""docs/statistics.md against the types: every field has a row, every row names a field."""

import dataclasses
import re
from pathlib import Path

from dataproxy.producer.stats import ConnectionStats, Latency, ProducerStats

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"


def rows(start: str, end: str) -> set[str]:
    """Return the names in the first column of the table between two texts of the page."""
    part = PAGE.read_text().split(start, 1)[1].split(end, 1)[0]
    cells = [line.split("|")[1] for line in part.splitlines() if line.startswith("| `")]
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def names(kind: type, prefix: str = "") -> set[str]:
    return {prefix + field.name for field in dataclasses.fields(kind)}


def test_producer_statistics() -> None:
    wanted = (names(ProducerStats) - {"latency", "connections"}) | names(Latency, "latency.")
    assert rows("# Statistics", "Of each connection") == wanted


def test_connection_statistics() -> None:
    assert rows("Of each connection", "`Report`") == names(ConnectionStats)
