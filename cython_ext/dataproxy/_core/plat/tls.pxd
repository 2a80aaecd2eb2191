"""OpenSSL through its C interface, found at run time: in the library that Python's own ``_ssl`` has loaded."""


cdef extern from "dp_tls.h" nogil:
    ctypedef int (*dp_tls_password)(char* room, int n, int writing, void* data) noexcept nogil
    ctypedef int (*dp_tls_new_session)(void* ssl, void* session) noexcept nogil
    ctypedef int (*dp_tls_asked)(void* ssl, void** certificate, void** key) noexcept nogil
    ctypedef int (*dp_tls_bio_write)(void* bio, const char* p, int n) noexcept nogil
    ctypedef int (*dp_tls_bio_read)(void* bio, char* p, int n) noexcept nogil
    ctypedef long (*dp_tls_bio_ctrl)(void* bio, int command, long n, void* p) noexcept nogil

    # Functions by their names in OpenSSL.  Its objects are untyped here: SSL_CTX, SSL, SSL_SESSION, BIO.
    cdef struct dp_tls:
        const char* (*OpenSSL_version)(int kind) noexcept nogil
        const void* (*TLS_client_method)() noexcept nogil
        const void* (*TLS_server_method)() noexcept nogil
        void* (*SSL_CTX_new)(const void* method) noexcept nogil
        void (*SSL_CTX_free)(void* ctx) noexcept nogil
        long (*SSL_CTX_ctrl)(void* ctx, int command, long n, void* p) noexcept nogil
        unsigned long (*SSL_CTX_set_options)(void* ctx, unsigned long options) noexcept nogil
        int (*SSL_CTX_use_certificate_chain_file)(void* ctx, const char* file) noexcept nogil
        int (*SSL_CTX_use_PrivateKey_file)(void* ctx, const char* file, int kind) noexcept nogil
        int (*SSL_CTX_check_private_key)(const void* ctx) noexcept nogil
        void (*SSL_CTX_set_default_passwd_cb)(void* ctx, dp_tls_password call) noexcept nogil
        void (*SSL_CTX_set_default_passwd_cb_userdata)(void* ctx, void* data) noexcept nogil
        int (*SSL_CTX_load_verify_locations)(void* ctx, const char* file, const char* folder) noexcept nogil
        int (*SSL_CTX_set_default_verify_paths)(void* ctx) noexcept nogil
        void (*SSL_CTX_set_verify)(void* ctx, int mode, void* call) noexcept nogil
        int (*SSL_CTX_set_session_id_context)(void* ctx, const unsigned char* id, unsigned n) noexcept nogil
        void (*SSL_CTX_sess_set_new_cb)(void* ctx, dp_tls_new_session call) noexcept nogil
        void (*SSL_CTX_set_client_cert_cb)(void* ctx, dp_tls_asked call) noexcept nogil
        void (*SSL_CTX_set_client_CA_list)(void* ctx, void* names) noexcept nogil
        void* (*SSL_load_client_CA_file)(const char* file) noexcept nogil
        void* (*SSL_new)(void* ctx) noexcept nogil
        void (*SSL_free)(void* ssl) noexcept nogil
        long (*SSL_ctrl)(void* ssl, int command, long n, void* p) noexcept nogil
        void (*SSL_set_bio)(void* ssl, void* reads, void* writes) noexcept nogil
        void (*SSL_set_connect_state)(void* ssl) noexcept nogil
        void (*SSL_set_accept_state)(void* ssl) noexcept nogil
        int (*SSL_do_handshake)(void* ssl) noexcept nogil
        int (*SSL_read)(void* ssl, void* p, int n) noexcept nogil
        int (*SSL_write)(void* ssl, const void* p, int n) noexcept nogil
        int (*SSL_pending)(const void* ssl) noexcept nogil
        int (*SSL_shutdown)(void* ssl) noexcept nogil
        void (*SSL_set_shutdown)(void* ssl, int mode) noexcept nogil
        int (*SSL_is_init_finished)(const void* ssl) noexcept nogil
        int (*SSL_get_error)(const void* ssl, int result) noexcept nogil
        long (*SSL_get_verify_result)(const void* ssl) noexcept nogil
        int (*SSL_session_reused)(const void* ssl) noexcept nogil
        int (*SSL_set_session)(void* ssl, void* session) noexcept nogil
        void (*SSL_SESSION_free)(void* session) noexcept nogil
        int (*SSL_SESSION_up_ref)(void* session) noexcept nogil
        int (*SSL_set_ex_data)(void* ssl, int place, void* data) noexcept nogil
        void* (*SSL_get_ex_data)(const void* ssl, int place) noexcept nogil
        void* (*SSL_get0_param)(void* ssl) noexcept nogil
        int (*X509_VERIFY_PARAM_set1_host)(void* param, const char* name, size_t n) noexcept nogil
        int (*X509_VERIFY_PARAM_set1_ip_asc)(void* param, const char* address) noexcept nogil
        void (*X509_VERIFY_PARAM_set_hostflags)(void* param, unsigned flags) noexcept nogil
        void* (*BIO_meth_new)(int kind, const char* name) noexcept nogil
        int (*BIO_meth_set_write)(void* method, dp_tls_bio_write call) noexcept nogil
        int (*BIO_meth_set_read)(void* method, dp_tls_bio_read call) noexcept nogil
        int (*BIO_meth_set_ctrl)(void* method, dp_tls_bio_ctrl call) noexcept nogil
        void* (*BIO_new)(const void* method) noexcept nogil
        void (*BIO_set_init)(void* bio, int ready) noexcept nogil
        void (*BIO_set_data)(void* bio, void* data) noexcept nogil
        void* (*BIO_get_data)(void* bio) noexcept nogil
        void (*BIO_set_flags)(void* bio, int flags) noexcept nogil
        void (*BIO_clear_flags)(void* bio, int flags) noexcept nogil
        unsigned long (*ERR_get_error)() noexcept nogil
        void (*ERR_clear_error)() noexcept nogil
        const char* (*ERR_reason_error_string)(unsigned long error) noexcept nogil

    # Fill the table; NULL, or what was not found.  `path`: of the module `_ssl`, NULL where it is part of the program.
    const char* tls_find "dp_tls_find"(dp_tls* table, const char* path) noexcept


