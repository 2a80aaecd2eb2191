/* CRC-32C (Castagnoli) and CRC-32 (IEEE 802.3), both reflected: by the processor where it can, else by eight tables. */
#ifndef DP_CRC_H
#define DP_CRC_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <tmmintrin.h>
#include <wmmintrin.h>
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
/* x^n modulo the polynomial, reflected and moved by one bit, for n = 544 and 480, and for n = 160 and 96: what 128 bits
 * are multiplied by to stand 512, or 128, bits further on (V. Gopal and others, "Fast CRC Computation for Generic
 * Polynomials Using PCLMULQDQ Instruction", Intel, 2009).  What is left at the end are 16 bytes with the same checksum. */
__attribute__((target("pclmul"))) static inline __m128i dp_crc_fold(__m128i x, __m128i by, const uint8_t *next)
{
    __m128i moved = _mm_xor_si128(_mm_clmulepi64_si128(x, by, 0x00), _mm_clmulepi64_si128(x, by, 0x11));
    return _mm_xor_si128(moved, _mm_loadu_si128((const __m128i *)next));
}

static const uint8_t dp_crc_steps[48] = { /* loaded at 16 - k they move bytes up by k, at 16 + k down by k */
    128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 0, 1, 2, 3, 4, 5, 6, 7,
    8, 9, 10, 11, 12, 13, 14, 15, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128,
};

/* The 0 < n < 16 bytes that end at ``end``, behind at least 16 others: as many of the first bytes of x move 128 bits on,
 * with zeros before them, which change no checksum; what x has left and the bytes are the next 16. */
__attribute__((target("pclmul,ssse3"))) static inline __m128i dp_crc_fold_last(__m128i x, __m128i by, const uint8_t *end, size_t n)
{
    const __m128i up = _mm_loadu_si128((const __m128i *)(dp_crc_steps + n));
    const __m128i down = _mm_loadu_si128((const __m128i *)(dp_crc_steps + 16 + n));
    const __m128i first = _mm_shuffle_epi8(x, up), left = _mm_shuffle_epi8(x, down);
    const __m128i last = _mm_and_si128(_mm_loadu_si128((const __m128i *)(end - 16)), _mm_cmpgt_epi8(_mm_setzero_si128(), down));
    const __m128i moved = _mm_xor_si128(_mm_clmulepi64_si128(first, by, 0x00), _mm_clmulepi64_si128(first, by, 0x11));
    return _mm_xor_si128(moved, _mm_or_si128(left, last));
}

__attribute__((target("pclmul,ssse3"))) static uint32_t dp_crc32_by_processor(uint32_t crc, const uint8_t *p, size_t n)
{
    const __m128i by_512 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4), by_128 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    uint8_t rest[64];
    if (n < 32) return dp_crc32_by_tables(crc, p, n);
    __m128i folded[4];
    __m128i x = _mm_xor_si128(_mm_loadu_si128((const __m128i *)p), _mm_cvtsi32_si128((int)crc));
    if (n < 64) {
        p += 16, n -= 16;
    } else {
        folded[0] = x;
        for (int i = 1; i < 4; i++) folded[i] = _mm_loadu_si128((const __m128i *)(p + 16 * i));
        for (p += 64, n -= 64; n >= 64; p += 64, n -= 64)
            for (int i = 0; i < 4; i++) folded[i] = dp_crc_fold(folded[i], by_512, p + 16 * i);
        for (int i = 1; i < 4; i++) _mm_storeu_si128((__m128i *)(rest + 16 * i), folded[i]);
        x = folded[0];
        for (int i = 1; i < 4; i++) x = dp_crc_fold(x, by_128, rest + 16 * i);
    }
    for (; n >= 16; p += 16, n -= 16) x = dp_crc_fold(x, by_128, p);
    if (n) x = dp_crc_fold_last(x, by_128, p + n, n);
    _mm_storeu_si128((__m128i *)rest, x);
    return dp_crc32_by_tables(0, rest, 16);
}

/* By hand: __builtin_cpu_supports says no in what Zig's clang links. */
static int dp_crc_has(unsigned int bit)
{
    unsigned int a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit) != 0;
}
static int dp_crc_has_processor(void) { return dp_crc_has(bit_SSE4_2); }
static int dp_crc32_has_processor(void) { return dp_crc_has(bit_PCLMUL) && dp_crc_has(bit_SSSE3); }
#else
static uint32_t dp_crc_by_processor(uint32_t crc, const uint8_t *p, size_t n) { return dp_crc_by_tables(crc, p, n); }
static uint32_t dp_crc32_by_processor(uint32_t crc, const uint8_t *p, size_t n) { return dp_crc32_by_tables(crc, p, n); }
static int dp_crc_has_processor(void) { return 0; }
static int dp_crc32_has_processor(void) { return 0; }
#endif
#endif
