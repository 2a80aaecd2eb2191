/* Floor of a round trip: one small type-7 frame out, its ack back, again and again on one socket.
 *
 *   pingpong --port N [--seconds 2] [--warmup 0.2] [--body 100]
 *
 * Prints one JSON object; the percentiles are microseconds from before send() to after the last byte of the ack.
 */
#include "frame.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { MAX_SAMPLES = 4000000 };

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void round_trip(int fd, int poller, const uint8_t *frame, size_t n)
{
    uint8_t reply[1024];
    size_t filled = 0;
    if (send(fd, frame, n, MSG_NOSIGNAL) != (ssize_t)n)
        die("send: %s", strerror(errno));
    do {
        struct epoll_event event;
        if (epoll_wait(poller, &event, 1, 10000) != 1)
            die("no reply in 10 s");
        ssize_t got = recv(fd, reply + filled, sizeof reply - filled, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN))
            die("recv: %s", got == 0 ? "closed" : strerror(errno));
        filled += got > 0 ? (size_t)got : 0;
    } while (filled < 4 || filled < get_be32(reply) + 4);
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number(argc, argv, "--port", 0))};
    static const char attributes[] = "groupId=b_bench&streamId=s_bench";
    size_t body = (size_t)number(argc, argv, "--body", 100), attr_len = sizeof attributes - 1;
    size_t total = BENCH_FIXED + 4 + body + attr_len;
    uint8_t *frame = must_alloc(total), *tail = frame + BENCH_HEAD + 4 + body;
    float *samples = must_alloc(MAX_SAMPLES * sizeof *samples);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), poller = epoll_create1(EPOLL_CLOEXEC), one = 1;
    struct epoll_event event = {.events = EPOLLIN};
    struct section section;
    size_t n = 0;

    put_be32(frame, (uint32_t)(total - 4));
    frame[4] = BENCH_TYPE_BINARY;
    put_be16(frame + 9, BENCH_EXT_NAMES);
    put_be32(frame + 11, (uint32_t)time(NULL));
    put_be16(frame + BENCH_COUNT_AT, 1);
    put_be32(frame + BENCH_BODY_LEN_AT, (uint32_t)(4 + body));
    put_be32(frame + BENCH_HEAD, (uint32_t)body);
    fill_bodies(frame + BENCH_HEAD + 4, body, NULL);
    put_be16(tail, (uint32_t)attr_len);
    memcpy(tail + 2, attributes, attr_len);
    put_be16(tail + 2 + attr_len, BENCH_MAGIC);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        die("cannot connect: %s", strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
    double warm_until = now_seconds() + number(argc, argv, "--warmup", 0.2);
    while (now_seconds() < warm_until)
        round_trip(fd, poller, frame, total);
    section_begin(&section);
    double until = section.began + number(argc, argv, "--seconds", 2);
    for (double began = section.began; began < until && n < MAX_SAMPLES; n++) {
        round_trip(fd, poller, frame, total);
        double ended = now_seconds();
        samples[n] = (float)((ended - began) * 1e6);
        began = ended;
    }
    section_print(&section, n, n * body);
    qsort(samples, n, sizeof *samples, by_value);
    printf(", \"p50_us\": %.2f, \"p99_us\": %.2f, \"p999_us\": %.2f, \"max_us\": %.2f}\n", samples[n / 2],
           samples[(size_t)((double)n * 0.99)], samples[(size_t)((double)n * 0.999)], samples[n - 1]);
    return 0;
}
