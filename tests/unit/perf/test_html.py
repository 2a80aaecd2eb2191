"""The report as a page: whole, well-formed, and without anything that is fetched."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest

from dataproxy.perf.charts import Chart, Line, charts_of, nice_ticks, percentile_curve, svg, write_pictures
from dataproxy.perf.html import html_report
from tests.unit.perf.test_result import LOAD, result_of

LATENCIES = [(1000, 900), (5000, 90), (90_000, 10)]
LAGS = [(10, 1000)]
VOID = {"meta", "line", "circle", "path"}


class Checker(HTMLParser):
    """Collect the tags, and see that each is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_fetches_nothing() -> None:
    page = html_report(result_of(LATENCIES, LAGS))
    checker = Checker()
    checker.feed(page)
    assert not checker.open
    assert not checker.seen & {"script", "link", "img", "iframe", "object"}
    assert not checker.attributes & {"src", "href", "onload", "onclick"}
    assert "url(" not in page and "@import" not in page
    assert page.count("<svg") == len(charts_of(result_of(LATENCIES, LAGS)))
    for text in ("seed", "cores", "p99.99", "latency by percentile", "stored by the hub"):
        assert text in page


def test_names_of_others_are_text_on_the_page() -> None:
    evil = "<script>alert(1)</script>\x1b[2J"
    page = html_report(result_of(LATENCIES, LAGS, load={**LOAD, "target": evil, "size": evil}, options={evil: evil}))
    assert "<script" not in page and "\x1b" not in page
    assert "&lt;script&gt;" in page


def test_a_run_that_is_not_valid_has_no_latencies_on_its_page() -> None:
    page = html_report(result_of(LATENCIES, [(80_000, 1000)]))
    assert "INVALID" in page
    assert "latency by percentile" not in page and "p99.9" not in re.sub(r"the generator itself was late: .*", "", page)


def test_each_chart_is_well_formed() -> None:
    for chart in charts_of(result_of(LATENCIES, LAGS)):
        root = ET.fromstring(svg(chart))
        assert root.tag == "svg"
        places = [float(n) for path in root.iter("path") for n in re.findall(r"-?[\d.]+", path.get("d") or "")]
        places += [float(dot.get(name) or "nan") for dot in root.iter("circle") for name in ("cx", "cy")]
        assert places and all(0 <= place <= 720 for place in places)


def test_gaps_break_a_line_and_nothing_makes_no_chart() -> None:
    drawn = svg(Chart("t", "x", [Line("l", [(0, 1), (1, None), (2, 1), (3, 2)])]))
    assert (ET.fromstring(drawn).find("path").get("d") or "").count("M") == 2  # type: ignore[union-attr]
    assert svg(Chart("t", "x", [Line("l", [(0, None)])])) == ""
    assert "<svg" in svg(Chart("t", "x", [Line("l", [(5, 0)])]))


def test_the_curve_ends_with_the_largest_sample() -> None:
    points = percentile_curve(result_of(LATENCIES, LAGS)).lines[0].points
    ys = [y or 0 for _, y in points]
    assert ys == sorted(ys)
    assert ys[0] == pytest.approx(1) and ys[-1] == pytest.approx(90, rel=0.001)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 0.0031), (3, 17), (0, 2e6), (5, 5), (0, 0)])
def test_ticks_are_round_few_and_inside(low: float, high: float) -> None:
    ticks = nice_ticks(low, high)
    assert 1 <= len(ticks) <= 8
    assert all(float(f"{tick:.3g}") == pytest.approx(tick) for tick in ticks)


def test_pictures_are_written(tmp_path: Path) -> None:
    written = write_pictures(result_of(LATENCIES, LAGS), str(tmp_path / "made"))
    assert len(written) == len(charts_of(result_of(LATENCIES, LAGS)))
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in written)
