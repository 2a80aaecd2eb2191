"""Methods that the interpreter calls by vectorcall, with a quick function in front of the written one."""

from cpython.object cimport PyObject

from dataproxy._core.plat.calltypes cimport BindSlot, CallSlot, Method

cdef enum:
    QUICK = 4096            # bytes; copying a larger body costs so much that the saved call does not count


cdef class SendMethod(Method):
    cdef object written         # the method as it was written, which takes every call
    cdef object owner           # its class


cdef SendMethod quick_method(object written, CallSlot call, BindSlot bind)
cdef PyObject* nothing() noexcept
