"""Internals of Python's types: objects that the interpreter fills, and the type slot that ``await`` calls."""

from cpython.object cimport PyObject, PyTypeObject

cdef enum:
    SEND_RETURN = 0             # of PySendResult: *result is what the await returns
    SEND_ERROR = -1
    SEND_NEXT = 1               # *result is what the await yields

ctypedef int (*SendSlot)(PyObject* self, PyObject* value, PyObject** result)
ctypedef PyObject* (*CallSlot)(PyObject* function, PyObject** args, size_t nargsf, PyObject* names)     # PEP 590


cdef extern from "Python.h":
    object new_instance "PyType_GenericAlloc"(PyTypeObject* kind, Py_ssize_t items)
    void untrack "PyObject_GC_UnTrack"(object thing)            # the collector never looks at it again
    object new_ascii "PyUnicode_New"(Py_ssize_t size, Py_UCS4 largest)      # text to be filled, not shared yet
    void* ascii_bytes "PyUnicode_DATA"(object text)
    object bind_method "PyMethod_New"(object function, object instance)
    bint is_ascii "PyUnicode_IS_COMPACT_ASCII"(object text)
    # Functions on borrowed references: no reference is counted.
    PyObject* list_item "PyList_GET_ITEM"(PyObject* items, Py_ssize_t at)
    PyObject* tuple_item "PyTuple_GET_ITEM"(PyObject* items, Py_ssize_t at)
    PyTypeObject* type_of "Py_TYPE"(PyObject* thing)
    bint is_kind "PyObject_TypeCheck"(PyObject* thing, PyTypeObject* kind)
    bint is_bytes "PyBytes_CheckExact"(PyObject* thing)
    bint is_text "PyUnicode_CheckExact"(PyObject* thing)
    const char* bytes_text "PyBytes_AS_STRING"(PyObject* thing)
    Py_ssize_t bytes_size "PyBytes_GET_SIZE"(PyObject* thing)
    PyObject* dict_value "PyDict_GetItemWithError"(PyObject* table, PyObject* key)
    Py_ssize_t count_args "PyVectorcall_NARGS"(size_t nargsf)
    bint is_contiguous "PyBuffer_IsContiguous"(const Py_buffer* view, char order)
    int copy_buffer "PyBuffer_ToContiguous"(void* to, const Py_buffer* view, Py_ssize_t n, char order) except -1
    PyObject* call_again "PyObject_Vectorcall"(
        PyObject* function, PyObject** args, size_t nargsf, PyObject* names) except NULL


cdef extern from *:
    """
    static inline void dp_set_send_slot(PyTypeObject *kind, int (*slot)(PyObject *, PyObject *, PyObject **)) {
        if (kind->tp_as_async) {
            kind->tp_as_async->am_send = (sendfunc)(void (*)(void))slot;
        }
    }

    /* Let objects of a kind be called through a field of theirs; with `method`, what is found in a class by a call
       of `instance.name(...)` is called with the instance first, and no bound object is made. */
    static inline void dp_set_call_field(PyTypeObject *kind, Py_ssize_t at, int method) {
        kind->tp_vectorcall_offset = at;
        kind->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | (method ? Py_TPFLAGS_METHOD_DESCRIPTOR : 0);
        PyType_Modified(kind);
    }

    static inline vectorcallfunc *dp_call_field(PyObject *function) {
        return (vectorcallfunc *)((char *)function + Py_TYPE(function)->tp_vectorcall_offset);
    }

    typedef PyObject *(*dp_call_slot)(PyObject *, PyObject **, size_t, PyObject *);

    /* Have a function called through `slot`; gives what it was called through before. */
    static inline dp_call_slot dp_swap_call(PyObject *function, dp_call_slot slot) {
        vectorcallfunc *field = dp_call_field(function);
        dp_call_slot before = (dp_call_slot)(void (*)(void))*field;
        *field = (vectorcallfunc)(void (*)(void))slot;
        return before;
    }

    static inline dp_call_slot dp_call_of(PyObject *function) {
        return (dp_call_slot)(void (*)(void))*dp_call_field(function);
    }

    static inline int dp_set_in_class(PyTypeObject *kind, const char *name, PyObject *value) {
        int status = PyDict_SetItemString(kind->tp_dict, name, value);
        PyType_Modified(kind);
        return status;
    }

    static inline PyObject *dp_refuse_new(PyObject *self, PyObject *args, PyObject *names) {
        PyObject *kind = PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : NULL;
        PyErr_Format(PyExc_TypeError, "__new__ alone makes no %s: it would have nothing inside",
                     kind && PyType_Check(kind) ? ((PyTypeObject *)kind)->tp_name : "object");
        return NULL;
    }

    static PyMethodDef dp_refuse_new_def = {
        "__new__", (PyCFunction)(void (*)(void))dp_refuse_new, METH_VARARGS | METH_KEYWORDS, NULL};

    /* Let a kind that no Python class derives from be made by a call of it or by compiled code, and by nobody who
       leaves out what the object is filled with: its C fields are used without a look. */
    static inline int dp_refuse_blank(PyTypeObject *kind) {
        PyObject *refuse = PyCFunction_New(&dp_refuse_new_def, NULL);
        int status = refuse ? dp_set_in_class(kind, "__new__", refuse) : -1;
        Py_XDECREF(refuse);
        return status;
    }

    /* Tell whether the caller alone refers to a thing, so that it may change what must not change once it is seen. */
    static inline int dp_is_alone(PyObject *thing) {
    #if defined(Py_GIL_DISABLED) || PY_VERSION_HEX >= 0x030E0000    /* tuples remember their hash */
        return 0;
    #else
        return Py_REFCNT(thing) == 1;
    #endif
    }

    static inline void dp_replace_item(PyObject *tuple, Py_ssize_t at, PyObject *value) {
        PyObject *before = PyTuple_GET_ITEM(tuple, at);
        if (before != value) {
            Py_INCREF(value);
            PyTuple_SET_ITEM(tuple, at, value);
            Py_DECREF(before);
        }
    }

    static inline int dp_is_builtin(PyObject *object, const char *name) {
        return PyCFunction_CheckExact(object) && strcmp(((PyCFunctionObject *)object)->m_ml->ml_name, name) == 0;
    }
    """
    bint is_alone "dp_is_alone"(PyObject* thing)
    void replace_item "dp_replace_item"(PyObject* items, Py_ssize_t at, object value)
    bint is_builtin "dp_is_builtin"(object function, const char* name)
    void set_send_slot "dp_set_send_slot"(PyTypeObject* kind, SendSlot slot)
    void set_call_field "dp_set_call_field"(PyTypeObject* kind, Py_ssize_t at, bint method)
    CallSlot call_of "dp_call_of"(PyObject* function)
    CallSlot swap_call "dp_swap_call"(PyObject* function, CallSlot slot)
    int refuse_blank "dp_refuse_blank"(PyTypeObject* kind) except -1
    int set_in_class "dp_set_in_class"(PyTypeObject* kind, const char* name, object value) except -1
