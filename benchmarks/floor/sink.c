/* Plain epoll sink: reads frames, counts them and the messages their headers name, acknowledges every type-7 frame.
 *
 *   sink [--port 0] [--echo] [--verify] [--delay-ms N]
 *
 * Prints {"port": N} first and, after SIGTERM, one JSON object with the counts. Without options a frame's body is only
 * read and skipped. `--echo` repeats the request's attributes in the ack as a real server does; `--verify` also walks the
 * items (decompressing them), checks their number and adds up bytes and CRC-32 of all bodies. `--delay-ms` holds every
 * ack back for so long, as a distant server would.
 */
#include "link.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <snappy-c.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 512 * 1024, OUT_STEP = 64 * 1024, EVENTS = 64, HELD_MOST = 1 << 20 };

struct connection {
    int fd;
    int blocked;        /* replies wait: reading pauses until they are out */
    uint8_t head[BENCH_HEAD];
    size_t head_filled;
    size_t skip;        /* bytes of the current frame still to come */
    uint8_t *frame;     /* whole-frame mode only */
    size_t frame_filled;
    size_t frame_room;
    uint8_t *out;
    size_t out_filled;
    size_t out_sent;
    size_t out_room;
    size_t out_held;    /* the newest bytes of `out` that may not be sent yet */
};

/* Acks that are held back, oldest first: the delay is the same for all. */
static struct {
    struct held {
        struct connection *c; /* NULL when it is gone */
        double due;
        size_t bytes;
    } *item;
    size_t first, last;
} held;
static double delay;

static struct {
    uint64_t connections, frames, records, wire_bytes, heartbeats, bad_frames, body_bytes, body_crc_sum;
} counts;
static const char ack_text[] = "dpIp=127.0.0.1";
static volatile sig_atomic_t stopping;
static int whole, verify;
static uint32_t crc_table[256];
static uint8_t *scratch;
static uint8_t *plain;
static size_t plain_room;

static void on_term(int signal_number)
{
    (void)signal_number;
    stopping = 1;
}

static void crc_prepare(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
        crc_table[i] = c;
    }
}

static uint32_t crc32_of(const uint8_t *p, size_t n)
{
    uint32_t c = 0xFFFFFFFFu;
    for (size_t i = 0; i < n; i++)
        c = crc_table[(c ^ p[i]) & 0xFF] ^ (c >> 8);
    return c ^ 0xFFFFFFFFu;
}

static uint8_t *out_reserve(struct connection *c, size_t n)
{
    if (c->out_room - c->out_filled < n) {
        c->out_room = c->out_filled + n + OUT_STEP;
        c->out = realloc(c->out, c->out_room);
        if (c->out == NULL)
            die("cannot allocate %zu bytes", c->out_room);
    }
    uint8_t *p = c->out + c->out_filled;
    c->out_filled += n;
    return p;
}

static void reply_binary(struct connection *c, uint32_t uniq, const uint8_t *echo, size_t echo_len)
{
    size_t text_len = sizeof ack_text - 1;
    size_t attr_len = text_len + (echo_len ? echo_len + 1 : 0);
    uint8_t *p = out_reserve(c, 13 + attr_len);
    put_be32(p, (uint32_t)(9 + attr_len));
    p[4] = BENCH_TYPE_BINARY;
    put_be32(p + 5, uniq);
    put_be16(p + 9, (uint32_t)attr_len);
    memcpy(p + 11, ack_text, text_len);
    if (echo_len) {
        p[11 + text_len] = '&';
        memcpy(p + 12 + text_len, echo, echo_len);
    }
    put_be16(p + 11 + attr_len, BENCH_MAGIC);
}

static void reply_heartbeat(struct connection *c, const uint8_t *head)
{
    static const uint8_t short_reply[5] = {0, 0, 0, 1, BENCH_TYPE_HEARTBEAT};
    counts.heartbeats++;
    if ((head[4] & BENCH_TYPE_MASK) == BENCH_TYPE_HEARTBEAT) {
        memcpy(out_reserve(c, sizeof short_reply), short_reply, sizeof short_reply);
        return;
    }
    uint8_t *p = out_reserve(c, 20);
    put_be32(p, 16);
    p[4] = BENCH_TYPE_BINARY_HEARTBEAT;
    put_be32(p + 5, (uint32_t)time(NULL));
    p[9] = 1;
    put_be32(p + 10, 2);
    put_be16(p + 14, 0xFFFF);
    put_be16(p + 16, 0);
    put_be16(p + 18, BENCH_MAGIC);
}

