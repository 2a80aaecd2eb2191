/* 128-bit arithmetic, which Cython cannot spell. */
#ifndef DP_WIDE_H
#define DP_WIDE_H
#include <stdint.h>

/* Return the upper 64 bits of a * b and leave the lower ones in *low. */
static inline uint64_t dp_multiply(uint64_t a, uint64_t b, uint64_t *low) {
    unsigned __int128 product = (unsigned __int128)a * b;
    *low = (uint64_t)product;
    return (uint64_t)(product >> 64);
}

/* Divide the number high:low in place by d and return the remainder. */
static inline uint64_t dp_divide(uint64_t *high, uint64_t *low, uint64_t d) {
#if defined(__x86_64__)
    /* Two steps of the processor instead of a call of the compiler's run-time library. */
    uint64_t rest = *high % d;
    *high /= d;
    __asm__("divq %2" : "+a"(*low), "+d"(rest) : "r"(d) : "cc");
    return rest;
#else
    unsigned __int128 number = ((unsigned __int128)*high << 64) | *low;
    unsigned __int128 quotient = number / d;
    *high = (uint64_t)(quotient >> 64);
    *low = (uint64_t)quotient;
    return (uint64_t)(number - quotient * d);
#endif
}
#endif
