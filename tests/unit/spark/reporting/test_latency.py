"""Histograms that travel with commit messages."""

from hypothesis import given
from hypothesis import strategies as st

from dataproxy.spark.reporting.latency import added, percentile, since
from dataproxy.spark.reporting.reports import JobReport, latency_text
from tests.unit.spark.reporting.test_reports import part


def test_only_what_came_between_two_looks_counts():
    assert since({10: 5, 20: 1}, {10: 2, 20: 1}) == ((10, 3),)
    assert since({10: 5}, {}) == ((10, 5),)


@given(st.lists(st.dictionaries(st.integers(1, 50), st.integers(1, 9)), max_size=5), st.sampled_from([50, 90, 99, 100]))
def test_the_percentile_of_a_sum_is_that_of_all_values(parts, percent):
    steps = added(tuple(sorted(part.items())) for part in parts)
    values = sorted(value for part in parts for value, count in part.items() for _ in range(count))
    found = percentile(steps, percent)
    if not values:
        assert found is None
        return
    below = sum(value <= found * 1e6 + 0.5 for value in values)
    assert below / len(values) >= percent / 100
    assert round(found * 1e6) in values


def test_a_job_has_the_percentiles_of_all_its_tasks():
    job = JobReport.of(
        "j", [part(latencies=((1000, 98), (2000, 1))), part(latencies=((500_000, 1),), attempt=1, rows=7, acked=7)]
    )
    assert (job.latency_p50, job.latency_p99) == (0.001, 0.002)
    assert (job.resent_partitions, job.resent_rows) == (1, 7)
    assert "ack latency p50 1.0 ms, p99 2.0 ms" in job.line()
    assert part(latencies=((1000, 98), (2000, 2))).latency_p99 == 0.002
    assert part().latency_p50 is None
    assert latency_text(None, None) == "no ack latency"
    assert "10 rows, 10 acknowledged (100 bytes), 0 skipped" in part().line()
