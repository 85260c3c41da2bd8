/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of boards: made, mapped once in each process, and given back. */
#include "native_map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../shm/memory.h"
#include "../shm/placement.h"

#define PAGE_BYTES 4096u
/* The smallest rings of connections there are; they take no memory. */
#define UNUSED_DEPTH 8
#define UNUSED_DATA 16384

static struct native_map *maps; /* After seg_acquire(). */
static pid_t maps_pid;          /* Whose they are: a child forgets its parent's. */

static size_t page_align(size_t at) { return (at + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1); }

static off_t control_at(const struct segment *segment)
{
    return (off_t)page_align(segment->shape.total_bytes);
}

static size_t control_bytes(void) { return page_align(sizeof(struct native_control)); }

static size_t pids_bytes(void) { return VELO_DIMMNET_PIDS_MAX * sizeof(uint64_t); }

static size_t map_bytes(uint32_t processes, uint64_t sodimm_words)
{
    return control_bytes() + pids_bytes() +
           (processes * (size_t)NATIVE_MEMORY_WORDS + sodimm_words) * sizeof(uint64_t);
}

static struct native_map **list_of_maps(void)
{
    if (maps_pid != getpid()) {
        maps = NULL;
        maps_pid = getpid();
    }
    return &maps;
}

static int map_tail(struct native_map *map)
{
    map->map_bytes = map_bytes(map->processes, map->sodimm_words);
    char *base = mmap(NULL, map->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, map->segment->fd,
                      control_at(map->segment));
    if (base == MAP_FAILED)
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory to map %s", map->segment->path);
    map->control = (struct native_control *)(void *)base;
    map->pids = (uint64_t *)(void *)(base + control_bytes());
    map->memories = map->pids + VELO_DIMMNET_PIDS_MAX;
    map->sodimm = map->memories + (size_t)map->processes * NATIVE_MEMORY_WORDS;
    return VELO_OK;
}

static void drop_map(struct native_map *map)
{
    if (map->control)
        munmap(map->control, map->map_bytes);
    if (map->segment)
        seg_put(map->segment);
    free(map);
}

/* From here on this process finds the map when it opens the board. */
static void keep_map(struct native_map *map)
{
    seg_acquire();
    map->next = *list_of_maps();
    maps = map;
    seg_release();
}

void native_map_put(struct native_map *map)
{
    seg_acquire();
    bool is_last = --map->refs == 0;
    if (is_last)
        for (struct native_map **link = list_of_maps(); *link; link = &(*link)->next)
            if (*link == map) {
                *link = map->next;
                break;
            }
    seg_release();
    if (is_last)
        drop_map(map);
}

static struct native_map *find_map(const struct segment *segment)
{
    seg_acquire();
    struct native_map *map = *list_of_maps();
    while (map && map->segment != segment)
        map = map->next;
    if (map)
        map->refs++;
    seg_release();
    return map;
}

int native_map_status(const struct native_map *map)
{
    uint64_t state = order_read_entry(&map->segment->header->state);
    return likely(state == SEG_OPEN) ? VELO_OK
           : state == SEG_CLOSED     ? VELO_ERR_PEER_CLOSED
                                     : VELO_ERR_PEER_DEAD;
}

/* ---- make ------------------------------------------------------------------------------------ */

static int fill_in(struct native_map *map)
{
    int status = seg_allocate_at(map->segment, control_at(map->segment),
                                 map_bytes(map->processes, map->sodimm_words));
    if (status == VELO_ERR_NO_SPACE)
        return velo_fail(status,
                         "no room for a board of %llu bytes in %s; give a smaller sodimm_bytes, "
                         "clean or enlarge that file system, or set VELO_SHM_DIR",
                         (unsigned long long)map->sodimm_words * sizeof(uint64_t),
                         map->segment->path);
    if (status == VELO_OK)
        status = map_tail(map);
    if (status)
        return status;
    placement_here(map->control, map->map_bytes);
    struct native_control *control = map->control;
    control->spec_hash = VELO_DIMMNET_SPEC_HASH;
    control->lid = map->lid;
    control->processes = map->processes;
    control->sodimm_words = map->sodimm_words;
    return VELO_OK;
}

int native_map_create(const struct seg_domain *domain, uint32_t lid, uint32_t processes,
                      uint64_t sodimm_bytes, struct native_map **out)
{
    struct seg_shape shape;
    struct native_map *map = calloc(1, sizeof *map);
    if (!map)
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory for a board");
    map->lid = lid;
    map->processes = processes;
    map->sodimm_words = sodimm_bytes / sizeof(uint64_t);
    int status = seg_shape_init(&shape, UNUSED_DEPTH, UNUSED_DATA, VELO_DIMMNET_PROCESSES_MAX);
    if (status == VELO_OK)
        status = seg_create(domain, lid, &shape, SEG_HAS_TAIL | SEG_HAS_NO_RINGS, &map->segment);
    if (status == VELO_OK) {
        status = fill_in(map);
        if (status)
            seg_retire(map->segment);
    }
    if (status) {
        drop_map(map);
        return status;
    }
    map->refs = 1;
    *out = map;
    return VELO_OK;
}

