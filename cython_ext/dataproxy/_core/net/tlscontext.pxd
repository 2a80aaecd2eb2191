"""The settings of connections with TLS, as an object that Python loads."""

from dataproxy._core.net.tlsholder cimport TlsHolder


cdef class TlsContexts:
    cdef TlsHolder* holder

    cdef TlsHolder* join(self) noexcept
