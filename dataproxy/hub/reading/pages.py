"""A reader of the pages of an LMDB file that checks every value before it uses it.

The library itself reads pages through a memory map without checks, so that damage may end the process.  This module
reads the file.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

__all__ = ["PageFile", "Tree"]

_MAGIC: Final = 0xBEEFC0DE
_HEAD: Final = 16  # bytes of a page's header
_META_BYTES: Final = 152
_BRANCH, _LEAF, _OVERFLOW, _META = 1, 2, 4, 8
_BIG, _SUB = 1, 2  # flags of a node: its data are on pages of their own; its data are a tree
_KINDS, _INTEGER_KEYS = 0x7E, 8  # flags of a tree: how its keys are compared, and whether a key has several values
_FREE: Final = "free pages"
_TREE: Final = struct.Struct("<IHHQQQQQ")  # pad, flags, depth, branch, leaf and overflow pages, entries, root
_NONE: Final = 2**64 - 1
_DEPTH_MOST: Final = 32
_PAGE_SIZES: Final = {1 << n for n in range(9, 17)}


class Tree(NamedTuple):
    """Describe one tree as its row says."""

    name: str
    depth: int
    branches: int
    leaves: int
    overflows: int
    entries: int
    root: int
    flags: int


class PageFile:
    """Walk through the newest state in a data file; ``note`` is called with (where, what) for each damage found."""

    def __init__(self, path: str, note: Callable[[str, str], None], progress: Callable[[int, int], None]) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # must not block on a pipe
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            os.close(self._fd)
            raise OSError(errno.EINVAL, f"{os.path.basename(path)} is no regular file")  # noqa: PTH119
        self._note = note
        self._progress = progress
        self.bytes = os.fstat(self._fd).st_size
        self.page_bytes = 4096
        self.last_page = 1
        self.pages = 0  # pages that were read
        self._used = bytearray()
        self._metas: list[bytes] = []
        self._trees: list[Tree] = []
        self._leaves_until: int | None = None  # leaves are not read once so many pages were read

    def close(self) -> None:
        """Close the file; idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def open(self) -> Tree | None:
        """Read the meta pages; return the tree of trees, None if no meta page can be read."""
        found = [meta for meta in (self._meta(i) for i in range(2)) if meta is not None]
        if not found:
            return None
        number, last, trees = max(found)
        self._metas = self._meta_pages()
        if len(found) == 2 and abs(found[0][0] - found[1][0]) > 1:
            self._note("meta pages", f"their numbers, {found[0][0]} and {found[1][0]}, do not follow each other")
        self.last_page = last
        if (last + 1) * self.page_bytes > self.bytes:
            self._note("file", f"{self.bytes} bytes are there of {(last + 1) * self.page_bytes} of state {number}")
            self.last_page = self.bytes // self.page_bytes - 1
        self._used = bytearray(self.last_page + 1)
        self._free(self._kind_fits(trees[0]))
        return self._kind_fits(trees[1])

    def moved(self) -> bool:
        """Tell whether a writer has committed since ``open``: it may have reused pages that were read here."""
        return self._meta_pages() != self._metas

    def _meta_pages(self) -> list[bytes]:
        return [os.pread(self._fd, _META_BYTES, index * self.page_bytes) for index in range(2)]

    def _meta(self, index: int) -> tuple[int, int, tuple[Tree, Tree]] | None:
        """Return (number, last page, (tree of free pages, tree of trees)) of a meta page."""
        where = f"meta page {index}"
        page = os.pread(self._fd, 4096, index * self.page_bytes)
        if len(page) < _META_BYTES or struct.unpack_from("<II", page, _HEAD) != (_MAGIC, 1):
            self._note(where, "it is none of this library")
            return None
        number_of_page, _, flags = struct.unpack_from("<QHH", page)
        size = struct.unpack_from("<I", page, 40)[0]
        last, number = struct.unpack_from("<QQ", page, 136)
        if number_of_page != index or not flags & _META or size not in _PAGE_SIZES:
            self._note(where, "its header is damaged")
            return None
        if number > 1 and number & 1 != index:
            self._note(where, f"state {number} does not belong there")
            return None
        self.page_bytes = size
        return number, last, (self._tree(_FREE, page[40:88]), self._tree("trees", page[88:136]))

    def _tree(self, name: str, row: bytes) -> Tree:
        _, flags, depth, branches, leaves, overflows, entries, root = _TREE.unpack(row)
        return Tree(name, depth, branches, leaves, overflows, entries, root, flags)

    def _kind_fits(self, tree: Tree) -> Tree:
        """Note a tree with flags that a store never has: a write to such a tree would end the process."""
        if tree.flags & _KINDS != (_INTEGER_KEYS if tree.name == _FREE else 0):
            self._note(tree.name, "its flags are damaged")
        return tree

    def trees(self, top: Tree) -> dict[str, Tree]:
        """Return the trees by their names."""
        return {
            key.decode("utf-8", "replace"): self._kind_fits(self._tree(key.decode("utf-8", "replace"), value))
            for key, value, is_tree in self._rows(top)
            if is_tree and len(value) == _TREE.size
        }

    def rows(self, tree: Tree) -> Iterator[tuple[bytes, bytes]]:
        """Yield the rows of a tree in order, as far as its pages can be read."""
        for key, value, _ in self._rows(tree):
            yield key, value

    def scan(self, tree: Tree, pages: int) -> Iterator[tuple[bytes, bytes]]:
        """Check whether the pages of a tree can be followed; after ``pages`` pages in all, only branches are read.

        Yields the rows of the leaves that were read.
        """
        if tree.root == _NONE:
            return
        self._leaves_until = pages
        seen = [0, 0, 0, 0]
        before = b""
        for key, value, _ in self._walk(tree, tree.root, 1, seen):
            if key <= before:  # at first ``before`` is empty, and no key is empty
                self._note(tree.name, f"the rows {before.hex()} and {key.hex()} are not in order")
            before = key
            seen[3] += 1
            yield key, value
        said = [tree.branches, tree.leaves, tree.overflows, tree.entries]
        if seen != said and self.pages < pages:
            self._note(tree.name, f"{seen} branch, leaf and overflow pages and rows are there, {said} should be")

    def _free(self, tree: Tree) -> None:
        """Mark the free pages; a page that is free and in use would be overwritten."""
        for _, value, _ in self._rows(tree, ordered=False):
            n = int.from_bytes(value[:8], "little")
            if n * 8 + 8 > len(value):
                self._note("free pages", "a list is longer than its row")
                continue
            for page in struct.unpack_from(f"<{n}Q", value, 8):
                self._claim(page, 1, "free pages")

    def _rows(self, tree: Tree, *, ordered: bool = True) -> Iterator[tuple[bytes, bytes, bool]]:
        if tree.root == _NONE:
            if tree.entries:
                self._note(tree.name, f"no page is left of {tree.entries} rows")
            return
        seen = [0, 0, 0, 0]  # branch, leaf, overflow pages, rows
        before: bytes | None = None
        for key, value, is_tree in self._walk(tree, tree.root, 1, seen):
            if ordered and before is not None and key <= before:
                self._note(tree.name, f"the rows {before.hex()} and {key.hex()} are not in order")
            before = key
            seen[3] += 1
            yield key, value, is_tree
        said = [tree.branches, tree.leaves, tree.overflows, tree.entries]
        if seen != said:
            self._note(tree.name, f"{seen} branch, leaf and overflow pages and rows are there, {said} should be")

    def _claim(self, page: int, n: int, name: str) -> bool:
        """Mark ``n`` pages as used; False if one does not exist, or is used already, which is noted as damage."""
        if page < 2 or n < 1 or page + n - 1 > self.last_page:
            self._note(name, f"page {page} (of {n}) is beyond the file")
            return False
        if any(self._used[page : page + n]):
            self._note(name, f"page {page} (of {n}) is used twice")
            return False
        self._used[page : page + n] = b"\1" * n
        self.pages += n
        if self.pages & 0xFF == 0:
            self._progress(self.pages, self.last_page + 1)
        return True

    def _walk(self, tree: Tree, number: int, depth: int, seen: list[int]) -> Iterator[tuple[bytes, bytes, bool]]:
        if depth > min(tree.depth, _DEPTH_MOST):
            self._note(tree.name, f"page {number} is deeper than the tree")
            return
        if not self._claim(number, 1, tree.name):
            return
        if depth == tree.depth and self._leaves_until is not None and self.pages >= self._leaves_until:
            return
        page = os.pread(self._fd, self.page_bytes, number * self.page_bytes)
        own, _, flags, lower, upper = struct.unpack_from("<QHHHH", page)
        kind = flags & (_BRANCH | _LEAF | _OVERFLOW | _META)
        leaf = depth == tree.depth
        if (
            own != number
            or kind != (_LEAF if leaf else _BRANCH)
            or not _HEAD < lower <= upper <= len(page)
            or lower & 1
        ):
            self._note(tree.name, f"the header of page {number} is damaged")
            return
        seen[1 if leaf else 0] += 1
        for place in struct.unpack_from(f"<{(lower - _HEAD) // 2}H", page, _HEAD):
            if place < upper or place + 8 > len(page):
                self._note(tree.name, f"page {number} has a row outside of itself")
                continue
            low, high, mark, key_bytes = struct.unpack_from("<HHHH", page, place)
            at = place + 8 + key_bytes
            key = page[place + 8 : at]
            if at > len(page):
                self._note(tree.name, f"page {number} has a key that is too long")
            elif not leaf:
                yield from self._walk(tree, low | high << 16 | mark << 32, depth + 1, seen)
            else:
                value = self._value(tree, page, at, low | high << 16, mark, seen)
                if value is None:
                    self._note(tree.name, f"the row {key.hex()} on page {number} is damaged")
                else:
                    yield key, value, bool(mark & _SUB)

    def _value(self, tree: Tree, page: bytes, at: int, size: int, mark: int, seen: list[int]) -> bytes | None:
        if not mark & _BIG:
            return page[at : at + size] if at + size <= len(page) else None
        if at + 8 > len(page):
            return None
        first = int.from_bytes(page[at : at + 8], "little")
        n = (_HEAD - 1 + size) // self.page_bytes + 1
        if not self._claim(first, n, tree.name):
            return None
        data = os.pread(self._fd, _HEAD + size, first * self.page_bytes)
        own, _, flags, pages = struct.unpack_from("<QHHI", data)
        if own != first or flags & _OVERFLOW == 0 or pages != n or len(data) != _HEAD + size:
            return None
        seen[2] += n
        return data[_HEAD:]
