"""The tests of TubeMQ's own servers (`tests/interop/tubemq`), at the servers in plain Python."""

from __future__ import annotations

from types import ModuleType

from tests.interop.tubemq import test_group, test_ranges, test_raw_calls

FIXTURES = {
    test_raw_calls: ("group",),
    test_ranges: ("topic", "stored"),
    test_group: ("sender",),
}


def borrowed(module: ModuleType) -> dict[str, object]:
    """Return the tests of a module with their fixtures, but for those that this folder has in its own way."""
    return {name: value for name, value in vars(module).items() if name.startswith("test_") or name in FIXTURES[module]}


for _module in FIXTURES:
    globals().update(borrowed(_module))
