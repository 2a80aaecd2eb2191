from typing import Self

from typing_extensions import disjoint_base

__all__ = ["TlsContexts", "find_library"]

def find_library() -> None: ...

@disjoint_base
class TlsContexts:
    def __new__(cls, *, server: bool = False) -> Self: ...
    def load(
        self,
        *,
        certificate: str = "",
        key: str = "",
        password: bytes = b"",
        authorities: str = "",
        folder: bool = False,
        verify: bool = True,
        check_host: bool = True,
        newest: bool = False,
    ) -> None: ...
    @property
    def loads(self) -> int: ...
