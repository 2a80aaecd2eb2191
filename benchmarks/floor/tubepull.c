/* Floor of a TubeMQ consumer: confirms and requests for packs, the answers found and thrown away unread.
 *
 *   tubepull --port N --get FILE --commit FILE --messages N [--partitions 3] [--seconds 2] [--warmup 0.3]
 *
 * As many packs are asked for at a time as there are partitions. Behind each pack, its confirm and the next request are
 * written together. Prints one JSON object; `--messages` is how many a pack holds, `bytes` are those of whole answers.
 */
#include "tubeframe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum { ROOM = 8 << 20, SMALL = 1024 };

static uint8_t *buffer;
static size_t filled, at;

/* Read on until a whole answer is there, and return its size. */
static size_t next_answer(int fd)
{
    for (;;) {
        size_t size = tube_size(buffer + at, filled - at);
        if (size > 0) {
            at += size;
            return size;
        }
        if (at > 0) {
            memmove(buffer, buffer + at, filled - at);
            filled -= at;
            at = 0;
        }
        ssize_t got = recv(fd, buffer + filled, ROOM - filled, 0);
        if (got <= 0)
            die("recv: %s", got == 0 ? "closed" : strerror(errno));
        filled += (size_t)got;
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number(argc, argv, "--port", 0))};
    struct tube_frame get = tube_read(option(argc, argv, "--get", NULL));
    struct tube_frame commit = tube_read(option(argc, argv, "--commit", NULL));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, partitions = (int)number(argc, argv, "--partitions", 3);
    uint8_t *pair = must_alloc(commit.n + get.n);
    struct section section;
    uint64_t packs = 0, bytes = 0;
    int warm = 1;

    buffer = must_alloc(ROOM);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        die("cannot connect: %s", strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    memcpy(pair, commit.p, commit.n);
    memcpy(pair + commit.n, get.p, get.n);
    for (int i = 0; i < partitions; i++)
        if (send(fd, get.p, get.n, MSG_NOSIGNAL) != (ssize_t)get.n)
            die("send: %s", strerror(errno));
    double until = now_seconds() + number(argc, argv, "--warmup", 0.3);
    for (;;) {
        size_t size = next_answer(fd);
        if (size < SMALL)
            continue; /* a confirm's */
        packs++;
        bytes += size;
        if (send(fd, pair, commit.n + get.n, MSG_NOSIGNAL) != (ssize_t)(commit.n + get.n))
            die("send: %s", strerror(errno));
        if (now_seconds() < until)
            continue;
        if (!warm)
            break;
        warm = 0;
        packs = bytes = 0;
        section_begin(&section);
        until = section.began + number(argc, argv, "--seconds", 2);
    }
    section_print(&section, packs * (uint64_t)number(argc, argv, "--messages", 1), bytes);
    printf("}\n");
    return 0;
}
