"""Objects of the public classes whose ``__init__`` did not run, or ended with an error: they say what is wrong."""

from __future__ import annotations

import asyncio
import inspect
import os
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import dataproxy
from dataproxy.errors import ConfigError, LocalProtocolError
from dataproxy.hub import Hub

KINDS = (dataproxy.Producer, dataproxy.AsyncProducer, Hub)
PRODUCER_CALLS = (
    ("stats",), ("report",), ("close",), ("flush",), ("wait_ready",), ("stream", "s"), ("send", "s", b"x"),
    ("send_nowait", "s", b"x"), ("send_batch", "s", [b"x"]), ("send_arrow", "s", None), ("send_rows", "s", None),
    ("__enter__",), ("__exit__", None, None, None),
)  # fmt: skip
ASYNC_CALLS = (
    *(call for call in PRODUCER_CALLS if call[0] not in ("report", "__enter__", "__exit__")),
    ("room",), ("open",), ("__aenter__",), ("__aexit__", None, None, None),
)  # fmt: skip
HUB_CALLS = (
    ("stats",), ("close",), ("counts",), ("records", "g"), ("entries", "g"), ("health",), ("set_load", 1),
    ("set_service", "running"), ("__enter__",), ("__exit__", None, None, None),
)  # fmt: skip
CALLS = dict(zip(KINDS, (PRODUCER_CALLS, ASYNC_CALLS, HUB_CALLS), strict=True))
ATTRIBUTES = {
    dataproxy.Producer: ("config",),
    dataproxy.AsyncProducer: ("config", "closed"),
    Hub: ("config", "host", "port", "target", "token", "manager", "manager_port", "manager_url", "listeners", "faults"),
}


def without_init(kind: type) -> Any:
    """Return an object of a derived class that forgets ``super().__init__``."""
    return type("Derived", (kind,), {"__init__": lambda self: None})()


def after_failure(kind: type) -> Any:
    """Return an object whose ``__init__`` has raised."""
    made = kind.__new__(kind)
    with pytest.raises(ConfigError):
        made.__init__(nonsense=1)  # type: ignore[misc]
    return made


def answer(value: Any) -> Any:
    """Return what a call returns, awaited."""

    async def wait() -> Any:
        return await value

    return asyncio.run(wait()) if inspect.isawaitable(value) else value


@pytest.mark.parametrize("make", [without_init, after_failure])
@pytest.mark.parametrize("kind", KINDS)
def test_every_call_raises_a_typed_error(kind: type, make: Callable[[type], Any]) -> None:
    made = make(kind)
    for name, *arguments in CALLS[kind]:
        if make is after_failure and (kind, name) == (dataproxy.AsyncProducer, "stream"):
            continue
        with pytest.raises(LocalProtocolError, match=r"was not made|not open yet") as caught:
            answer(getattr(made, name)(*arguments))
        assert caught.value.code == "LOCAL_PROTOCOL", name
    for name in ATTRIBUTES[kind] if make is without_init else ():
        with pytest.raises(LocalProtocolError, match="its __init__ has not run to its end"):
            getattr(made, name)


@pytest.mark.parametrize("make", [without_init, after_failure])
@pytest.mark.parametrize("kind", KINDS)
def test_repr_and_the_end_of_the_object_raise_nothing(kind: type, make: Callable[[type], Any]) -> None:
    made = make(kind)
    assert repr(made) in (f"<{type(made).__name__} not made>", "<Hub closed>")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # pytest turns an exception in __del__ into a warning
        del made


def test_the_error_names_the_class_and_what_to_do() -> None:
    with pytest.raises(LocalProtocolError) as caught:
        without_init(dataproxy.Producer).stats()
    assert caught.value.message == "this Derived was not made: its __init__ has not run to its end"
    assert "super().__init__" in (caught.value.hint or "")


def test_the_class_has_no_such_attribute() -> None:
    for kind in KINDS:
        assert not hasattr(kind, "config")


def test_a_forked_child_gets_the_same_answers() -> None:
    made = [without_init(kind) for kind in KINDS]
    child = os.fork()
    if child == 0:
        ended = 1
        try:
            for one in made:
                repr(one)
            ended = 0
        finally:
            os._exit(ended)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
