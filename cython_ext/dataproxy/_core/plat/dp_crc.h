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
/* x^(n + 32) and x^(n - 32) modulo the polynomial, reflected and moved by one bit: what 128 bits are multiplied by to stand
 * n bits further on (V. Gopal and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction",
 * Intel, 2009). */
#define DP_CRC_BY_512 _mm_set_epi64x(0x1c6e41596, 0x154442bd4)
#define DP_CRC_BY_384 _mm_set_epi64x(0x174359406, 0x03db1ecdc)
#define DP_CRC_BY_256 _mm_set_epi64x(0x15a546366, 0x0f1da05aa)
#define DP_CRC_BY_128 _mm_set_epi64x(0x0ccaa009e, 0x1751997d0)

__attribute__((target("pclmul"))) static inline __m128i dp_crc_move(__m128i x, __m128i by)
{
    return _mm_xor_si128(_mm_clmulepi64_si128(x, by, 0x00), _mm_clmulepi64_si128(x, by, 0x11));
}

__attribute__((target("pclmul"))) static inline __m128i dp_crc_fold(__m128i x, __m128i by, const uint8_t *next)
{
    return _mm_xor_si128(dp_crc_move(x, by), _mm_loadu_si128((const __m128i *)next));
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
    return _mm_xor_si128(dp_crc_move(first, by), _mm_or_si128(left, last));
}

/* 128 bits to 96, to 64, and by Barrett's method, with floor(x^64 / P) and P, to the 32 of the checksum. */
__attribute__((target("pclmul"))) static inline uint32_t dp_crc_reduce(__m128i x)
{
    const __m128i low = _mm_set_epi32(0, -1, 0, -1), by_64 = _mm_set_epi64x(0, 0x163cd6124);
    const __m128i barrett = _mm_set_epi64x(0x1f7011641, 0x1db710641);
    x = _mm_xor_si128(_mm_srli_si128(x, 8), _mm_clmulepi64_si128(x, DP_CRC_BY_128, 0x10));
    x = _mm_xor_si128(_mm_srli_si128(x, 4), _mm_clmulepi64_si128(_mm_and_si128(x, low), by_64, 0x00));
    const __m128i times = _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(x, low), barrett, 0x10), low);
    x = _mm_xor_si128(x, _mm_clmulepi64_si128(times, barrett, 0x00));
    return (uint32_t)(_mm_cvtsi128_si64(x) >> 32);
}

__attribute__((target("pclmul,ssse3"))) static uint32_t dp_crc32_by_processor(uint32_t crc, const uint8_t *p, size_t n)
{
    if (n < 32) return dp_crc32_by_tables(crc, p, n);
    __m128i x = _mm_xor_si128(_mm_loadu_si128((const __m128i *)p), _mm_cvtsi32_si128((int)crc));
    if (n < 64) {
        p += 16, n -= 16;
    } else {
        __m128i folded[4] = {x};
        for (int i = 1; i < 4; i++) folded[i] = _mm_loadu_si128((const __m128i *)(p + 16 * i));
        for (p += 64, n -= 64; n >= 64; p += 64, n -= 64)
            for (int i = 0; i < 4; i++) folded[i] = dp_crc_fold(folded[i], DP_CRC_BY_512, p + 16 * i);
        /* Side by side: one after the other would wait three times. */
        x = _mm_xor_si128(_mm_xor_si128(dp_crc_move(folded[0], DP_CRC_BY_384), dp_crc_move(folded[1], DP_CRC_BY_256)),
            _mm_xor_si128(dp_crc_move(folded[2], DP_CRC_BY_128), folded[3]));
    }
    for (; n >= 16; p += 16, n -= 16) x = dp_crc_fold(x, DP_CRC_BY_128, p);
    if (n) x = dp_crc_fold_last(x, DP_CRC_BY_128, p + n, n);
    return dp_crc_reduce(x);
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