/* Count and answer one frame known by its head (the first bytes of it, at least 25 for type 7). */
static void finish_frame(struct connection *c, const uint8_t *head, const uint8_t *echo, size_t echo_len)
{
    int type = head[4] & BENCH_TYPE_MASK;
    if (type == BENCH_TYPE_BINARY) {
        uint32_t n = get_be16(head + BENCH_COUNT_AT);
        counts.frames++;
        counts.records += n ? n : 1;
        reply_binary(c, get_be32(head + BENCH_UNIQ_AT), echo, echo_len);
    } else if (type == BENCH_TYPE_HEARTBEAT || type == BENCH_TYPE_BINARY_HEARTBEAT) {
        reply_heartbeat(c, head);
    } else {
        die("frame of type %d: only 1, 7 and 8 are served", type);
    }
}

/* Bytes of the head that must be seen before the rest of a frame may be skipped. */
static size_t head_wanted(const uint8_t *head, size_t filled)
{
    if (filled < 5)
        return 5;
    size_t total = (size_t)get_be32(head) + BENCH_LENGTH;
    if (total > BENCH_MAX_FRAME || total < 5)
        die("frame of %zu bytes", total);
    if ((head[4] & BENCH_TYPE_MASK) != BENCH_TYPE_BINARY)
        return 5;
    if (total < BENCH_FIXED)
        die("type-7 frame of %zu bytes", total);
    return BENCH_HEAD;
}

static void skim(struct connection *c, const uint8_t *p, size_t n)
{
    while (n > 0) {
        if (c->skip == 0) {
            size_t wanted = head_wanted(c->head, c->head_filled);
            size_t take = wanted - c->head_filled < n ? wanted - c->head_filled : n;
            memcpy(c->head + c->head_filled, p, take);
            c->head_filled += take;
            p += take;
            n -= take;
            if (c->head_filled < wanted || head_wanted(c->head, c->head_filled) > c->head_filled)
                continue;
            c->skip = get_be32(c->head) + BENCH_LENGTH - c->head_filled;
        }
        size_t take = c->skip < n ? c->skip : n;
        c->skip -= take;
        p += take;
        n -= take;
        if (c->skip == 0) {
            finish_frame(c, c->head, NULL, 0);
            c->head_filled = 0;
        }
    }
}

static void verify_body(const uint8_t *frame, const uint8_t *body, size_t n)
{
    uint32_t items = 0;
    if (frame[4] & BENCH_TYPE_SNAPPY) {
        size_t plain_len = 0;
        if (snappy_uncompressed_length((const char *)body, n, &plain_len) != SNAPPY_OK || plain_len > BENCH_MAX_FRAME) {
            counts.bad_frames++;
            return;
        }
        if (plain_len > plain_room) {
            plain_room = plain_len;
            free(plain);
            plain = must_alloc(plain_room);
        }
        if (snappy_uncompress((const char *)body, n, (char *)plain, &plain_len) != SNAPPY_OK) {
            counts.bad_frames++;
            return;
        }
        body = plain;
        n = plain_len;
    }
    while (n >= 4 && get_be32(body) > 0 && get_be32(body) <= n - 4) {
        size_t len = get_be32(body);
        counts.body_bytes += len;
        counts.body_crc_sum += crc32_of(body + 4, len);
        body += 4 + len;
        n -= 4 + len;
        items++;
    }
    if (n != 0 || items != get_be16(frame + BENCH_COUNT_AT))
        counts.bad_frames++;
}

static void take_whole(struct connection *c, const uint8_t *frame, size_t total)
{
    if ((frame[4] & BENCH_TYPE_MASK) != BENCH_TYPE_BINARY) {
        finish_frame(c, frame, NULL, 0);
        return;
    }
    size_t body_len = get_be32(frame + BENCH_BODY_LEN_AT);
    if (body_len > total - BENCH_FIXED)
        die("body of %zu bytes in a frame of %zu", body_len, total);
    const uint8_t *tail = frame + BENCH_HEAD + body_len;
    size_t attr_len = get_be16(tail);
    if (BENCH_FIXED + body_len + attr_len != total || get_be16(tail + 2 + attr_len) != BENCH_MAGIC)
        die("lengths of a frame of %zu bytes disagree", total);
    if (verify)
        verify_body(frame, frame + BENCH_HEAD, body_len);
    finish_frame(c, frame, tail + 2, attr_len);
}

static void collect(struct connection *c, const uint8_t *p, size_t n)
{
    size_t at = 0;
    if (c->frame_room - c->frame_filled < n) {
        c->frame_room = c->frame_filled + n + READ_BYTES;
        c->frame = realloc(c->frame, c->frame_room);
        if (c->frame == NULL)
            die("cannot allocate %zu bytes", c->frame_room);
    }
    memcpy(c->frame + c->frame_filled, p, n);
    c->frame_filled += n;
    while (c->frame_filled - at >= 5) {
        const uint8_t *frame = c->frame + at;
        size_t total = (size_t)get_be32(frame) + BENCH_LENGTH;
        head_wanted(frame, 5);
        if (c->frame_filled - at < total)
            break;
        take_whole(c, frame, total);
        at += total;
    }
    memmove(c->frame, c->frame + at, c->frame_filled - at);
    c->frame_filled -= at;
}

