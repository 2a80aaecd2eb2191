/* Preloaded: ends the process at the n-th write or sync of the store's library, as kill -9 would. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char armed[16];
static long left;

void killer_arm(const char *event, long passages)
{
    strncpy(armed, event, sizeof armed - 1);
    left = passages;
}

static int reached(const char *event)
{
    return left > 0 && strcmp(armed, event) == 0 && __atomic_sub_fetch(&left, 1, __ATOMIC_SEQ_CST) == 0;
}

static void passed(const char *event)
{
    if (reached(event))
        kill(getpid(), SIGKILL);
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
    static ssize_t (*next)(int, const void *, size_t, off_t);
    ssize_t done;
    if (!next)
        next = dlsym(RTLD_NEXT, "pwrite");
    passed("write");
    if (reached("torn")) {
        next(fd, data, n / 2, at);
        kill(getpid(), SIGKILL);
    }
    done = next(fd, data, n, at);
    passed("wrote");
    return done;
}

ssize_t writev(int fd, const struct iovec *parts, int n)
{
    static ssize_t (*next)(int, const struct iovec *, int);
    ssize_t done;
    if (!next)
        next = dlsym(RTLD_NEXT, "writev");
    passed("write");
    if (n > 1 && reached("torn")) {
        next(fd, parts, n / 2);
        kill(getpid(), SIGKILL);
    }
    done = next(fd, parts, n);
    passed("wrote");
    return done;
}

int fdatasync(int fd)
{
    static int (*next)(int);
    int done;
    if (!next)
        next = dlsym(RTLD_NEXT, "fdatasync");
    passed("sync");
    done = next(fd);
    passed("synced");
    return done;
}
