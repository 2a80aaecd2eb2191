/* The link of a floor program: a plain socket, or TLS over one where it is built with BENCH_TLS. Names and errors are
 * those of send() and recv(): a link that is not ready gives -1 and EAGAIN. One descriptor has one link. */
#ifndef BENCH_LINK_H
#define BENCH_LINK_H
#include "frame.h"

#include <sys/socket.h>

#ifndef BENCH_TLS
static inline void link_prepare(int server) { (void)server; }
static inline void link_open(int fd, int server) { (void)fd; (void)server; }
static inline void link_close(int fd) { (void)fd; }
static inline ssize_t link_recv(int fd, void *p, size_t n) { return recv(fd, p, n, 0); }
static inline ssize_t link_send(int fd, const void *p, size_t n, int flags) { return send(fd, p, n, flags); }
#else
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <signal.h>

enum { LINKS = 1024, RECORD = 16384 };

static SSL_CTX *link_context;
static SSL *links[LINKS];

/* A server gets a certificate of its own signing: clients here verify none. */
static inline void link_prepare(int server)
{
    signal(SIGPIPE, SIG_IGN);
    link_context = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
    SSL_CTX_set_mode(link_context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (!server)
        return;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
    X509_set_pubkey(certificate, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC, (const unsigned char *)"bench", -1,
                               -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
    if (!X509_sign(certificate, key, EVP_sha256()) || SSL_CTX_use_certificate(link_context, certificate) != 1 ||
        SSL_CTX_use_PrivateKey(link_context, key) != 1)
        die("OpenSSL gives no certificate");
}

/* Begin TLS on a descriptor: a client's handshake is over then, a server's is part of the first calls. */
static inline void link_open(int fd, int server)
{
    if (fd >= LINKS)
        die("more than %d connections", LINKS);
    links[fd] = SSL_new(link_context);
    SSL_set_fd(links[fd], fd);
    if (server)
        SSL_set_accept_state(links[fd]);
    else if (SSL_connect(links[fd]) != 1)
        die("the TLS handshake failed");
}

static inline void link_close(int fd)
{
    SSL_free(links[fd]);
    links[fd] = NULL;
}

static inline ssize_t link_result(SSL *ssl, int r)
{
    int error = SSL_get_error(ssl, r);
    if (error == SSL_ERROR_ZERO_RETURN)
        return 0;
    errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : EPROTO;
    return -1;
}

/* As many records as are there and surely fit. */
static inline ssize_t link_recv(int fd, void *p, size_t n)
{
    size_t got = 0;
    ERR_clear_error();
    do {
        int r = SSL_read(links[fd], (char *)p + got, (int)(n - got));
        if (r <= 0)
            return got > 0 ? (ssize_t)got : link_result(links[fd], r);
        got += (size_t)r;
    } while (n - got >= RECORD);
    return (ssize_t)got;
}

/* As many records as the socket takes; flags are those of a plain socket. */
static inline ssize_t link_send(int fd, const void *p, size_t n, int flags)
{
    size_t sent = 0;
    (void)flags;
    ERR_clear_error();
    while (sent < n) {
        int r = SSL_write(links[fd], (const char *)p + sent, (int)(n - sent));
        if (r <= 0)
            return sent > 0 ? (ssize_t)sent : link_result(links[fd], r);
        sent += (size_t)r;
    }
    return (ssize_t)sent;
}
#endif
#endif
