"""The calls of AsyncProducer have the parameters of Producer's."""

import inspect
from typing import Any

import pytest

import dataproxy
from dataproxy._core.producer.aio.send import AsyncStream
from dataproxy.producer.producer import Producer


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    """Return name, kind and default of each parameter."""
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


SENDS = ("send", "send_nowait", "send_batch", "send_arrow")
SEAMS = ("begin_again",)  # an AsyncProducer never begins again
CALLS = [name for name, value in vars(Producer).items() if name[0] != "_" and callable(value) and name not in SEAMS]


@pytest.mark.parametrize("name", [*CALLS, *SENDS])
def test_every_public_call_has_the_plain_ones_parameters(name: str) -> None:
    assert parameters(getattr(dataproxy.AsyncProducer, name)) == parameters(getattr(Producer, name))


def test_the_constructor_and_the_handles_have_the_plain_ones_parameters() -> None:
    assert parameters(dataproxy.AsyncProducer) == parameters(Producer)
    for name in SENDS:
        assert parameters(getattr(AsyncStream, name)) == parameters(getattr(dataproxy.Stream, name))
    assert parameters(AsyncStream.send_soon) == parameters(dataproxy.Stream.send)
    assert parameters(dataproxy.AsyncProducer.send_soon) == parameters(Producer.send)
    assert parameters(dataproxy.AsyncProducer.batch) == parameters(Producer.stream)
