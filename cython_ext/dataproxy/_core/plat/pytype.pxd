"""Python's types from inside: what the interpreter makes and is made of, and the slot behind ``await``."""

from cpython.object cimport PyObject, PyTypeObject

cdef enum:
    SEND_RETURN = 0             # of PySendResult: *result is what the await returns
    SEND_ERROR = -1
    SEND_NEXT = 1               # *result is what the await yields

ctypedef int (*SendSlot)(PyObject* self, PyObject* value, PyObject** result)


cdef extern from "Python.h":
    object new_instance "PyType_GenericAlloc"(PyTypeObject* kind, Py_ssize_t items)
    void untrack "PyObject_GC_UnTrack"(object thing)            # the collector never looks at it again
    object new_ascii "PyUnicode_New"(Py_ssize_t size, Py_UCS4 largest)      # text to be filled, not shared yet
    void* ascii_bytes "PyUnicode_DATA"(object text)
    bint is_ascii "PyUnicode_IS_COMPACT_ASCII"(object text)


cdef extern from *:
    """
    static inline void dp_set_send_slot(PyTypeObject *kind, int (*slot)(PyObject *, PyObject *, PyObject **)) {
        if (kind->tp_as_async) {
            kind->tp_as_async->am_send = (sendfunc)(void (*)(void))slot;
        }
    }

    static inline int dp_is_builtin(PyObject *object, const char *name) {
        return PyCFunction_CheckExact(object) && strcmp(((PyCFunctionObject *)object)->m_ml->ml_name, name) == 0;
    }
    """
    bint is_builtin "dp_is_builtin"(object function, const char* name)
    void set_send_slot "dp_set_send_slot"(PyTypeObject* kind, SendSlot slot)
