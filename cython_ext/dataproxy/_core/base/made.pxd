"""What only compiled code has: a class that Python code must not make asks for it when an object is made.

Such a class fills its objects with pointers after they are made, and uses them without a look.  So ``__cinit__`` takes
``BY_CORE`` and refuses everything else: a call of the class, ``__new__``, and what ``copy`` and ``pickle`` do.
"""

cdef object BY_CORE
cdef tuple CORE_ARGS           # (BY_CORE,): for ``make``, where an object is made for each message
