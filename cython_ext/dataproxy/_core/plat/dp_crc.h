/* CRC-32C (Castagnoli, reflected): by the processor where it can, else eight tables.  CRC-32 (IEEE 802.3): by tables. */
#ifndef DP_CRC_H
#define DP_CRC_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

typedef uint32_t dp_crc_tables[8][256];

static dp_crc_tables dp_crc_castagnoli, dp_crc_ieee;

static void dp_crc_fill(dp_crc_tables tables, uint32_t polynomial)
{
    for (int i = 0; i < 256; i++) {
        uint32_t crc = (uint32_t)i;
        for (int k = 0; k < 8; k++) crc = crc & 1 ? (crc >> 1) ^ polynomial : crc >> 1;
        tables[0][i] = crc;
    }
    for (int i = 0; i < 256; i++)
        for (int t = 1; t < 8; t++) tables[t][i] = (tables[t - 1][i] >> 8) ^ tables[0][tables[t - 1][i] & 255];
}

static void dp_crc_prepare(void)
{
    dp_crc_fill(dp_crc_castagnoli, 0x82F63B78u);
    dp_crc_fill(dp_crc_ieee, 0xEDB88320u);
}

/* The state is the inverted checksum, as it stands between pieces. */
static inline uint32_t dp_crc_look_up(const dp_crc_tables tables, uint32_t crc, const uint8_t *p, size_t n)
{
    for (; n >= 8; n -= 8, p += 8) {
        crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        crc = tables[7][crc & 255] ^ tables[6][(crc >> 8) & 255] ^ tables[5][(crc >> 16) & 255] ^ tables[4][crc >> 24]
            ^ tables[3][p[4]] ^ tables[2][p[5]] ^ tables[1][p[6]] ^ tables[0][p[7]];
    }
    for (; n; n--, p++) crc = (crc >> 8) ^ tables[0][(crc ^ *p) & 255];
    return crc;
}

static uint32_t dp_crc_by_tables(uint32_t crc, const uint8_t *p, size_t n) { return dp_crc_look_up(dp_crc_castagnoli, crc, p, n); }
static uint32_t dp_crc32_by_tables(uint32_t crc, const uint8_t *p, size_t n) { return dp_crc_look_up(dp_crc_ieee, crc, p, n); }

#if defined(__x86_64__)
#if defined(__clang__)
#define DP_CRC_TARGET "sse4.2,crc32" /* to clang the checksum is no part of SSE 4.2; GCC 10 and older do not know its name */
#else
#define DP_CRC_TARGET "sse4.2"
#endif
__attribute__((target(DP_CRC_TARGET))) static uint32_t dp_crc_by_processor(uint32_t crc, const uint8_t *p, size_t n)
{
    uint64_t wide = crc, word;
    for (; n >= 8; n -= 8, p += 8) {
        memcpy(&word, p, 8);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    for (; n; n--, p++) crc = __builtin_ia32_crc32qi(crc, *p);
    return crc;
}
static int dp_crc_has_processor(void) /* by hand: __builtin_cpu_supports says no in what Zig's clang links */
{
    unsigned int a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2) != 0;
}
#else
static uint32_t dp_crc_by_processor(uint32_t crc, const uint8_t *p, size_t n) { return dp_crc_by_tables(crc, p, n); }
static int dp_crc_has_processor(void) { return 0; }
#endif
#endif
