"""Attributes that ``__init__`` makes: asked for before that, they say so."""

from __future__ import annotations

from typing import Any, Never

from dataproxy.errors import LocalProtocolError

__all__ = ["Unmade", "made_by_init"]


class Unmade:
    """What a class holds in the place of an attribute until ``__init__`` sets that of the instance.

    It has no ``__set__``, so a set attribute is found as if this was not there.
    """

    def __get__(self, instance: object, owner: type) -> Never:
        if instance is None:
            raise AttributeError(f"only objects of {owner.__name__} have this attribute")
        name = type(instance).__name__
        raise LocalProtocolError(
            f"this {name} was not made: its __init__ has not run to its end",
            hint="a derived class calls super().__init__(...) in its own __init__, before it uses the object",
        )


def made_by_init() -> Any:
    """Return what stands for an attribute until ``__init__`` sets it; reading it raises LocalProtocolError."""
    return Unmade()
