"""Protobuf's classes of TubeMQ's messages, by the names of messages.proto; messages.pyi has their types.

They are made of a descriptor at run time, so that every version of protobuf from 4.22 on will do.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
except ImportError as error:
    raise ImportError(
        "the package 'protobuf' is missing; pip install 'dataproxy-sdk[tubemq]'", name=error.name
    ) from error

__all__: list[str] = []

_POOL = descriptor_pool.DescriptorPool()  # of its own: no other package's schema can be in the way


def _load() -> dict[str, Any]:
    """Return the classes and enums by their names, and the enums' values."""
    data = files(__package__).joinpath("messages.desc").read_bytes()
    (schema,) = descriptor_pb2.FileDescriptorSet.FromString(data).file
    made = _POOL.AddSerializedFile(schema.SerializeToString()) or _POOL.FindFileByName(schema.name)
    found: dict[str, Any] = {
        name: message_factory.GetMessageClass(kind) for name, kind in made.message_types_by_name.items()
    }
    for name, kind in made.enum_types_by_name.items():
        found[name] = EnumTypeWrapper(kind)
        found.update(found[name].items())
    return found


_LOADED = _load()
globals().update(_LOADED)
__all__ += sorted(_LOADED)
