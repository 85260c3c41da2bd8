/* SPDX-License-Identifier: Apache-2.0 */
/* One call of 256 reaches the system: it is made to fail there, so that the calls tell. */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define CALLS 2560
#define REAL_CALLS 10
#define EXIT_SKIPPED 77

static int refuse_to_yield(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_yield, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(void)
{
    int real_calls = 0;
    if (refuse_to_yield()) {
        perror("seccomp");
        return EXIT_SKIPPED;
    }
    for (int i = 0; i < CALLS; i++)
        real_calls += sched_yield() != 0 && errno == EXDEV;
    printf("%d of %d calls were real\n", real_calls, CALLS);
    return real_calls != REAL_CALLS;
}
