/* Assertions of builds with DATAPROXY_DEBUG; in all others neither condition, values nor text are compiled. */
#ifndef DP_ASSERT_H
#define DP_ASSERT_H
#ifdef DATAPROXY_DEBUG
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#define DP_CHECKED 1
/* One line on stderr, written whole although other threads write too; then SIGABRT, so that a core file is kept. */
static void __attribute__((noreturn, noinline, unused, format(printf, 4, 5)))
dp_assert_failed(const char *file, int line, const char *function, const char *format, ...)
{
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    fprintf(stderr, "dataproxy: assertion failed at %s:%d in %s: %s\n", file, line, function, text);
    fflush(stderr);
    abort();
}
#define dp_assert(condition, ...) ((condition) ? (void)0 : dp_assert_failed(__FILE__, __LINE__, __func__, __VA_ARGS__))
#else
#define DP_CHECKED 0
#define dp_assert(condition, ...) ((void)sizeof(condition))
#endif
#endif
