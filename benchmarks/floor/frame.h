/* Frames, clocks and output shared by the floor programs. Plain C on purpose: nothing of the product is used here. */
#ifndef BENCH_FRAME_H
#define BENCH_FRAME_H

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum {
    BENCH_TYPE_HEARTBEAT = 1,
    BENCH_TYPE_BINARY = 7,
    BENCH_TYPE_BINARY_HEARTBEAT = 8,
    BENCH_TYPE_MASK = 0x1F,
    BENCH_TYPE_SNAPPY = 0x20,
    BENCH_EXT_NAMES = 0x0004,
    BENCH_MAGIC = 0xEE01,
    BENCH_LENGTH = 4,      /* the length field itself */
    BENCH_HEAD = 25,       /* length field up to and with bodyLen of a type-7 request */
    BENCH_FIXED = 29,      /* a type-7 request without body and attributes */
    BENCH_UNIQ_AT = 17,
    BENCH_COUNT_AT = 15,
    BENCH_BODY_LEN_AT = 21,
    BENCH_MAX_FRAME = 32 * 1024 * 1024
};

static inline void put_be16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static inline void put_be32(uint8_t *p, uint32_t v)
{
    v = __builtin_bswap32(v);
    memcpy(p, &v, 4);
}

static inline uint32_t get_be16(const uint8_t *p)
{
    return ((uint32_t)p[0] << 8) | p[1];
}

static inline uint32_t get_be32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return __builtin_bswap32(v);
}

static inline double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

__attribute__((noreturn, format(printf, 1, 2))) static inline void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(2);
}

static inline void *must_alloc(size_t n)
{
    void *p = calloc(1, n);
    if (p == NULL)
        die("cannot allocate %zu bytes", n);
    return p;
}

/* Read `--name value` from the command line; the fallback is returned when it is absent. */
static inline const char *option(int argc, char **argv, const char *name, const char *fallback)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    return fallback;
}

static inline double number(int argc, char **argv, const char *name, double fallback)
{
    const char *text = option(argc, argv, name, NULL);
    char *end = NULL;
    if (text == NULL)
        return fallback;
    double value = strtod(text, &end);
    if (end == text || *end != '\0')
        die("%s wants a number, got '%s'", name, text);
    return value;
}

static inline int flag(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return 1;
    return 0;
}

/* Fill `out` with `n` bytes: from the file when one is given (repeated as needed), else letters that differ by index. */
static inline void fill_bodies(uint8_t *out, size_t n, const char *path)
{
    if (path == NULL) {
        for (size_t i = 0; i < n; i++)
            out[i] = (uint8_t)('a' + (i * 7 + i / 100) % 26);
        return;
    }
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        die("cannot open %s: %s", path, strerror(errno));
    size_t have = fread(out, 1, n, file);
    fclose(file);
    if (have == 0)
        die("%s is empty", path);
    for (size_t at = have; at < n; at++)
        out[at] = out[at - have];
}

/* Time and CPU of one measured section. */
struct section {
    double began;
    struct rusage usage;
};

static inline void section_begin(struct section *s)
{
    getrusage(RUSAGE_SELF, &s->usage);
    s->began = now_seconds();
}

/* CPU seconds of this process since the section began. */
static inline double cpu_seconds(const struct section *s)
{
    struct rusage now;
    getrusage(RUSAGE_SELF, &now);
    return seconds_of(now.ru_utime) - seconds_of(s->usage.ru_utime) + seconds_of(now.ru_stime) -
           seconds_of(s->usage.ru_stime);
}

/* Peak resident size of this program in KiB. Not from getrusage(), which remembers the parent's size across exec. */
static inline long peak_rss_kb(void)
{
    char line[256];
    long kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmHWM: %ld", &kb) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return kb;
}

/* Print the fields that every client prints; the caller closes the object. */
static inline void section_print(const struct section *s, uint64_t records, uint64_t bytes)
{
    double seconds = now_seconds() - s->began;
    struct rusage now;
    getrusage(RUSAGE_SELF, &now);
    printf("{\"records\": %llu, \"bytes\": %llu, \"seconds\": %.6f, \"cpu_user\": %.6f, \"cpu_sys\": %.6f, "
           "\"peak_rss_kb\": %ld",
           (unsigned long long)records, (unsigned long long)bytes, seconds,
           seconds_of(now.ru_utime) - seconds_of(s->usage.ru_utime),
           seconds_of(now.ru_stime) - seconds_of(s->usage.ru_stime), peak_rss_kb());
}

#endif
