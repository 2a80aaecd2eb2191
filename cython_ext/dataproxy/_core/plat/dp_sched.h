/* How long the scheduler lets a thread run before others have their turn (Linux 6.12 and newer). */
#ifndef DP_SCHED_H
#define DP_SCHED_H
#include <stdint.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

struct dp_sched_attr { /* include/uapi/linux/sched/types.h, first version */
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime; /* of an ordinary thread: its slice in nanoseconds */
    uint64_t deadline;
    uint64_t period;
};

static inline int dp_sched_slice(uint64_t ns)
{
    struct dp_sched_attr attr = {.size = sizeof attr};
    if (syscall(SYS_sched_getattr, 0, &attr, (unsigned)sizeof attr, 0) != 0 || attr.policy != SCHED_OTHER) return -1;
    attr.size = sizeof attr;
    attr.runtime = ns;
    return (int)syscall(SYS_sched_setattr, 0, &attr, 0);
}
#endif
