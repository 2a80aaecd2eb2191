"""What Python's C API has and Cython does not declare: borrowed references, and objects filled by who makes them."""

from cpython.object cimport PyObject, PyTypeObject


cdef extern from "Python.h":
    object new_instance "PyType_GenericAlloc"(PyTypeObject* kind, Py_ssize_t items)
    void untrack "PyObject_GC_UnTrack"(object thing)            # the collector never looks at it again
    object new_ascii "PyUnicode_New"(Py_ssize_t size, Py_UCS4 largest)      # text to be filled, not shared yet
    void* ascii_bytes "PyUnicode_DATA"(object text)
    object bind_method "PyMethod_New"(object function, object instance)
    bint is_ascii "PyUnicode_IS_COMPACT_ASCII"(object text)
    # Functions on borrowed references: no reference is counted.
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
    static inline PyObject *dp_make(PyTypeObject *kind, PyObject *args) {
        return kind->tp_new(kind, args, NULL);
    }

    static inline int dp_is_builtin(PyObject *object, const char *name) {
        return PyCFunction_CheckExact(object) && strcmp(((PyCFunctionObject *)object)->m_ml->ml_name, name) == 0;
    }
    """
    object make "dp_make"(PyTypeObject* kind, object args)      # kind.__new__(kind, *args)
    bint is_builtin "dp_is_builtin"(object function, const char* name)


cdef extern from "dp_calltypes.h":
    object make_callable "dp_make_callable"()
    object make_method "dp_make_method"()
    object make_awaited "dp_make_awaited"()
