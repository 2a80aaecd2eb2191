"""Python's types from inside: instances as the interpreter makes them, and the slot behind ``await``."""

from cpython.object cimport PyObject, PyTypeObject

cdef enum:
    SEND_RETURN = 0             # of PySendResult: *result is what the await returns
    SEND_ERROR = -1
    SEND_NEXT = 1               # *result is what the await yields

ctypedef int (*SendSlot)(PyObject* self, PyObject* value, PyObject** result)


cdef extern from "Python.h":
    object new_instance "PyType_GenericAlloc"(PyTypeObject* kind, Py_ssize_t items)


cdef extern from *:
    """
    static inline void dp_set_send_slot(PyTypeObject *kind, int (*slot)(PyObject *, PyObject *, PyObject **)) {
        if (kind->tp_as_async) {
            kind->tp_as_async->am_send = (sendfunc)(void (*)(void))slot;
        }
    }
    """
    void set_send_slot "dp_set_send_slot"(PyTypeObject* kind, SendSlot slot)
