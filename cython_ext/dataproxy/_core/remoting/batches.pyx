"""Batches of messages that a listener is called with, one after the other.

Locality: GIL, the thread of a listener.  Locks: none.
"""

cimport cython

from dataproxy._core.base.forks cimport this_generation

__all__ = ["Batches"]


@cython.final
@cython.auto_pickle(False)
cdef class Batches:
    """The messages of one chunk, in batches of up to ``size``."""

    def __cinit__(self, listener not None, list messages not None, Py_ssize_t size):
        self.listener, self.messages, self.size = listener, messages, size

    def last(self):
        """Return the batch that was begun last."""
        return self.messages[self.begun:self.at]

    def hear(self, consumer not None):
        """Call the listener with what was not begun yet, until it raises, the consumer is closed, or all is begun.

        It ends behind a call from which a child came back that the listener has forked.  Raises what the listener does.
        """
        cdef Py_ssize_t n = len(self.messages)
        generation = this_generation
        while self.at < n and not consumer._closed:
            self.begun = self.at
            self.at = min(self.at + self.size, n)
            self.listener(self.messages[self.begun:self.at])    # its own list: it may take messages out of it
            if this_generation != generation:
                return
