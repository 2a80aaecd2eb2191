"""``send_nowait`` as the interpreter calls it: the usual call is made without building an argument tuple.

A call with a body of ``bytes`` and nothing else goes straight to the batcher.  Every other call is passed to the
method as it was written, and so is each call that meets a special case (a fork, a full buffer, a closed producer).

``stream.send_nowait`` gives an object of its own type.  A bound method would be an object that refers to the
stream's handle, and each call would write the reference counts of both.  With more streams than the cache can hold,
these are two waits for memory.  Here everything that a call needs lies in the cache line that the interpreter has
read already.

Locality: GIL.  Locks: a send takes batcher.lock.
"""

cimport cython
from cpython.exc cimport PyErr_Clear
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint8_t

from dataproxy._core.base.forks cimport this_generation
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.producer.accumulate.batcher cimport batcher_append_plain
from dataproxy._core.producer.engine cimport Engine
from dataproxy._core.producer.producer cimport ProducerCore
from dataproxy._core.producer.ingest.stream cimport Stream
from dataproxy._core.producer.accumulate.streams cimport Stream as CStream
from dataproxy._core.plat.pytype cimport (
    CallSlot, bind_method, bytes_size, bytes_text, call_again, call_of, count_args, dict_value, is_bytes, is_kind,
    is_text, refuse_blank, set_call_field, set_in_class, swap_call, type_of,
)

__all__ = ["BoundSend", "SendMethod"]

cdef enum:
    QUICK = 4096            # bytes; copying a larger body costs so much that the saved call does not count
    FILLED = 56             # bytes of a BoundSend's fields

cdef object _written = Stream.send_nowait               # the methods as they were written
cdef object _written_of_producer = ProducerCore.send_nowait
cdef CallSlot _call_written = NULL
cdef CallSlot _call_written_of_producer = NULL


cdef inline bint _quick(Engine* g, CStream* s, PyObject* body) noexcept:
    """Accept a body that fits; False when nothing was done."""
    return batcher_append_plain(
        &g.batcher, s, <const uint8_t*>bytes_text(body), <size_t>bytes_size(body)) == ST_OK


cdef inline bint _by_handle(Stream stream, PyObject* body) noexcept:
    """Accept a body by a stream's handle; False when nothing was done."""
    if stream.generation != this_generation or stream.particular or not is_bytes(body):
        return False
    if <size_t>bytes_size(body) - 1 >= QUICK:           # empty ones too
        return False
    return _quick(stream.core.engine, stream.stream, body)


cdef PyObject* _nothing() noexcept:
    Py_INCREF(None)
    return <PyObject*>None


cdef PyObject* _call_method(PyObject* function, PyObject** args, size_t nargsf, PyObject* names) except NULL:
    """Call ``Stream.send_nowait``; its first argument is a stream.  Raises TypeError for anything else."""
    cdef Py_ssize_t n = count_args(nargsf)
    if n and type_of(args[0]) != <PyTypeObject*>Stream:
        raise TypeError(f"Stream.send_nowait needs a Stream first, not {<object>args[0]!r}")
    if names == NULL and n == 2 and _by_handle(<Stream>args[0], args[1]):
        return _nothing()
    return _call_written(<PyObject*>_written, args, nargsf, names)


cdef PyObject* _call_producer(PyObject* function, PyObject** args, size_t nargsf, PyObject* names) except NULL:
    """Call ``Producer.send_nowait``; its first argument is a producer.  Raises TypeError for anything else."""
    cdef Py_ssize_t n = count_args(nargsf)
    cdef PyObject* found
    if n and not is_kind(args[0], <PyTypeObject*>ProducerCore):
        raise TypeError(f"Producer.send_nowait needs a Producer first, not {<object>args[0]!r}")
    if names == NULL and n == 3 and is_text(args[1]):
        found = dict_value(<PyObject*>(<ProducerCore>args[0]).own_streams, args[1])
        if found == NULL:
            PyErr_Clear()           # the method itself will raise the error
        elif _by_handle(<Stream>found, args[2]):
            return _nothing()
    return _call_written_of_producer(<PyObject*>_written_of_producer, args, nargsf, names)


