"""docs/observability.md against the table of metrics, both ways."""

import re
from pathlib import Path

from dataproxy.observe.metrics import DURATION, METRICS

PAGE = Path(__file__).parents[2] / "docs" / "observability.md"


def test_every_metric_has_a_row_and_every_row_a_metric() -> None:
    cells = [line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)} == {m.name for m in (*METRICS, DURATION)}
