"""A method of a compiled class whose usual call is made without building an argument tuple.

``@quick`` before a method of a class puts a SendMethod into the class: an object of its own type, which the interpreter
calls by its own vectorcall function.  This function handles the usual call, and passes every other to the method as it
was written.  ``inspect``, ``help`` and ``pickle`` see the written method.

Locality: GIL.  Locks: none.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from dataproxy._core.plat.calltypes cimport BindSlot, CallSlot, Method

__all__ = ["SendMethod"]


cdef SendMethod quick_method(object written, CallSlot call, BindSlot bind):
    """Return the method ``written``, called through ``call``; ``bind`` makes what an instance gives, NULL: as usual."""
    cdef SendMethod out = SendMethod.__new__(SendMethod)
    out.written = written
    out.call = call
    if bind != NULL:
        out.bind = bind
    return out


cdef PyObject* nothing() noexcept:
    """Return None, as a vectorcall function does."""
    Py_INCREF(None)
    return <PyObject*>None


@cython.final
cdef class SendMethod(Method):
    """Method ``send_nowait`` as it is found in its class."""

    def __set_name__(self, owner, name):
        self.owner = owner

    @property
    def __doc__(self):
        """Return the method's documentation."""
        return self.written.__doc__

    @property
    def __wrapped__(self):
        """Return the function as it was written."""
        return self.written

    def __getattr__(self, name):
        return getattr(self.written, name)

    def __reduce__(self):
        return getattr, (self.owner, self.written.__name__)

    def __repr__(self):
        return repr(self.written)