static void drop(struct connection *c)
{
    for (size_t i = held.first; i != held.last; i++)
        if (held.item[i % HELD_MOST].c == c)
            held.item[i % HELD_MOST].c = NULL;
    link_close(c->fd);
    close(c->fd);
    free(c->frame);
    free(c->out);
    free(c);
}

/* Write the replies that wait and may go. Returns 0 when the connection is gone. */
static int flush_out(int poller, struct connection *c)
{
    size_t end = c->out_filled - c->out_held;
    while (c->out_sent < end) {
        ssize_t n = link_send(c->fd, c->out + c->out_sent, end - c->out_sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN) {
            drop(c);
            return 0;
        }
        if (n < 0)
            break;
        c->out_sent += (size_t)n;
    }
    int blocked = c->out_sent < end;
    if (!blocked) {
        memmove(c->out, c->out + c->out_sent, c->out_held);
        c->out_filled = c->out_held;
        c->out_sent = 0;
    }
    if (blocked != c->blocked) {
        struct epoll_event event = {.events = blocked ? EPOLLOUT : EPOLLIN, .data.ptr = c};
        epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &event);
        c->blocked = blocked;
    }
    return 1;
}

/* Hold back the replies that were written behind `from`. */
static void hold(struct connection *c, size_t from)
{
    size_t bytes = c->out_filled - from;
    if (bytes == 0)
        return;
    if (held.last - held.first == HELD_MOST)
        die("more than %d acks are held back", HELD_MOST);
    held.item[held.last++ % HELD_MOST] = (struct held){.c = c, .due = now_seconds() + delay, .bytes = bytes};
    c->out_held += bytes;
}

/* Send what was held back for long enough. Returns the milliseconds until there is more to do, -1 for never. */
static int release(int poller)
{
    while (held.first != held.last) {
        struct held *h = &held.item[held.first % HELD_MOST];
        double left = h->due - now_seconds();
        if (h->c != NULL && left > 0)
            return (int)(left * 1e3) + 1;
        held.first++;
        if (h->c != NULL) {
            h->c->out_held -= h->bytes;
            flush_out(poller, h->c);
        }
    }
    return -1;
}

static void serve(int poller, struct connection *c)
{
    size_t from = c->out_filled;
    if (!c->blocked) {
        ssize_t n = link_recv(c->fd, scratch, READ_BYTES);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            drop(c);
            return;
        }
        if (n > 0) {
            counts.wire_bytes += (uint64_t)n;
            if (whole)
                collect(c, scratch, (size_t)n);
            else
                skim(c, scratch, (size_t)n);
        }
    }
    if (delay > 0)
        hold(c, from);
    flush_out(poller, c);
}

static void accept_one(int poller, int listener)
{
    int one = 1;
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    struct connection *c = must_alloc(sizeof *c);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    c->fd = fd;
    counts.connections++;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    link_open(fd, 1);
    if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) != 0)
        die("epoll_ctl: %s", strerror(errno));
}

static int listen_on(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 1024) != 0)
        die("cannot listen on port %d: %s", port, strerror(errno));
    getsockname(fd, (struct sockaddr *)&address, &size);
    printf("{\"port\": %d}\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static void print_counts(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"connections\": %llu, \"frames\": %llu, \"records\": %llu, \"wire_bytes\": %llu, \"heartbeats\": %llu, "
           "\"bad_frames\": %llu, \"body_bytes\": %llu, \"body_crc_sum\": %llu, \"cpu_user\": %.6f, \"cpu_sys\": %.6f}\n",
           (unsigned long long)counts.connections, (unsigned long long)counts.frames,
           (unsigned long long)counts.records, (unsigned long long)counts.wire_bytes,
           (unsigned long long)counts.heartbeats, (unsigned long long)counts.bad_frames,
           (unsigned long long)counts.body_bytes, (unsigned long long)counts.body_crc_sum,
           seconds_of(usage.ru_utime), seconds_of(usage.ru_stime));
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_term};
    struct epoll_event ready[EVENTS];
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    verify = flag(argc, argv, "--verify");
    whole = verify || flag(argc, argv, "--echo");
    delay = number(argc, argv, "--delay-ms", 0) * 1e-3;
    held.item = must_alloc(delay > 0 ? HELD_MOST * sizeof *held.item : 1);
    crc_prepare();
    link_prepare(1);
    scratch = must_alloc(READ_BYTES);
    int listener = listen_on((int)number(argc, argv, "--port", 0));
    int poller = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (poller < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event) != 0)
        die("epoll: %s", strerror(errno));
    while (!stopping) {
        int n = epoll_wait(poller, ready, EVENTS, release(poller));
        for (int i = 0; i < n; i++) {
            if (ready[i].data.ptr == NULL)
                accept_one(poller, listener);
            else
                serve(poller, ready[i].data.ptr);
        }
    }
    print_counts();
    return 0;
}