void native_map_show(struct native_map *map)
{
    keep_map(map);
    order_publish_entry(&map->control->magic, NATIVE_MAGIC);
}

/* ---- map ------------------------------------------------------------------------------------- */

static int read_sizes(struct native_map *map)
{
    struct native_control control;
    struct stat st;
    /* Read, not mapped: the file may end before it. */
    if (pread(map->segment->fd, &control, sizeof control, control_at(map->segment)) !=
            sizeof control ||
        control.magic != NATIVE_MAGIC)
        return velo_fail(VELO_ERR_NO_PEER, "%s is still being made", map->segment->path);
    if (control.spec_hash != VELO_DIMMNET_SPEC_HASH)
        return velo_fail(VELO_ERR_VERSION,
                         "%s was made with another spec/dimmnet.toml; build both sides from the "
                         "same release",
                         map->segment->path);
    map->processes = (uint32_t)control.processes;
    map->sodimm_words = control.sodimm_words;
    if (map->lid != control.lid || control.processes < 1 ||
        control.processes > VELO_DIMMNET_PROCESSES_MAX || map->sodimm_words > UINT32_MAX ||
        fstat(map->segment->fd, &st) != 0 ||
        st.st_size < control_at(map->segment) + (off_t)map_bytes(map->processes, map->sodimm_words))
        return velo_fail(VELO_ERR_CORRUPT, "%s has sizes that do not fit together; remove it",
                         map->segment->path);
    return VELO_OK;
}

int native_map_open(const struct seg_domain *domain, uint32_t lid, struct native_map **out)
{
    struct segment *segment;
    int status = seg_open(domain, lid, &segment);
    if (status == VELO_ERR_PEER_DEAD)
        return velo_fail(status, "the process that made board %u has ended; make it anew", lid);
    if (status == VELO_ERR_NO_PEER)
        return velo_fail(status, "there is no board %u in domain %s; make it, or wait for it", lid,
                         domain->name);
    if (status)
        return status;
    struct native_map *map = find_map(segment);
    if (map) {
        seg_file_drop(segment);
        seg_put(segment);
        *out = map;
        return VELO_OK;
    }
    map = calloc(1, sizeof *map);
    if (!map) {
        seg_file_drop(segment);
        seg_put(segment);
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory to map a board");
    }
    map->segment = segment;
    map->lid = lid;
    status = read_sizes(map);
    if (status == VELO_OK)
        status = map_tail(map);
    seg_file_drop(segment);
    if (status) {
        drop_map(map);
        return status;
    }
    (void)order_read_entry(&map->control->magic); /* Acquire: all set before it is seen. */
    map->refs = 1;
    keep_map(map);
    *out = map;
    return VELO_OK;
}

/* ---- processes ------------------------------------------------------------------------------- */

static bool is_claim(const struct native_map *map, uint64_t entry)
{
    return entry_state(entry) != ENTRY_FREE && life_goes_on(map->segment, entry_generation(entry));
}

bool native_map_is_claimed(const struct native_map *map, uint32_t wid)
{
    return is_claim(map, order_read_entry(&map->segment->entries[wid]));
}

static bool claim_process(const struct native_map *map, uint32_t wid, uint32_t generation)
{
    uint64_t *at = &map->segment->entries[wid];
    uint64_t entry = order_read_entry(at);
    return !is_claim(map, entry) &&
           order_claim_entry(at, entry, entry_pack(ENTRY_READY, 0, generation));
}

void native_map_unclaim(const struct native_map *map, const struct native_claim *claim)
{
    order_publish_entry(&map->segment->entries[claim->wid], entry_pack(ENTRY_FREE, 0, 0));
    life_end(map->segment, claim->generation);
}

int native_map_claim(const struct native_map *map, int wid, struct native_claim *claim)
{
    uint32_t first = wid < 0 ? 0 : (uint32_t)wid;
    uint32_t end = wid < 0 ? map->processes : first + 1;
    if (end > map->processes)
        return velo_fail(VELO_ERR_ARG, "board %u has %u processes; give a WID below that", map->lid,
                         map->processes);
    int status = life_begin(map->segment, &claim->generation);
    if (status)
        return status;
    for (claim->wid = first; claim->wid < end; claim->wid++)
        if (claim_process(map, claim->wid, claim->generation)) {
            VELO_HOOK(HOOK_DIMMNET_CLAIMED);
            return VELO_OK;
        }
    life_end(map->segment, claim->generation);
    return wid < 0 ? velo_fail(VELO_ERR_FULL,
                               "all %u processes of board %u are open; make it with more",
                               map->processes, map->lid)
                   : velo_fail(VELO_ERR_IN_USE,
                               "process %d of board %u is open in a live process; choose another",
                               wid, map->lid);
}
