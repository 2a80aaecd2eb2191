/* The few functions of OpenSSL (1.1.1 and 3) that the core calls, found at run time: no header of OpenSSL is needed to
 * build, and none of its libraries is linked. The functions are taken from the very library that Python's `_ssl` has
 * loaded, so that a process has one OpenSSL alone. */
#ifndef DP_TLS_H
#define DP_TLS_H
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#define DP_TLS_FUNCTIONS(F) \
    F(const char *, OpenSSL_version, (int kind)) \
    F(const void *, TLS_client_method, (void)) \
    F(const void *, TLS_server_method, (void)) \
    F(void *, SSL_CTX_new, (const void *method)) \
    F(void, SSL_CTX_free, (void *ctx)) \
    F(long, SSL_CTX_ctrl, (void *ctx, int command, long n, void *p)) \
    F(unsigned long, SSL_CTX_set_options, (void *ctx, unsigned long options)) \
    F(int, SSL_CTX_use_certificate_chain_file, (void *ctx, const char *file)) \
    F(int, SSL_CTX_use_PrivateKey_file, (void *ctx, const char *file, int kind)) \
    F(int, SSL_CTX_check_private_key, (const void *ctx)) \
    F(void, SSL_CTX_set_default_passwd_cb, (void *ctx, dp_tls_password call)) \
    F(void, SSL_CTX_set_default_passwd_cb_userdata, (void *ctx, void *data)) \
    F(int, SSL_CTX_load_verify_locations, (void *ctx, const char *file, const char *folder)) \
    F(int, SSL_CTX_set_default_verify_paths, (void *ctx)) \
    F(void, SSL_CTX_set_verify, (void *ctx, int mode, void *call)) \
    F(int, SSL_CTX_set_session_id_context, (void *ctx, const unsigned char *id, unsigned n)) \
    F(void, SSL_CTX_sess_set_new_cb, (void *ctx, dp_tls_new_session call)) \
    F(void, SSL_CTX_set_client_cert_cb, (void *ctx, dp_tls_asked call)) \
    F(void, SSL_CTX_set_client_CA_list, (void *ctx, void *names)) \
    F(void *, SSL_load_client_CA_file, (const char *file)) \
    F(void *, SSL_new, (void *ctx)) \
    F(void, SSL_free, (void *ssl)) \
    F(long, SSL_ctrl, (void *ssl, int command, long n, void *p)) \
    F(void, SSL_set_bio, (void *ssl, void *in, void *out)) \
    F(void, SSL_set_connect_state, (void *ssl)) \
    F(void, SSL_set_accept_state, (void *ssl)) \
    F(int, SSL_do_handshake, (void *ssl)) \
    F(int, SSL_read, (void *ssl, void *p, int n)) \
    F(int, SSL_write, (void *ssl, const void *p, int n)) \
    F(int, SSL_pending, (const void *ssl)) \
    F(int, SSL_shutdown, (void *ssl)) \
    F(void, SSL_set_shutdown, (void *ssl, int mode)) \
    F(int, SSL_is_init_finished, (const void *ssl)) \
    F(int, SSL_get_error, (const void *ssl, int result)) \
    F(long, SSL_get_verify_result, (const void *ssl)) \
    F(int, SSL_session_reused, (const void *ssl)) \
    F(int, SSL_set_session, (void *ssl, void *session)) \
    F(void, SSL_SESSION_free, (void *session)) \
    F(int, SSL_SESSION_up_ref, (void *session)) \
    F(int, SSL_set_ex_data, (void *ssl, int place, void *data)) \
    F(void *, SSL_get_ex_data, (const void *ssl, int place)) \
    F(void *, SSL_get0_param, (void *ssl)) \
    F(int, X509_VERIFY_PARAM_set1_host, (void *param, const char *name, size_t n)) \
    F(int, X509_VERIFY_PARAM_set1_ip_asc, (void *param, const char *address)) \
    F(void, X509_VERIFY_PARAM_set_hostflags, (void *param, unsigned flags)) \
    F(void *, BIO_meth_new, (int kind, const char *name)) \
    F(int, BIO_meth_set_write, (void *method, dp_tls_bio_write call)) \
    F(int, BIO_meth_set_read, (void *method, dp_tls_bio_read call)) \
    F(int, BIO_meth_set_ctrl, (void *method, dp_tls_bio_ctrl call)) \
    F(void *, BIO_new, (const void *method)) \
    F(void, BIO_set_init, (void *bio, int ready)) \
    F(void, BIO_set_data, (void *bio, void *data)) \
    F(void *, BIO_get_data, (void *bio)) \
    F(void, BIO_set_flags, (void *bio, int flags)) \
    F(void, BIO_clear_flags, (void *bio, int flags)) \
    F(unsigned long, ERR_get_error, (void)) \
    F(void, ERR_clear_error, (void)) \
    F(const char *, ERR_reason_error_string, (unsigned long error))

typedef int (*dp_tls_password)(char *room, int n, int writing, void *data);
typedef int (*dp_tls_new_session)(void *ssl, void *session);
typedef int (*dp_tls_asked)(void *ssl, void **certificate, void **key);
typedef int (*dp_tls_bio_write)(void *bio, const char *p, int n);
typedef int (*dp_tls_bio_read)(void *bio, char *p, int n);
typedef long (*dp_tls_bio_ctrl)(void *bio, int command, long n, void *p);

#define DP_TLS_FIELD(result, name, arguments) result (*name) arguments;
struct dp_tls { DP_TLS_FUNCTIONS(DP_TLS_FIELD) };
#undef DP_TLS_FIELD

/* Fill the table from the libraries that the shared object `path` needs, NULL: from the program itself. NULL, or what
 * was not found: the path, or the name of a function. Nothing is loaded that was not loaded before. */
static inline const char *dp_tls_find(struct dp_tls *table, const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (handle == NULL)
        return path ? path : "the program";
#define DP_TLS_FIND(result, name, arguments) \
    if ((*(void **)&table->name = dlsym(handle, #name)) == NULL) { dlclose(handle); return #name; }
    DP_TLS_FUNCTIONS(DP_TLS_FIND)
#undef DP_TLS_FIND
    return NULL; /* the handle is kept: the functions stay where they are */
}
#endif
