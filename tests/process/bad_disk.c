/* Preloaded: writes and syncs of the store's data file that fail with EIO while asked to: test_store_faults.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static volatile long passing, failing, failed;

/* Let `pass` calls through, then fail `fail` of them; returns how many have failed so far. */
long disk_fails(long pass, long fail)
{
    passing = pass;
    failing = fail;
    return failed;
}

static int fails(int fd)
{
    char link[64], name[4096];
    ssize_t n;
    if (failing == 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, name, sizeof name - 1);
    if (n < 9 || memcmp(name + n - 9, "/data.mdb", 9) != 0)
        return 0;
    if (passing > 0) {
        passing--;
        return 0;
    }
    failing--;
    failed++;
    errno = EIO;
    return 1;
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
    static ssize_t (*next)(int, const void *, size_t, off_t);
    if (!next)
        next = dlsym(RTLD_NEXT, "pwrite");
    return fails(fd) ? -1 : next(fd, data, n, at);
}

ssize_t writev(int fd, const struct iovec *parts, int n)
{
    static ssize_t (*next)(int, const struct iovec *, int);
    if (!next)
        next = dlsym(RTLD_NEXT, "writev");
    return fails(fd) ? -1 : next(fd, parts, n);
}

int fdatasync(int fd)
{
    static int (*next)(int);
    if (!next)
        next = dlsym(RTLD_NEXT, "fdatasync");
    return fails(fd) ? -1 : next(fd);
}

static volatile int full;
static char names[65536];

void disk_is_full(int on) { full = on; }

/* The directories that were synced, one a line. */
const char *synced(void) { return names; }

int posix_fallocate(int fd, off_t at, off_t n)
{
    static int (*next)(int, off_t, off_t);
    if (!next)
        next = dlsym(RTLD_NEXT, "posix_fallocate");
    return full ? ENOSPC : next(fd, at, n);
}

int posix_fallocate64(int fd, off_t at, off_t n) { return posix_fallocate(fd, at, n); }

int fsync(int fd)
{
    static int (*next)(int);
    char link[64], name[4096];
    ssize_t n;
    if (!next)
        next = dlsym(RTLD_NEXT, "fsync");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, name, sizeof name - 2);
    if (n > 0 && strlen(names) + (size_t)n + 2 < sizeof names) {
        name[n] = '\n';
        name[n + 1] = 0;
        strcat(names, name);
    }
    return next(fd);
}
