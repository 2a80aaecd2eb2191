"""No public call waits for ever unless somebody asked for it."""

import inspect
from pathlib import Path

import pytest

import dataproxy
from dataproxy.hub import Hub
from tests.arch.blocking import ALLOWED, SLEEPERS, endless_waits, native_waits

ROOT = Path(__file__).parents[2]
CLASSES = [
    thing for name in dataproxy.__all__ if inspect.isclass(thing := getattr(dataproxy, name)) and name != "__version__"
] + [Hub]
#: Options that bound a wait whose ``timeout`` is None.
BOUNDS = ("delivery_timeout", "close_timeout", "max_block", "connect_timeout")


def waits() -> list[tuple[str, inspect.Parameter, str]]:
    """Return every public method with a parameter for its time, and its documentation."""
    out = []
    for kind in CLASSES:
        for name, function in inspect.getmembers(kind, callable):
            if name.startswith("_"):
                continue
            try:
                signature = inspect.signature(function)
            except ValueError:  # a method of C without a signature
                continue
            for parameter in signature.parameters.values():
                if "timeout" in parameter.name:
                    out.append((f"{kind.__name__}.{name}", parameter, inspect.getdoc(function) or ""))
    return out


def test_every_wait_has_a_finite_default() -> None:
    found = waits()
    assert {"Producer.flush", "Producer.close", "Delivery.result", "BatchDelivery.result"} <= {
        name for name, _, _ in found
    }
    for name, parameter, text in found:
        assert parameter.default is not parameter.empty, f"{name} has no default for {parameter.name}"
        if parameter.default is None:
            inherited = "``result``" in text
            assert inherited or any(bound in text for bound in BOUNDS), f"{name} does not say what None stands for"
        else:
            assert 0 <= parameter.default < float("inf"), name


@pytest.mark.parametrize("option", BOUNDS)
def test_what_bounds_them_is_finite(option: str) -> None:
    from dataproxy.config import PRODUCER

    assert 0 < PRODUCER.by_name[option].default < 3600
    assert PRODUCER.by_name[option].high < float("inf")


def test_no_wait_in_the_sources_is_endless() -> None:
    assert endless_waits(ROOT) == []
    assert native_waits(ROOT) == []


def test_the_exceptions_are_still_there() -> None:
    for name, _ in ALLOWED:
        assert (ROOT / name).is_file(), name
    for name in SLEEPERS:
        assert (ROOT / "cython_ext" / "dataproxy" / "_core" / name).is_file(), name


def test_a_planted_wait_is_found(tmp_path: Path) -> None:
    (tmp_path / "dataproxy").mkdir()
    core = tmp_path / "cython_ext" / "dataproxy" / "_core" / "client"
    core.mkdir(parents=True)
    (tmp_path / "dataproxy" / "bad.py").write_text(
        "def f(t, q):\n    t.join()\n    q.get(timeout=1)\n    ','.join(q)\n"
    )
    (core / "bad.pyx").write_text("pthread_cond_wait(&c, &m)\n")
    assert endless_waits(tmp_path) == ["dataproxy/bad.py:2: t.join() has no timeout"]
    assert native_waits(tmp_path) == ["client/bad.pyx: pthread_cond_wait has no deadline"]
