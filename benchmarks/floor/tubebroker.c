/* A TubeMQ broker that serves nothing but ready answers: what a consumer or a producer could reach at most.
 *
 *   tubebroker --port N --register FILE --heartbeat FILE --get FILE --commit FILE --send FILE
 *
 * A file holds the frame of one answer; the number of each request is written into a copy of its first bytes. All
 * requests of a connection are worked off in order. Every pack is the same one, and every confirm is welcome; what
 * is sent is thrown away. Each connection has a thread.
 */
#include "server.h"
#include "tubeframe.h"

enum { SEND = 13, REGISTER = 15, HEARTBEAT = 16, GET = 17, COMMIT = 18, METHODS = 32, REQUESTS = 1 << 18 };

static struct tube_frame answers[METHODS];

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
    int port = (int)number(argc, argv, "--port", 0), listener = listen_at(&port);
    answers[REGISTER] = tube_read(option(argc, argv, "--register", NULL));
    answers[HEARTBEAT] = tube_read(option(argc, argv, "--heartbeat", NULL));
    answers[GET] = tube_read(option(argc, argv, "--get", NULL));
    answers[COMMIT] = tube_read(option(argc, argv, "--commit", NULL));
    answers[SEND] = tube_read(option(argc, argv, "--send", NULL));
    printf("ready\n");
    fflush(stdout);
    serve_each(listener, serve);
}
