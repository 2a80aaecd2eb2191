"""Test access to the large blocks that are used again."""

from libc.stdint cimport uint8_t, uintptr_t
from libc.string cimport memset

from dataproxy._core.base.blocks cimport block_alloc, block_free, blocks_drop

__all__ = ["drop", "give", "give_nothing", "hammer", "take"]


def take(size_t n):
    """Return the address of a block, all of which was written to."""
    cdef uint8_t* block = block_alloc(n)
    assert block != NULL and <uintptr_t>block % 16 == 0
    memset(block, 0xAB, n)
    return <uintptr_t>block


def give(uintptr_t address):
    """Give a block back."""
    block_free(<void*>address)


def give_nothing():
    """Give back what is no block."""
    block_free(NULL)


def drop():
    """Free what is kept."""
    blocks_drop()


def hammer(uint8_t mark, size_t n, int rounds):
    """Take two blocks, write to them and look whether they stay as they are; return the bytes that others changed."""
    cdef uint8_t* first
    cdef uint8_t* second
    cdef size_t i, changed = 0
    with nogil:
        for _ in range(rounds):
            first, second = block_alloc(n), block_alloc(n + n // 3)
            memset(first, mark, n)
            memset(second, mark, n)
            for i in range(0, n, 512):
                changed += first[i] != mark or second[i] != mark
            block_free(first)
            block_free(second)
    return changed
