/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect.h"

#include <string.h>
#include <unistd.h>

#include "../shm/inspect.h"
#include "bcast.h"

struct walk {
    int (*each)(void *arg, const struct velo_ring_view *view);
    void *arg;
};

static void count_readers(struct velo_ring_view *view, const struct segment *segment,
                          const struct bcast_control *control)
{
    for (uint32_t i = 0; i < segment->shape.conns_max && i < VELO_BCAST_READERS_MAX; i++) {
        uint64_t entry = order_read_entry(&segment->entries[i]);
        if (entry_state(entry) != ENTRY_READY || !life_goes_on(segment, entry_generation(entry)))
            continue;
        uint64_t consumed = control->places[i].consumed;
        uint64_t behind = consumed < control->tail ? control->tail - consumed : 0;
        view->readers++;
        view->behind_msgs = behind > view->behind_msgs ? behind : view->behind_msgs;
    }
}

static int look_at_file(void *arg, const char *path)
{
    const struct walk *walk = arg;
    struct velo_ring_view view = {0};
    struct segment segment;
    struct bcast_control control;
    int status = VELO_OK;
    if (velo_inspect_map(&segment, path, &view.memory_bytes) &&
        bcast_control_read(&segment, &control)) {
        view.id = segment.header->id;
        view.pid = (long)segment.header->pid;
        view.alive = seg_owner_status(&segment) == VELO_OK;
        view.drops = control.flags & VELO_BCAST_DROP;
        view.depth_slots = control.depth_slots;
        view.msg_bytes_max = control.msg_bytes_max;
        view.readers_max = segment.shape.conns_max;
        view.msgs = control.tail - control.depth_slots;
        count_readers(&view, &segment, &control);
        status = walk->each(walk->arg, &view);
    }
    velo_inspect_unmap(&segment);
    return status;
}

int velo_inspect_rings(const char *domain,
                       int (*each)(void *arg, const struct velo_ring_view *view), void *arg)
{
    struct walk walk = {.each = each, .arg = arg};
    struct seg_domain where = {0};
    int status = bcast_domain(&where, domain, NULL);
    return status ? status : velo_inspect_paths(&where, look_at_file, &walk);
}
