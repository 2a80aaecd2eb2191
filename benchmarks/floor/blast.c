/* Floor of the sending side: pre-built type-7 frames over one non-blocking loopback socket, pipelined, acks counted.
 *
 *   blast --port N [--seconds 2] [--warmup 0.5] [--body 100] [--frame 262144] [--window 8388608]
 *         [--bodies FILE] [--snappy] [--group b_bench] [--stream s_bench] [--frames N] [--chunk 262144] [--zerocopy]
 *
 * `--frame` is the wanted size of one frame's body in bytes (one message at least); `--frames` stops after so many
 * frames instead of after `--seconds`. `--chunk` are the bytes of frames that are sent in turn: a few stay in the
 * cache, 64 MiB come from memory, as a producer's do that is ahead of its connection. `--zerocopy` sends with
 * MSG_ZEROCOPY, to see what that is worth. Prints one JSON object. Built with BENCH_TLS it is `blast-tls`: the same over
 * one connection with TLS, whose certificate is not verified.
 */
#include "link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <snappy-c.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ACK_BUFFER = 64 * 1024 };

struct blast {
    int fd;
    int send_flags;
    uint8_t *chunk; /* frames one after the other, sent again and again with new correlation ids */
    size_t frame_bytes;
    size_t frames_in_chunk;
    size_t sent_of_chunk;  /* bytes of the chunk that are out */
    int numbered;          /* its frames have their ids and are counted */
    size_t chunk_bytes;    /* of this pass: fewer frames when the window is nearly full */
    uint32_t uniq;
    uint64_t sent_frames;
    uint64_t acked_frames;
    uint64_t refused_frames;
    uint64_t window_frames;
    uint8_t acks[ACK_BUFFER];
    size_t acks_filled;
};

static uint32_t build_frame(uint8_t *frame, const uint8_t *body, size_t body_len, uint32_t count, int snappy,
                            const char *attributes)
{
    size_t attr_len = strlen(attributes);
    uint8_t *p = frame;
    put_be32(p, (uint32_t)(BENCH_FIXED - BENCH_LENGTH + body_len + attr_len));
    p[4] = (uint8_t)(BENCH_TYPE_BINARY | (snappy ? BENCH_TYPE_SNAPPY : 0));
    put_be16(p + 5, 0);
    put_be16(p + 7, 0);
    put_be16(p + 9, BENCH_EXT_NAMES);
    put_be32(p + 11, (uint32_t)time(NULL));
    put_be16(p + BENCH_COUNT_AT, count);
    put_be32(p + BENCH_UNIQ_AT, 0);
    put_be32(p + BENCH_BODY_LEN_AT, (uint32_t)body_len);
    memcpy(p + BENCH_HEAD, body, body_len);
    p += BENCH_HEAD + body_len;
    put_be16(p, (uint32_t)attr_len);
    memcpy(p + 2, attributes, attr_len);
    put_be16(p + 2 + attr_len, BENCH_MAGIC);
    return (uint32_t)(BENCH_FIXED + body_len + attr_len);
}

static void prepare(struct blast *b, size_t chunk, size_t body, size_t count, const char *bodies, int snappy,
                    const char *attributes)
{
    size_t raw_len = count * (body + 4);
    uint8_t *raw = must_alloc(raw_len);
    uint8_t *text = must_alloc(count * body);
    fill_bodies(text, count * body, bodies);
    for (size_t i = 0; i < count; i++) {
        put_be32(raw + i * (body + 4), (uint32_t)body);
        memcpy(raw + i * (body + 4) + 4, text + i * body, body);
    }
    size_t room = snappy ? snappy_max_compressed_length(raw_len) : raw_len;
    uint8_t *frame = must_alloc(room + BENCH_FIXED + strlen(attributes));
    uint8_t *packed = raw;
    size_t packed_len = raw_len;
    if (snappy) {
        packed = must_alloc(room);
        packed_len = room;
        if (snappy_compress((const char *)raw, raw_len, (char *)packed, &packed_len) != SNAPPY_OK)
            die("snappy refused the body");
    }
    b->frame_bytes = build_frame(frame, packed, packed_len, (uint32_t)count, snappy, attributes);
    b->frames_in_chunk = b->frame_bytes < chunk ? chunk / b->frame_bytes : 1;
    b->chunk = must_alloc(b->frames_in_chunk * b->frame_bytes);
    for (size_t i = 0; i < b->frames_in_chunk; i++)
        memcpy(b->chunk + i * b->frame_bytes, frame, b->frame_bytes);
    if (packed != raw)
        free(packed);
    free(frame);
    free(text);
    free(raw);
}

static int connect_to(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        die("cannot connect to port %d: %s", port, strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    link_open(fd, 0);
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
        die("fcntl: %s", strerror(errno));
    return fd;
}

/* Write what the window allows of the chunk; the kernel has copied everything that send() reports. */
static void send_some(struct blast *b)
{
    if (!b->numbered) {
        uint64_t room = b->window_frames - (b->sent_frames - b->acked_frames);
        size_t n = room < b->frames_in_chunk ? (size_t)room : b->frames_in_chunk;
        for (size_t i = 0; i < n; i++)
            put_be32(b->chunk + i * b->frame_bytes + BENCH_UNIQ_AT, b->uniq++);
        b->chunk_bytes = n * b->frame_bytes;
        b->sent_frames += n;
        b->numbered = 1;
    }
    ssize_t n = link_send(b->fd, b->chunk + b->sent_of_chunk, b->chunk_bytes - b->sent_of_chunk, b->send_flags);
    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS) /* ENOBUFS: too many notes of zero-copy are unread */
            die("send: %s", strerror(errno));
        return;
    }
    b->sent_of_chunk += (size_t)n;
    if (b->sent_of_chunk == b->chunk_bytes) {
        b->sent_of_chunk = 0;
        b->numbered = 0;
    }
}

