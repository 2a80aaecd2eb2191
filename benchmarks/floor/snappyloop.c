/* Floor of compression: snappy alone over packs of length-prefixed bodies, one core.
 *
 *   snappyloop --bodies FILE [--seconds 2] [--body 1024] [--pack 262144]
 *
 * Prints one JSON object; `bytes` are the bodies that went in, `ratio` what came out of each byte.
 */
#include "frame.h"

#include <snappy-c.h>

int main(int argc, char **argv)
{
    struct section section;
    size_t body = (size_t)number(argc, argv, "--body", 1024);
    size_t count = (size_t)number(argc, argv, "--pack", 262144) / (body + 4);
    size_t packs = 16;
    size_t pack_len = count * (body + 4);
    size_t room = snappy_max_compressed_length(pack_len), out_len = 0;
    uint8_t *text = must_alloc(packs * count * body), *raw = must_alloc(packs * pack_len), *out = must_alloc(room);
    uint64_t done = 0, out_bytes = 0;
    if (count == 0)
        die("a body of %zu bytes does not fit the pack", body);
    fill_bodies(text, packs * count * body, option(argc, argv, "--bodies", NULL));
    for (size_t i = 0; i < packs * count; i++) {
        put_be32(raw + i * (body + 4), (uint32_t)body);
        memcpy(raw + i * (body + 4) + 4, text + i * body, body);
    }
    section_begin(&section);
    double until = section.began + number(argc, argv, "--seconds", 2);
    while (now_seconds() < until) {
        for (size_t i = 0; i < packs; i++) {
            out_len = room;
            if (snappy_compress((const char *)raw + i * pack_len, pack_len, (char *)out, &out_len) != SNAPPY_OK)
                die("snappy refused the pack");
            out_bytes += out_len;
        }
        done += packs;
    }
    section_print(&section, done * count, done * count * body);
    printf(", \"ratio\": %.4f}\n", (double)out_bytes / (double)(done * pack_len));
    return 0;
}
