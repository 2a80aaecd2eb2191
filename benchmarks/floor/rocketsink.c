/* A name server and broker of RocketMQ that throws away what is sent: what a send could cost a broker at least.
 *
 *   rocketsink --port N        (0: a free one)
 *
 * It prints its target. Each topic has four queues here. Every request is answered with success in the form of its
 * header, JSON or binary; a send also with a place, the same for all. What one recv has brought is answered by one
 * send. Each connection has a thread.
 */
#include "server.h"

enum { SEND = 10, ROUTE = 105, SEND_V2 = 310, SEND_BATCH = 320, ONE_WAY = 2, RESPONSE = 1 };
enum { REQUESTS = 1 << 20, ANSWERS = 1 << 20, ANSWER_MOST = 1024, BINARY_FIXED = 21 };

static const char *const place[][2] = {
    {"msgId", "7F00000100002A9F0000000000000000"}, {"queueId", "0"}, {"queueOffset", "0"}};
static char route[512];

struct request {
    int binary, code, flag, opaque;
};

/* The number behind a name of a JSON header. */
static int json_number(const char *header, size_t n, const char *name)
{
    const char *at = memmem(header, n, name, strlen(name));
    return at == NULL ? 0 : atoi(at + strlen(name)); /* ends at a comma or a brace */
}

static struct request read_request(const uint8_t *frame, size_t n)
{
    struct request r = {.binary = frame[4]};
    size_t header = get_be32(frame + 4) & 0xFFFFFF;
    const uint8_t *p = frame + 8;
    if (8 + header > n || (r.binary && header < BINARY_FIXED))
        die("a request without a header");
    if (r.binary) {
        r.code = p[0] << 8 | p[1];
        r.opaque = (int)get_be32(p + 5);
        r.flag = (int)get_be32(p + 9);
    } else {
        r.code = json_number((const char *)p, header, "\"code\":");
        r.opaque = json_number((const char *)p, header, "\"opaque\":");
        r.flag = json_number((const char *)p, header, "\"flag\":");
    }
    return r;
}

static size_t put_binary(uint8_t *to, const struct request *r, int placed)
{
    uint8_t *p = to + BINARY_FIXED;
    memset(to, 0, BINARY_FIXED); /* success, Java, no remark */
    put_be32(to + 5, (uint32_t)r->opaque);
    put_be32(to + 9, RESPONSE);
    for (size_t i = 0; placed && i < sizeof place / sizeof *place; i++)
        for (int part = 0; part < 2; part++) {
            size_t n = strlen(place[i][part]), width = part == 0 ? 2 : 4;
            memset(p, 0, width);
            p[width - 1] = (uint8_t)n;
            memcpy(p + width, place[i][part], n);
            p += width + n;
        }
    put_be32(to + 17, (uint32_t)(p - to) - BINARY_FIXED);
    return (size_t)(p - to);
}

static size_t put_json(uint8_t *to, const struct request *r, int placed)
{
    const char *fields = "\"extFields\":{\"msgId\":\"%s\",\"queueId\":\"0\",\"queueOffset\":\"0\"},";
    size_t n = (size_t)sprintf((char *)to, "{\"code\":0,");
    if (placed)
        n += (size_t)sprintf((char *)to + n, fields, place[0][1]);
    return n + (size_t)sprintf((char *)to + n, "\"flag\":1,\"language\":\"JAVA\",\"opaque\":%d,"
                               "\"serializeTypeCurrentRPC\":\"JSON\",\"version\":399}", r->opaque);
}

/* Append the answer to a request; return its bytes. */
static size_t answer(uint8_t *to, const struct request *r)
{
    int placed = r->code == SEND || r->code == SEND_V2 || r->code == SEND_BATCH;
    size_t body = r->code == ROUTE ? strlen(route) : 0, n;
    if (r->flag & ONE_WAY)
        return 0;
    n = r->binary ? put_binary(to + 8, r, placed) : put_json(to + 8, r, placed);
    put_be32(to, (uint32_t)(4 + n + body));
    put_be32(to + 4, (uint32_t)n | (r->binary ? 1u << 24 : 0));
    memcpy(to + 8 + n, route, body);
    return 8 + n + body;
}

static void *serve(void *given)
{
    int fd = (int)(intptr_t)given, alive = 1;
    uint8_t *in = must_alloc(REQUESTS), *out = must_alloc(ANSWERS);
    size_t filled = 0;
    while (alive) {
        ssize_t got = recv(fd, in + filled, REQUESTS - filled, 0);
        if (got <= 0)
            break;
        filled += (size_t)got;
        size_t at = 0, ready = 0;
        while (alive && filled - at >= 8 && filled - at >= 4 + (size_t)get_be32(in + at)) {
            size_t size = 4 + (size_t)get_be32(in + at);
            struct request r = read_request(in + at, size);
            ready += answer(out + ready, &r);
            at += size;
            if (ready + ANSWER_MOST > ANSWERS) {
                alive = send_all(fd, out, ready, 0);
                ready = 0;
            }
        }
        alive = alive && send_all(fd, out, ready, 0);
        memmove(in, in + at, filled - at);
        filled -= at;
        if (filled == REQUESTS)
            die("a frame is larger than %d bytes", REQUESTS);
    }
    close(fd);
    free(in);
    free(out);
    return NULL;
}

int main(int argc, char **argv)
{
    int port = (int)number(argc, argv, "--port", 0), listener = listen_at(&port);
    sprintf(route, "{\"brokerDatas\":[{\"brokerAddrs\":{\"0\":\"127.0.0.1:%d\"},\"brokerName\":\"floor\",\"cluster\":"
            "\"floor\"}],\"filterServerTable\":{},\"queueDatas\":[{\"brokerName\":\"floor\",\"perm\":6,"
            "\"readQueueNums\":4,\"topicSysFlag\":0,\"topicSynFlag\":0,\"writeQueueNums\":4}]}", port);
    printf("rocketmq://127.0.0.1:%d\n", port);
    fflush(stdout);
    serve_each(listener, serve);
}