/* Take the kernel's notes of what it no longer reads; the frames are never given back, so they say nothing here. */
static void read_notes(struct blast *b)
{
    char room[CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(struct sockaddr_in6))];
    struct msghdr note = {.msg_control = room, .msg_controllen = sizeof room};
    while (recvmsg(b->fd, &note, MSG_ERRQUEUE) >= 0)
        note.msg_controllen = sizeof room;
}

static void use_zerocopy(struct blast *b)
{
    int one = 1;
    if (setsockopt(b->fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one) != 0)
        die("SO_ZEROCOPY: %s", strerror(errno));
    b->send_flags |= MSG_ZEROCOPY;
}

static void count_ack(struct blast *b, const uint8_t *frame, size_t total)
{
    if (frame[4] != BENCH_TYPE_BINARY)
        die("unexpected reply of type %d", frame[4]);
    if (memmem(frame + 11, total - 11, "errCode=", 8) != NULL)
        b->refused_frames++;
    b->acked_frames++;
}

static void read_acks(struct blast *b)
{
    ssize_t n = link_recv(b->fd, b->acks + b->acks_filled, ACK_BUFFER - b->acks_filled);
    if (n == 0)
        die("the server closed the connection");
    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR)
            die("recv: %s", strerror(errno));
        return;
    }
    size_t at = 0;
    b->acks_filled += (size_t)n;
    while (b->acks_filled - at >= BENCH_LENGTH) {
        size_t total = get_be32(b->acks + at) + BENCH_LENGTH;
        if (total < 13 || total > ACK_BUFFER)
            die("reply of %zu bytes", total);
        if (b->acks_filled - at < total)
            break;
        count_ack(b, b->acks + at, total);
        at += total;
    }
    memmove(b->acks, b->acks + at, b->acks_filled - at);
    b->acks_filled -= at;
}

/* Send until the time or the frames are over, then wait for the acks that are out. */
static void run(struct blast *b, double seconds, uint64_t frames)
{
    double deadline = now_seconds() + seconds;
    uint64_t stop_at = frames ? b->sent_frames + frames : UINT64_MAX;
    int sending = 1;
    while (sending || b->numbered || b->acked_frames < b->sent_frames) {
        struct pollfd ready = {.fd = b->fd, .events = POLLIN};
        int may_send = b->numbered || (sending && b->sent_frames - b->acked_frames < b->window_frames);
        if (may_send)
            ready.events |= POLLOUT;
        if (poll(&ready, 1, 10000) == 0)
            die("no progress in 10 s: %llu of %llu frames acknowledged", (unsigned long long)b->acked_frames,
                (unsigned long long)b->sent_frames);
        if (ready.revents & POLLERR)
            read_notes(b);
        if (ready.revents & (POLLIN | POLLERR | POLLHUP))
            read_acks(b);
        if (ready.revents & POLLOUT)
            send_some(b);
        sending = b->sent_frames < stop_at && now_seconds() < deadline;
    }
}

int main(int argc, char **argv)
{
    struct blast *b = must_alloc(sizeof *b);
    struct section section;
    char attributes[256];
    size_t body = (size_t)number(argc, argv, "--body", 100);
    size_t count = (size_t)number(argc, argv, "--frame", 262144) / (body + 4);
    double warmup = number(argc, argv, "--warmup", 0.5);
    uint64_t frames = (uint64_t)number(argc, argv, "--frames", 0);
    count = count < 1 ? 1 : count > 65535 ? 65535 : count;
    snprintf(attributes, sizeof attributes, "groupId=%s&streamId=%s", option(argc, argv, "--group", "b_bench"),
             option(argc, argv, "--stream", "s_bench"));
    prepare(b, (size_t)number(argc, argv, "--chunk", 262144), body, count, option(argc, argv, "--bodies", NULL),
            flag(argc, argv, "--snappy"), attributes);
    b->window_frames = (uint64_t)number(argc, argv, "--window", 8388608) / b->frame_bytes;
    b->window_frames = b->window_frames < 2 ? 2 : b->window_frames;
    link_prepare(0);
    b->fd = connect_to((int)number(argc, argv, "--port", 0));
    b->send_flags = MSG_NOSIGNAL;
    if (flag(argc, argv, "--zerocopy"))
        use_zerocopy(b);
    if (warmup > 0)
        run(b, warmup, 0);
    uint64_t before = b->acked_frames;
    section_begin(&section);
    run(b, frames ? 1e9 : number(argc, argv, "--seconds", 2), frames);
    uint64_t acked = b->acked_frames - before;
    section_print(&section, acked * count, acked * count * body);
    printf(", \"frames\": %llu, \"records_per_frame\": %zu, \"frame_bytes\": %zu, \"refused\": %llu, \"total_records\": %llu}\n",
           (unsigned long long)acked, count, b->frame_bytes, (unsigned long long)b->refused_frames,
           (unsigned long long)(b->acked_frames * count));
    return b->refused_frames ? 3 : 0;
}
