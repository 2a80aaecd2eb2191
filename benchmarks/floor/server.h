/* Servers of loopback for the floor programs: a listener, and a thread for each connection. */
#ifndef BENCH_SERVER_H
#define BENCH_SERVER_H
#include "frame.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

/* Send everything; 0 when the client has gone. */
static inline int send_all(int fd, const uint8_t *p, size_t n, int flags)
{
    while (n > 0) {
        ssize_t sent = send(fd, p, n, flags | MSG_NOSIGNAL);
        if (sent <= 0)
            return 0;
        p += sent;
        n -= (size_t)sent;
    }
    return 1;
}

/* Listen on a port (0: a free one), and return the descriptor; `port` is set to the one it is. */
static inline int listen_at(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    signal(SIGPIPE, SIG_IGN);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 64) != 0)
        die("cannot listen: %s", strerror(errno));
    getsockname(listener, (struct sockaddr *)&address, &size);
    *port = ntohs(address.sin_port);
    return listener;
}

/* Run `serve` on a thread of its own for each connection, with its descriptor; for ever. */
static inline void serve_each(int listener, void *(*serve)(void *))
{
    int one = 1;
    for (;;) {
        pthread_t thread;
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) != 0)
            die("no thread for a connection");
        pthread_detach(thread);
    }
}
#endif