cdef enum:          # numbers of OpenSSL's headers, which are the same in 1.1.1 and 3
    SSL_FILETYPE_PEM = 1
    SSL_VERIFY_NONE = 0
    SSL_VERIFY_PEER = 1
    SSL_VERIFY_FAIL_IF_NO_PEER_CERT = 2
    SSL_ERROR_SSL = 1
    SSL_ERROR_WANT_READ = 2
    SSL_ERROR_WANT_WRITE = 3
    SSL_ERROR_SYSCALL = 5
    SSL_ERROR_ZERO_RETURN = 6
    SSL_SHUTDOWN_BOTH = 3       # both sides have said that the stream ends
    SSL_CTRL_MODE = 33
    SSL_CTRL_SET_SESS_CACHE_MODE = 44
    SSL_CTRL_SET_TLSEXT_HOSTNAME = 55
    SSL_CTRL_SET_MIN_PROTO_VERSION = 123
    SSL_MODE_RELEASE_BUFFERS = 0x10
    SSL_SESS_CACHE_CLIENT = 1
    SSL_SESS_CACHE_SERVER = 2
    SSL_SESS_CACHE_NO_INTERNAL_STORE = 0x200
    SSL_OP_NO_COMPRESSION = 0x20000
    SSL_OP_NO_RENEGOTIATION = 0x40000000
    X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS = 4
    BIO_TYPE_SOURCE_SINK = 0x0400
    BIO_CTRL_FLUSH = 11
    BIO_FLAGS_READ = 1
    BIO_FLAGS_WRITE = 2
    BIO_FLAGS_SHOULD_RETRY = 8
    ERR_REASON = 0xFFF          # of an error of the SSL functions
