"""Types with slots that Cython cannot declare: called by vectorcall, awaited by ``am_send``.

``base/calltypes`` makes them.  Cython imports it in each module that derives from one of them.
"""

from cpython.object cimport PyObject

cdef enum:
    SEND_RETURN = 0             # of PySendResult: *result is what the await returns
    SEND_ERROR = -1
    SEND_NEXT = 1               # *result is what the await yields


cdef extern from "dp_calltypes.h":
    ctypedef PyObject* (*CallSlot "dp_call")(
        PyObject* function, PyObject** args, size_t nargsf, PyObject* names) except NULL
    ctypedef PyObject* (*BindSlot "binaryfunc")(PyObject* method, PyObject* instance) except NULL
    ctypedef int (*StepSlot "dp_step")(PyObject* self, PyObject* value, PyObject** result) except -1

    ctypedef class dataproxy._core.base.calltypes.Callable [object DpCallable]:
        cdef CallSlot call

    ctypedef class dataproxy._core.base.calltypes.Method [object DpMethod]:
        cdef CallSlot call
        cdef BindSlot bind

    ctypedef class dataproxy._core.base.calltypes.Awaited [object DpAwaited]:
        cdef StepSlot step