cdef PyObject* _call_bound(PyObject* function, PyObject** args, size_t nargsf, PyObject* names) except NULL:
    """Call a BoundSend."""
    cdef BoundSend me = <BoundSend>function
    if names == NULL and count_args(nargsf) == 1 and me.engine != NULL and me.engine.generation == this_generation and (
            is_bytes(args[0]) and <size_t>bytes_size(args[0]) - 1 < QUICK and _quick(me.engine, me.stream, args[0])):
        return _nothing()
    return _call_slow(function, args, nargsf, names)


cdef PyObject* _call_slow(PyObject* function, PyObject** args, size_t nargsf, PyObject* names) except NULL:
    """Call a BoundSend as the method of its stream's handle."""
    cdef BoundSend me = <BoundSend>function
    cdef PyObject* out
    method = bind_method(_written, me.owner)
    out = call_again(<PyObject*>method, args, nargsf, names)
    _follow(me)
    return out


cdef void _follow(BoundSend me) noexcept:
    """Copy the addresses of the handle's engine and stream; after a fork they are those of the child's engine."""
    cdef Stream owner = me.owner
    if owner.generation != this_generation or me.engine == owner.core.engine:
        return
    me.engine = owner.core.engine
    me.stream = owner.stream
    me.call = _call_slow if owner.particular else _call_bound


@cython.final
cdef class BoundSend:
    """Method ``send_nowait`` of one Stream; what ``stream.send_nowait`` gives."""

    cdef CallSlot call          # what the interpreter calls
    cdef Engine* engine         # NULL: the handle has to be asked
    cdef CStream* stream
    cdef Stream owner
    cdef object __weakref__
    cdef char spare[FILLED]     # with the collector's header: two cache lines, of which calls touch only the second

    def __init__(self):
        raise TypeError("made by stream.send_nowait")

    def __call__(self, *args, **options):
        return _written(self.owner, *args, **options)

    def __get__(self, instance, kind):
        return self                 # bound already

    @property
    def __self__(self):
        """Return the Stream."""
        return self.owner

    @property
    def __func__(self):
        """Return the method as it is found in the class."""
        return Stream.send_nowait

    @property
    def __doc__(self):
        """Return the method's documentation."""
        return _written.__doc__

    @property
    def __signature__(self):
        """Return the method's parameters without the stream."""
        from inspect import signature
        whole = signature(_written)
        return whole.replace(parameters=list(whole.parameters.values())[1:])

    def __getattr__(self, name):
        return getattr(_written, name)

    def __eq__(self, other):
        return isinstance(other, BoundSend) and (<BoundSend>other).owner is self.owner

    def __hash__(self):
        return hash((BoundSend, id(self.owner)))

    def __reduce__(self):
        return getattr, (self.owner, "send_nowait")     # pickling the stream then raises the error

    def __repr__(self):
        return f"<bound method Stream.send_nowait of {self.owner!r}>"


@cython.final
cdef class SendMethod:
    """Method ``send_nowait`` as it is found in the class Stream."""

    cdef CallSlot call

    def __cinit__(self):
        self.call = _call_method

    def __call__(self, *args, **options):
        return _written(*args, **options)

    def __get__(self, instance, kind):
        cdef BoundSend out
        if instance is None:
            return self
        out = BoundSend.__new__(BoundSend)
        out.call = _call_slow
        out.owner = <Stream?>instance
        _follow(out)
        return out

    @property
    def __doc__(self):
        """Return the method's documentation."""
        return _written.__doc__

    @property
    def __wrapped__(self):
        """Return the function as it was written."""
        return _written

    def __getattr__(self, name):
        return getattr(_written, name)

    def __reduce__(self):
        return getattr, (Stream, "send_nowait")

    def __repr__(self):
        return repr(_written)


cdef int _install() except -1:
    """Make calls of ``send_nowait`` try the fast functions of this module first."""
    global _call_written, _call_written_of_producer
    cdef BoundSend bound = BoundSend.__new__(BoundSend)
    cdef SendMethod method = SendMethod()
    set_call_field(<PyTypeObject*>BoundSend, <char*>&bound.call - <char*><PyObject*>bound, False)
    set_call_field(<PyTypeObject*>SendMethod, <char*>&method.call - <char*><PyObject*>method, True)
    _call_written = call_of(<PyObject*>_written)
    _call_written_of_producer = swap_call(<PyObject*>_written_of_producer, _call_producer)
    return set_in_class(<PyTypeObject*>Stream, "send_nowait", method)


_install()
refuse_blank(<PyTypeObject*>BoundSend)
refuse_blank(<PyTypeObject*>SendMethod)
