/* A realloc that fails for the code of one module while a switch is on: tests/process/test_no_memory.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static volatile int refusing;

void refuse_packs(int on) { refusing = on; }

void *realloc(void *p, size_t n)
{
    static void *(*next)(void *, size_t);
    Dl_info caller;
    if (next == NULL) next = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
    if (refusing && dladdr(__builtin_return_address(0), &caller) && strstr(caller.dli_fname, "/_core/pack/pack."))
        return NULL;
    return next(p, n);
}
