/* SPDX-License-Identifier: Apache-2.0 */
#include "fork.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "error.h"
#include "order.h"

/* The kernel gives a child a zero in place of the word that `mark` points to, however it was made:
 * fork(), clone(), with the same process id in another namespace. */
static uint64_t kept;
static uint64_t *mark = &kept;
static uint64_t last; /* Mark of this process, or of its parent, as long as it has none. */

static void forget(void) { order_publish_entry(mark, 0); }

static void make_mark(void)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED && madvise(page, page_bytes, MADV_WIPEONFORK) == 0)
        mark = page;
    else if (page != MAP_FAILED) /* A kernel before Linux 4.14. */
        munmap(page, page_bytes);
    /* The handler clears the word where the kernel does not: an emulator may take the advice and
     * not follow it, as QEMU's user mode does. */
    (void)pthread_atfork(NULL, NULL, forget);
}

uint64_t fork_mark(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, make_mark);
    /* Of two threads of a child one claims the word, and the other finds it. */
    if (order_read_entry(mark) == 0 && order_claim_entry(mark, 0, order_counter(&last) + 1))
        order_show(&last, order_read_entry(mark));
    return order_read_entry(mark);
}

bool fork_is_ours(uint64_t owner) { return order_read_entry(mark) == owner; }

int fork_refuse(const char *object)
{
    return velo_fail(VELO_ERR_STATE, "this %s is the parent's: a child of fork() opens its own",
                     object);
}
