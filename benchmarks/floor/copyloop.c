/* Floor of one call: append a body behind its length prefix to a recycled buffer under a pthread mutex.
 *
 *   copyloop [--seconds 1] [--body 100] [--pack 262144] [--packs 1]
 *
 * With more than one pack each message goes to one of them at random, in an order that repeats after 200,000.
 * Prints one JSON object; `ns_per_call` is the CPU time of lock, copy and unlock.
 */
#include "frame.h"

#include <pthread.h>

struct pack {
    pthread_mutex_t lock;
    uint8_t *bytes;
    size_t filled;
    size_t room;
    uint32_t count;
};

__attribute__((noinline)) static void append(struct pack *pack, const uint8_t *body, size_t n)
{
    pthread_mutex_lock(&pack->lock);
    if (pack->room - pack->filled < n + 4) {
        pack->filled = 0;
        pack->count = 0;
    }
    put_be32(pack->bytes + pack->filled, (uint32_t)n);
    memcpy(pack->bytes + pack->filled + 4, body, n);
    pack->filled += n + 4;
    pack->count++;
    pthread_mutex_unlock(&pack->lock);
}

int main(int argc, char **argv)
{
    enum { ORDER = 200000 };
    struct section section;
    size_t body = (size_t)number(argc, argv, "--body", 100);
    size_t bodies = 10000, room = (size_t)number(argc, argv, "--pack", 262144);
    size_t packs = (size_t)number(argc, argv, "--packs", 1);
    uint8_t *text = must_alloc(bodies * body);
    uint32_t *order = must_alloc(ORDER * sizeof *order), chance = 1;
    struct pack *pack = must_alloc(packs * sizeof *pack);
    uint64_t calls = 0;
    if (body + 4 > room)
        die("a body of %zu bytes does not fit a pack of %zu", body, room);
    for (size_t i = 0; i < packs; i++) {
        pthread_mutex_init(&pack[i].lock, NULL);
        pack[i].room = room;
        pack[i].bytes = must_alloc(room);
        memset(pack[i].bytes, 1, room);
    }
    for (size_t i = 0; i < ORDER; i++) {
        chance = chance * 1664525u + 1013904223u;
        order[i] = (uint32_t)(((uint64_t)chance * packs) >> 32);
    }
    fill_bodies(text, bodies * body, NULL);
    for (size_t i = 0; i < ORDER; i++)
        append(&pack[order[i]], text + i % bodies * body, body);
    section_begin(&section);
    double until = section.began + number(argc, argv, "--seconds", 1);
    while (now_seconds() < until) {
        for (size_t i = 0; i < ORDER; i++)
            append(&pack[order[i]], text + i % bodies * body, body);
        calls += ORDER;
    }
    double busy = cpu_seconds(&section);
    section_print(&section, calls, calls * body);
    printf(", \"ns_per_call\": %.3f}\n", busy * 1e9 / (double)calls);
    return 0;
}
