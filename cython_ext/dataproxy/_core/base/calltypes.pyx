"""Makes the types that plat/calltypes declares, once in a process.

Locality: GIL, while it is imported.  Locks: none.
"""

from dataproxy._core.plat.pytype cimport make_awaited, make_callable, make_method

__all__ = ["Awaited", "Callable", "Method"]

Callable = make_callable()
Method = make_method()
Awaited = make_awaited()
