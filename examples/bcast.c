/* SPDX-License-Identifier: Apache-2.0 */
/* One writer sends frames to three workers, which read them in place: one copy for all of them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo/bcast.h>

enum { WORKERS = 3, FRAMES = 500, FRAME_ITEMS = 25000 };
static const int64_t patience_ns = INT64_C(5000000000);

static void check(int status, const char *call)
{
    if (status >= VELO_OK)
        return;
    fprintf(stderr, "%s: %s\n%s\n", call, velo_strerror(status), velo_last_error());
    exit(1);
}

static int work(const struct velo_bcast_attr *attr, int worker)
{
    struct velo_bcast_reader *reader;
    struct velo_msg frame;
    uint64_t frames = 0, sum = 0;
    int status;
    check(velo_bcast_join(attr, &reader, patience_ns), "velo_bcast_join");
    while ((status = velo_bcast_peek(reader, &frame, patience_ns)) == VELO_OK) {
        const uint32_t *items = frame.data;
        for (uint32_t i = 0; i < frame.len_bytes / sizeof *items; i++)
            sum += items[i];
        frames++;
        check(velo_bcast_release(reader), "velo_bcast_release");
    }
    if (status != VELO_ERR_PEER_CLOSED) /* So the writer says that this was all. */
        check(status, "velo_bcast_peek");
    printf("worker %d: %" PRIu64 " frames, sum %" PRIu64 "\n", worker, frames, sum);
    check(velo_bcast_leave(reader), "velo_bcast_leave");
    return frames == FRAMES && sum == (uint64_t)FRAME_ITEMS * FRAMES * (FRAMES - 1) / 2 ? 0 : 1;
}

int main(void)
{
    char domain[32]; /* One of our own, so that two runs do not meet. */
    snprintf(domain, sizeof domain, "bcast-%d", (int)getpid());
    struct velo_bcast_attr attr = VELO_BCAST_ATTR_INIT;
    attr.domain = domain;
    attr.msg_bytes_max = FRAME_ITEMS * sizeof(uint32_t);
    for (int worker = 0; worker < WORKERS; worker++)
        if (fork() == 0)
            return work(&attr, worker);
    struct velo_bcast *ring;
    check(velo_bcast_open(&attr, &ring), "velo_bcast_open");
    while (velo_bcast_readers(ring) < WORKERS)
        usleep(1000);
    for (uint32_t frame = 0; frame < FRAMES; frame++) {
        void *place;
        check(velo_bcast_reserve(ring, attr.msg_bytes_max, &place, patience_ns), "reserve");
        for (uint32_t i = 0; i < FRAME_ITEMS; i++)
            ((uint32_t *)place)[i] = frame;
        check(velo_bcast_commit(ring, attr.msg_bytes_max, 0), "velo_bcast_commit");
    }
    check(velo_bcast_close(ring), "velo_bcast_close");
    int failed = 0, status;
    while (wait(&status) > 0)
        failed += status != 0;
    return failed;
}
