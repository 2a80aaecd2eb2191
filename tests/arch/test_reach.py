"""No module reaches into a struct two layers down; each rule is shown to bite."""

from pathlib import Path

import pytest

from tests.arch.reach import reaching

ROOT = Path(__file__).parents[2]
CORE = "cython_ext/dataproxy/_core"


def write(root: Path, name: str, line: str) -> None:
    path = root / CORE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'"""Docs."""\n\n{line}\n')


def test_every_module_keeps_to_its_own_structs():
    assert reaching(ROOT) == []


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("producer/accumulate/rowpacks.pyx", "unwritten -= relaxed_load(&b.executors[i].pool.flight_bytes)"),
        ("producer/snapshot.pyx", "pool = &g.executors[i].pool"),
        ("producer/snapshot.pyx", "n[0] = e.pool.n_connections"),
        ("producer/producer.pyx", "    self.engine.batcher.closed = True"),
        ("producer/ingest/stream.pyx", "seen = atomic_load(&core.engine.accounting.turns)"),
        ("perf/generator.pyx", "atomic_add(&g.completions.bytes, n)"),
        ("producer/accumulate/overflow.pyx", "pthread_mutex_lock(&b.accounting.lock)"),
        ("net/executor.pyx", "pthread_mutex_lock(&e.owner.batcher.lock)"),
        ("producer/ingest/columnar/columns.pyx", "span = b.span_ms"),
        ("server/store/append.pyx", "start = store.window.dedupe.window.ring.tail"),
    ],
)
def test_a_reach_into_another_struct_is_found(tmp_path, name, line):
    write(tmp_path, name, line)
    (violation,) = reaching(tmp_path)
    assert f"{name}:3" in violation


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("producer/ingest/stream.pyx", "batcher_append(&core.engine.batcher, s, p, n, &x, NULL, NULL)"),
        ("producer/accumulate/batcher.pyx", "pthread_mutex_lock(&b.lock)"),
        ("perf/generator.pyx", "pthread_mutex_lock(&self.tally.lock)"),
        ("producer/engine.pyx", "g.batcher.spares = &g.spares"),
        ("producer/accumulate/overflow.pyx", "executor_drop(b.executors[p.executor], p)"),
        ("net/executor.pyx", "return relaxed_load(&e.pool.flight_bytes)"),
    ],
)
def test_a_call_of_the_owner_is_accepted(tmp_path, name, line):
    write(tmp_path, name, line)
    assert reaching(tmp_path) == []
