/* Inline access to what Cython cannot spell: atomics, byte order, cache lines. */
#ifndef DP_PLAT_H
#define DP_PLAT_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline uint16_t dp_load_be16(const void *p) { uint16_t v; memcpy(&v, p, 2); return __builtin_bswap16(v); }
static inline uint32_t dp_load_be32(const void *p) { uint32_t v; memcpy(&v, p, 4); return __builtin_bswap32(v); }
static inline uint64_t dp_load_be64(const void *p) { uint64_t v; memcpy(&v, p, 8); return __builtin_bswap64(v); }
static inline void dp_store_be16(void *p, uint16_t v) { v = __builtin_bswap16(v); memcpy(p, &v, 2); }
static inline void dp_store_be32(void *p, uint32_t v) { v = __builtin_bswap32(v); memcpy(p, &v, 4); }
static inline void dp_store_be64(void *p, uint64_t v) { v = __builtin_bswap64(v); memcpy(p, &v, 8); }

static inline int64_t dp_atomic_load(const int64_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
static inline void dp_atomic_store(int64_t *p, int64_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
static inline int64_t dp_atomic_add(int64_t *p, int64_t v) { return __atomic_add_fetch(p, v, __ATOMIC_ACQ_REL); }
static inline int64_t dp_atomic_swap(int64_t *p, int64_t v) { return __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL); }
static inline int64_t dp_atomic_replace(int64_t *p, int64_t was, int64_t v)
{ return __atomic_compare_exchange_n(p, &was, v, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE); }
/* Counters read by another thread for statistics only: no ordering is implied. */
static inline void dp_relaxed_add(int64_t *p, int64_t v) { __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
static inline int64_t dp_relaxed_load(const int64_t *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
static inline void dp_relaxed_store(int64_t *p, int64_t v) { __atomic_store_n(p, v, __ATOMIC_RELAXED); }
/* Memory that begins with a cache line; free() takes it. */
static inline void *dp_line_alloc(size_t n) { return aligned_alloc(64, (n + 63) & ~(size_t)63); }
#if defined(__SANITIZE_ADDRESS__)
#define DP_UNDER_ASAN 1
#else
#define DP_UNDER_ASAN 0
#endif
/* Hints. To the compiler a function of nothing else has no effect, and its calls go: hence the empty asm. */
static inline void dp_prefetch(const void *p) { __builtin_prefetch(p, 0); __asm__ volatile(""); }
static inline void dp_prefetch_write(const void *p) { __builtin_prefetch(p, 1); __asm__ volatile(""); }
#endif
