/* Frames of TubeMQ's RPC for the floor programs: where one ends, which method it calls, and ready ones from files. */
#ifndef BENCH_TUBEFRAME_H
#define BENCH_TUBEFRAME_H
#include "frame.h"

#include <unistd.h>

enum { TUBE_HEAD = 12, TUBE_SERIAL_AT = 4, TUBE_SLICES_AT = 8 };

struct tube_frame {
    uint8_t *p;
    size_t n;
};

/* Bytes of the frame that begins at p, 0 if more of it has to come. */
static inline size_t tube_size(const uint8_t *p, size_t n)
{
    if (n < TUBE_HEAD)
        return 0;
    size_t at = TUBE_HEAD;
    for (uint32_t slices = get_be32(p + TUBE_SLICES_AT); slices > 0; slices--) {
        if (n < at + 4)
            return 0;
        at += 4 + get_be32(p + at);
        if (n < at)
            return 0;
    }
    return at;
}

static inline uint32_t tube_varint(const uint8_t **p, const uint8_t *end)
{
    uint32_t value = 0;
    for (int shift = 0; *p < end && shift < 35; shift += 7) {
        uint8_t byte = *(*p)++;
        value |= (uint32_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            break;
    }
    return value;
}

/* The method of a request that lies in one slice; -1: it has none where it is expected. */
static inline int tube_method(const uint8_t *frame, size_t n)
{
    const uint8_t *p = frame + TUBE_HEAD + 4, *end = frame + n;
    for (int i = 0; i < 2; i++) { /* RpcConnHeader, RequestHeader */
        uint32_t size = tube_varint(&p, end);
        p += size;
    }
    tube_varint(&p, end);
    if (p >= end || *p++ != 0x08)
        return -1;
    return (int)tube_varint(&p, end);
}

/* A frame from a file. */
static inline struct tube_frame tube_read(const char *path)
{
    struct tube_frame found = {must_alloc(BENCH_MAX_FRAME), 0};
    FILE *file = path == NULL ? NULL : fopen(path, "rb");
    if (file == NULL)
        die("cannot open %s", path == NULL ? "a frame: its option is missing" : path);
    found.n = fread(found.p, 1, BENCH_MAX_FRAME, file);
    fclose(file);
    if (tube_size(found.p, found.n) != found.n)
        die("%s is no frame", path);
    return found;
}
#endif
