/* A TubeMQ broker that serves nothing but ready answers: what a consumer or a producer could reach at most.
 *
 *   tubebroker --port N --register FILE --heartbeat FILE --get FILE --commit FILE --send FILE
 *
 * A file holds the frame of one answer; the number of each request is written into a copy of its first bytes. All
 * requests of a connection are worked off in order. Every pack is the same one, and every confirm is welcome; what
 * is sent is thrown away. Each connection has a thread.
 */
#include "tubeframe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

enum { SEND = 13, REGISTER = 15, HEARTBEAT = 16, GET = 17, COMMIT = 18, METHODS = 32, REQUESTS = 1 << 18 };

static struct tube_frame answers[METHODS];

static void send_all(int fd, const uint8_t *p, size_t n, int flags)
{
    while (n > 0) {
        ssize_t sent = send(fd, p, n, flags | MSG_NOSIGNAL);
        if (sent <= 0)
            return; /* the client has gone: the next recv says so */
        p += sent;
        n -= (size_t)sent;
    }
}

static void answer(int fd, const uint8_t *request, size_t n, int more)
{
    int method = tube_method(request, n);
    uint8_t head[TUBE_HEAD];
    if (method < 0 || method >= METHODS || answers[method].n == 0)
        die("no answer to method %d", method);
    memcpy(head, answers[method].p, TUBE_HEAD);
    memcpy(head + TUBE_SERIAL_AT, request + TUBE_SERIAL_AT, 4);
    send_all(fd, head, TUBE_HEAD, MSG_MORE);
    send_all(fd, answers[method].p + TUBE_HEAD, answers[method].n - TUBE_HEAD, more ? MSG_MORE : 0);
}

static void *serve(void *given)
{
    int fd = (int)(intptr_t)given;
    uint8_t *buffer = must_alloc(REQUESTS);
    size_t filled = 0;
    for (;;) {
        ssize_t got = recv(fd, buffer + filled, REQUESTS - filled, 0);
        if (got <= 0)
            break;
        filled += (size_t)got;
        size_t at = 0, size = tube_size(buffer, filled);
        while (size > 0) {
            size_t next = tube_size(buffer + at + size, filled - at - size);
            answer(fd, buffer + at, size, next > 0);
            at += size;
            size = next;
        }
        memmove(buffer, buffer + at, filled - at);
        filled -= at;
    }
    close(fd);
    free(buffer);
    return NULL;
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number(argc, argv, "--port", 0))};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    signal(SIGPIPE, SIG_IGN);
    answers[REGISTER] = tube_read(option(argc, argv, "--register", NULL));
    answers[HEARTBEAT] = tube_read(option(argc, argv, "--heartbeat", NULL));
    answers[GET] = tube_read(option(argc, argv, "--get", NULL));
    answers[COMMIT] = tube_read(option(argc, argv, "--commit", NULL));
    answers[SEND] = tube_read(option(argc, argv, "--send", NULL));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 64) != 0)
        die("cannot listen: %s", strerror(errno));
    printf("ready\n");
    fflush(stdout);
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
