/* Two kinds of objects that Cython cannot declare, as static types with all their slots in the initialiser: they are
   complete before PyType_Ready sees them.  Compiled classes derive from them and inherit the slots as CPython
   documents it.  Every field has a function from the beginning: an object that nobody filled raises TypeError. */

#ifndef DP_CALLTYPES_H
#define DP_CALLTYPES_H

#include <Python.h>
#include <stddef.h>

typedef PyObject *(*dp_call)(PyObject *self, PyObject **args, size_t nargsf, PyObject *names);
typedef int (*dp_step)(PyObject *self, PyObject *value, PyObject **result);    /* returns a PySendResult */

typedef struct {
    PyObject_HEAD
    dp_call call;               /* what a call of the object runs (PEP 590) */
} DpCallable;

typedef struct {
    PyObject_HEAD
    dp_call call;               /* also run by instance.name(...), with the instance first: no bound object is made */
    binaryfunc bind;            /* what instance.name gives, from (method, instance) */
} DpMethod;

typedef struct {
    PyObject_HEAD
    dp_step step;               /* what an await runs; see am_send */
} DpAwaited;

static inline PyObject *dp_blank_call(PyObject *self, PyObject **args, size_t nargsf, PyObject *names) {
    return PyErr_Format(PyExc_TypeError, "this %s has nothing to call", Py_TYPE(self)->tp_name);
}

static inline int dp_blank_step(PyObject *self, PyObject *value, PyObject **result) {
    *result = NULL;
    PyErr_Format(PyExc_TypeError, "this %s has nothing to wait for", Py_TYPE(self)->tp_name);
    return PYGEN_ERROR;
}

static inline PyObject *dp_callable_new(PyTypeObject *kind, PyObject *args, PyObject *names) {
    PyObject *self = kind->tp_alloc(kind, 0);
    if (self != NULL) {
        ((DpCallable *)self)->call = dp_blank_call;
    }
    return self;
}

static inline PyObject *dp_method_new(PyTypeObject *kind, PyObject *args, PyObject *names) {
    PyObject *self = dp_callable_new(kind, args, names);
    if (self != NULL) {
        ((DpMethod *)self)->bind = PyMethod_New;
    }
    return self;
}

static inline PyObject *dp_awaited_new(PyTypeObject *kind, PyObject *args, PyObject *names) {
    PyObject *self = kind->tp_alloc(kind, 0);
    if (self != NULL) {
        ((DpAwaited *)self)->step = dp_blank_step;
    }
    return self;
}

static inline void dp_plain_dealloc(PyObject *self) {
    Py_TYPE(self)->tp_free(self);
}

static inline PyObject *dp_method_get(PyObject *self, PyObject *instance, PyObject *kind) {
    return instance == NULL || instance == Py_None ? Py_NewRef(self) : ((DpMethod *)self)->bind(self, instance);
}

static inline PySendResult dp_awaited_send(PyObject *self, PyObject *value, PyObject **result) {
    return (PySendResult)((DpAwaited *)self)->step(self, value, result);
}

static inline PyObject *dp_ready(PyTypeObject *kind) {
    return PyType_Ready(kind) < 0 ? NULL : Py_NewRef(kind);
}

static inline PyObject *dp_make_callable(void) {
    static PyTypeObject kind = {
        PyVarObject_HEAD_INIT(NULL, 0)
        .tp_name = "dataproxy._core.base.calltypes.Callable",
        .tp_doc = "An object that is called through a field of its own.",
        .tp_basicsize = sizeof(DpCallable),
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL,
        .tp_vectorcall_offset = offsetof(DpCallable, call),
        .tp_call = PyVectorcall_Call,
        .tp_new = dp_callable_new,
        .tp_dealloc = dp_plain_dealloc,
    };
    return dp_ready(&kind);
}

static inline PyObject *dp_make_method(void) {
    static PyTypeObject kind = {
        PyVarObject_HEAD_INIT(NULL, 0)
        .tp_name = "dataproxy._core.base.calltypes.Method",
        .tp_doc = "A method: what a class holds and its instances call through a field of its own.",
        .tp_basicsize = sizeof(DpMethod),
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL
            | Py_TPFLAGS_METHOD_DESCRIPTOR,
        .tp_vectorcall_offset = offsetof(DpMethod, call),
        .tp_call = PyVectorcall_Call,
        .tp_descr_get = dp_method_get,
        .tp_new = dp_method_new,
        .tp_dealloc = dp_plain_dealloc,
    };
    return dp_ready(&kind);
}

static inline PyObject *dp_make_awaited(void) {
    /* Inherited as a whole by a class that has no slot of its own among these: am_send alone is not inherited. */
    static PyAsyncMethods slots = {.am_await = PyObject_SelfIter, .am_send = dp_awaited_send};
    static PyTypeObject kind = {
        PyVarObject_HEAD_INIT(NULL, 0)
        .tp_name = "dataproxy._core.base.calltypes.Awaited",
        .tp_doc = "What is awaited and is its own iterator: one without state, so that all awaits share it.",
        .tp_basicsize = sizeof(DpAwaited),
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
        .tp_as_async = &slots,
        .tp_new = dp_awaited_new,
        .tp_dealloc = dp_plain_dealloc,
    };
    return dp_ready(&kind);
}

#endif
