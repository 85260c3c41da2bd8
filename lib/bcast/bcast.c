/* SPDX-License-Identifier: Apache-2.0 */
/* Rings: attributes, and the life of the memory. */
#include "bcast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/cancel.h"
#include "../base/copy.h"
#include "../base/fork.h"
#include "../base/sized.h"
#include "../shm/memory.h"
#include "../shm/placement.h"

#define DOMAIN_SUFFIX "+bcast"
#define DEPTH_SLOTS_DEFAULT 256
#define MSG_BYTES_DEFAULT 4096
#define DATA_BYTES_DEFAULT (64u << 10)
#define PAGE_BYTES 4096u
/* The smallest rings of connections there are; they take no memory. */
#define UNUSED_DEPTH 8
#define UNUSED_DATA 16384

static size_t page_align(size_t at) { return (at + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1); }

static size_t control_bytes(void) { return page_align(sizeof(struct bcast_control)); }

static size_t messages_bytes(const struct bcast_map *map)
{
    return page_align(map->depth * sizeof(struct bcast_slot) + map->data_bytes);
}

static off_t control_at(const struct segment *segment)
{
    return (off_t)page_align(segment->shape.total_bytes);
}

static bool is_power_of_two(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

/* ---- attributes ------------------------------------------------------------------------------ */

static bool sizes_fit(uint64_t depth_slots, uint64_t msg_bytes_max, uint64_t data_bytes)
{
    return is_power_of_two(depth_slots) && depth_slots >= 8 && depth_slots <= 16384 &&
           msg_bytes_max >= 1 && msg_bytes_max <= VELO_BCAST_MSG_BYTES_MAX &&
           is_power_of_two(data_bytes) && data_bytes >= 2 * msg_bytes_max && data_bytes >= 1024 &&
           data_bytes <= BCAST_DATA_BYTES_MAX;
}

static void set_defaults(struct velo_bcast_attr *attr)
{
    if (!attr->depth_slots)
        attr->depth_slots = DEPTH_SLOTS_DEFAULT;
    if (!attr->msg_bytes_max)
        attr->msg_bytes_max = MSG_BYTES_DEFAULT;
    if (!attr->readers_max)
        attr->readers_max = VELO_BCAST_READERS_MAX;
    if (!attr->data_bytes)
        for (attr->data_bytes = DATA_BYTES_DEFAULT;
             attr->data_bytes < BCAST_DATA_BYTES_MAX && attr->data_bytes / 4 < attr->msg_bytes_max;)
            attr->data_bytes *= 2;
}

int bcast_domain(struct seg_domain *domain, const char *name, const char *group)
{
    int status = domain_init(domain, name, group);
    if (status == VELO_OK)
        memcpy(domain->name + strlen(domain->name), DOMAIN_SUFFIX, sizeof DOMAIN_SUFFIX);
    return status;
}

int bcast_attr(struct velo_bcast_attr *attr, const struct velo_bcast_attr *given,
               struct seg_domain *domain)
{
    static const struct velo_bcast_attr defaults = VELO_BCAST_ATTR_INIT;
    int status = sized_attr(attr, sizeof *attr, given, &defaults, "VELO_BCAST_ATTR_INIT");
    if (status)
        return status;
    set_defaults(attr);
    if (attr->node < 0 || attr->node >= (int)VELO_NODES || attr->vpid < 0 ||
        attr->vpid >= (int)VELO_VPIDS)
        return velo_fail(VELO_ERR_ARG, "the ring's id is %d.%d; give a node and a vpid of 0 to 255",
                         attr->node, attr->vpid);
    if (attr->flags & ~(uint32_t)VELO_BCAST_DROP)
        return velo_fail(VELO_ERR_ARG, "flags is %#x; give those of enum velo_bcast_flag",
                         attr->flags);
    if (attr->readers_max > VELO_BCAST_READERS_MAX)
        return velo_fail(VELO_ERR_ARG, "readers_max is %u; give 1 to %u", attr->readers_max,
                         VELO_BCAST_READERS_MAX);
    if (!sizes_fit(attr->depth_slots, attr->msg_bytes_max, attr->data_bytes))
        return velo_fail(
            VELO_ERR_ARG,
            "depth_slots %u, msg_bytes_max %zu and data_bytes %zu: give a power of two "
            "from 8 to 16384, 1 to 256 MiB, and a power of two that is at least twice "
            "msg_bytes_max and 1024",
            attr->depth_slots, attr->msg_bytes_max, attr->data_bytes);
    return bcast_domain(domain, attr->domain, attr->group);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int map_parts(struct bcast_map *map, int protection)
{
    int fd = map->segment->fd;
    off_t at = control_at(map->segment);
    void *control = mmap(NULL, control_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
    void *slots =
        mmap(NULL, messages_bytes(map), protection, MAP_SHARED, fd, at + (off_t)control_bytes());
    map->control = control == MAP_FAILED ? NULL : control;
    map->slots = slots == MAP_FAILED ? NULL : slots;
    if (!map->control || !map->slots) {
        (void)velo_fail(VELO_ERR_NO_MEMORY, "no memory to map %s", map->segment->path);
        return VELO_ERR_NO_MEMORY;
    }
    map->data = (char *)(map->slots + map->depth);
    return VELO_OK;
}

void bcast_unmap(struct bcast_map *map)
{
    if (map->control)
        munmap(map->control, control_bytes());
    if (map->slots)
        munmap(map->slots, messages_bytes(map));
    if (map->segment)
        seg_put(map->segment);
}

void bcast_barrier(const struct bcast_map *map)
{
    if (map->fenced)
        order_full_fence(); /* The other side has one, too. */
    else
        wait_barrier_all();
}

static int map_create(struct bcast_map *map, const struct velo_bcast_attr *attr)
{
    map->depth = attr->depth_slots;
    map->data_bytes = attr->data_bytes;
    map->msg_bytes_max = (uint32_t)attr->msg_bytes_max;
    map->drops = attr->flags & VELO_BCAST_DROP;
    int status = seg_allocate_at(map->segment, control_at(map->segment),
                                 control_bytes() + messages_bytes(map));
    if (status == VELO_OK)
        status = map_parts(map, PROT_READ | PROT_WRITE);
    if (status)
        return status;
    placement_here(map->slots, messages_bytes(map));
    struct bcast_control *control = map->control;
    control->depth_slots = attr->depth_slots;
    control->flags = attr->flags;
    control->msg_bytes_max = (uint32_t)attr->msg_bytes_max;
    control->data_bytes = (uint32_t)attr->data_bytes;
    for (uint64_t i = 0; i < map->depth; i++)
        map->slots[i].header = i + 1;
    control->tail = map->depth;
    order_publish_entry(&control->magic, BCAST_MAGIC);
    return VELO_OK;
}

bool bcast_control_read(const struct segment *segment, struct bcast_control *control)
{
    return pread(segment->fd, control, sizeof *control, control_at(segment)) == sizeof *control &&
           control->magic == BCAST_MAGIC;
}

int bcast_map_open(struct bcast_map *map)
{
    struct bcast_control control;
    struct stat st;
    if (!bcast_control_read(map->segment, &control))
        return velo_fail(VELO_ERR_NO_PEER, "%s is still being opened", map->segment->path);
    map->depth = control.depth_slots;
    map->data_bytes = control.data_bytes;
    map->msg_bytes_max = control.msg_bytes_max;
    map->drops = control.flags & VELO_BCAST_DROP;
    if (!sizes_fit(map->depth, map->msg_bytes_max, map->data_bytes) ||
        map->segment->shape.conns_max > VELO_BCAST_READERS_MAX ||
        fstat(map->segment->fd, &st) != 0 ||
        st.st_size < control_at(map->segment) + (off_t)(control_bytes() + messages_bytes(map)))
        return velo_fail(VELO_ERR_CORRUPT, "%s has sizes that do not fit together; remove it",
                         map->segment->path);
    int status = map_parts(map, PROT_READ);
    if (status == VELO_OK)
        (void)order_read_entry(&map->control->magic); /* Acquire: all set before it is seen. */
    return status;
}

void bcast_wake(const struct bcast_map *map)
{
    order_take_asleep(&map->control->asleep);
    VELO_HOOK(HOOK_BCAST_TAKEN);
    wait_wake(&map->control->asleep);
}

/* ---- open and close -------------------------------------------------------------------------- */

static int open_writer(struct velo_bcast *bcast, const struct velo_bcast_attr *attr,
                       const struct seg_domain *domain)
{
    struct bcast_map *map = &bcast->map;
    struct seg_shape shape;
    map->fenced = !wait_join_barrier();
    map->id = VELO_ID(attr->node, attr->vpid);
    uint32_t flags = SEG_HAS_TAIL | SEG_HAS_NO_RINGS | (map->fenced ? SEG_NEEDS_FENCE : 0);
    int status = seg_shape_init(&shape, UNUSED_DEPTH, UNUSED_DATA, attr->readers_max);
    if (status == VELO_OK)
        status = seg_create(domain, map->id, &shape, flags, &map->segment);
    if (status)
        return status;
    status = map_create(map, attr);
    if (status) {
        seg_retire(map->segment);
        bcast_unmap(map);
        return status;
    }
    bcast->next = map->depth;
    bcast->limit = map->drops ? UINT64_MAX : bcast->next;
    bcast->data_limit = map->drops ? UINT64_MAX : 0;
    bcast->spin_max_ns = wait_spin_max_ns();
    return VELO_OK;
}

int velo_bcast_open(const struct velo_bcast_attr *given, struct velo_bcast **out)
{
    CANCEL_LATER();
    struct velo_bcast_attr attr = VELO_BCAST_ATTR_INIT;
    struct seg_domain domain = {0};
    if (!out)
        return velo_fail(VELO_ERR_ARG, "bcast is NULL");
    *out = NULL;
    int status = bcast_attr(&attr, given, &domain);
    if (status == VELO_OK)
        status = copy_configure(NULL);
    if (status)
        return status;
    struct velo_bcast *bcast =
        calloc(1, sizeof *bcast + attr.depth_slots * sizeof bcast->starts[0]);
    if (!bcast)
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory for a ring");
    bcast->process = fork_mark();
    status = open_writer(bcast, &attr, &domain);
    if (status)
        free(bcast);
    else
        *out = bcast;
    return status;
}

int velo_bcast_close(struct velo_bcast *bcast)
{
    CANCEL_LATER();
    if (!bcast || !fork_is_ours(bcast->process))
        return VELO_OK;
    GUARD_UNUSED(bcast, "a ring");
    seg_retire(bcast->map.segment);
    order_full_fence(); /* The state first: edge 14. */
    if (order_read_asleep(&bcast->map.control->asleep))
        bcast_wake(&bcast->map);
    bcast_unmap(&bcast->map);
    free(bcast);
    return VELO_OK;
}

velo_id_t velo_bcast_id(const struct velo_bcast *bcast) { return bcast->map.id; }
