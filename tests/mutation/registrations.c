/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread fills memory, registers it, takes the registration back and fills the memory again;
 * another reads it in between (edges 8 and 10). They tell each other the key and the end of a round
 * by relaxed accesses, so that only the library orders the one after the other.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <velo/rma.h>

#include "race.h"

#define ROUNDS 100
#define BYTES 256

/* ---- one address for one word ---------------------------------------------------------------- */

/* Peers are processes, each with its own mapping of a table. In this program that would be two
 * addresses for one word, and the sanitizer goes by addresses: so a range of a file that is mapped
 * already is not mapped again. Only one thread runs while ranges are mapped and unmapped. */
#define MAPPINGS_MAX 64

static struct mapping {
    struct stat file;
    off_t offset;
    size_t len_bytes;
    void *at;
    unsigned users;
} mappings[MAPPINGS_MAX];
static bool maps_once;

void race_map_once(bool once) { maps_once = once; }

void *__real_mmap(void *at, size_t len_bytes, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t len_bytes);
void *__wrap_mmap(void *at, size_t len_bytes, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t len_bytes);

static bool is_same(const struct mapping *mapping, const struct stat *file, off_t offset,
                    size_t len_bytes)
{
    return mapping->users > 0 && mapping->file.st_dev == file->st_dev &&
           mapping->file.st_ino == file->st_ino && mapping->offset == offset &&
           mapping->len_bytes == len_bytes;
}

void *__wrap_mmap(void *at, size_t len_bytes, int protection, int flags, int fd, off_t offset)
{
    struct stat file;
    if (!maps_once || fd < 0 || fstat(fd, &file) != 0)
        return __real_mmap(at, len_bytes, protection, flags, fd, offset);
    struct mapping *unused = NULL;
    for (struct mapping *mapping = mappings; mapping < mappings + MAPPINGS_MAX; mapping++) {
        if (is_same(mapping, &file, offset, len_bytes)) {
            mapping->users++;
            return mapping->at;
        }
        if (mapping->users == 0)
            unused = mapping;
    }
    if (!unused)
        abort();
    *unused = (struct mapping){file, offset, len_bytes,
                               __real_mmap(at, len_bytes, protection, flags, fd, offset), 1};
    return unused->at;
}

int __wrap_munmap(void *at, size_t len_bytes)
{
    for (struct mapping *mapping = mappings; mapping < mappings + MAPPINGS_MAX; mapping++)
        if (mapping->users > 0 && mapping->at == at && --mapping->users > 0)
            return 0;
    return __real_munmap(at, len_bytes);
}

/* ---- the race -------------------------------------------------------------------------------- */

static velo_rma_key_t key_shown;
static int rounds_read;
static unsigned char memory[BYTES];

static void *own(void *arg)
{
    struct velo_rma *rma = arg;
    for (int round = 1; round <= ROUNDS; round++) {
        struct velo_rma_mem *mem;
        memset(memory, round, sizeof memory);
        check(velo_rma_mem_register(rma, memory, sizeof memory, VELO_RMA_RIGHT_READ,
                                    VELO_RMA_PEER_ANY, &mem),
              "velo_rma_mem_register");
        __atomic_store_n(&key_shown, velo_rma_mem_key(mem), __ATOMIC_RELAXED);
        while (__atomic_load_n(&rounds_read, __ATOMIC_RELAXED) < round)
            usleep(10);
        check(velo_rma_mem_deregister(mem, VELO_FOREVER), "velo_rma_mem_deregister");
    }
    return NULL;
}

static void *read_all(void *arg)
{
    struct velo_rma_peer *peer = arg;
    velo_rma_key_t key = 0;
    for (int round = 1; round <= ROUNDS; round++) {
        velo_rma_key_t last = key;
        unsigned char local[BYTES] = {0};
        while ((key = __atomic_load_n(&key_shown, __ATOMIC_RELAXED)) == last)
            usleep(10);
        check(velo_rma_get(peer, local, sizeof local, velo_rma_place(key, 0), 0, 0),
              "velo_rma_get");
        if (local[0] != round || local[BYTES - 1] != round) {
            fprintf(stderr, "round %d: what was read is that of round %d\n", round, local[0]);
            exit(1);
        }
        __atomic_store_n(&rounds_read, round, __ATOMIC_RELAXED);
    }
    return NULL;
}

void race_registrations(struct velo_port *owner, struct velo_port *requester)
{
    struct velo_rma *rma;
    struct velo_rma *other;
    struct velo_rma_peer *peer;
    pthread_t threads[2];
    race_map_once(true);
    check(velo_rma_open(owner, NULL, &rma), "velo_rma_open");
    check(velo_rma_open(requester, NULL, &other), "velo_rma_open");
    check(velo_rma_connect(other, velo_port_id(owner), &peer, VELO_FOREVER), "velo_rma_connect");
    pthread_create(&threads[0], NULL, own, rma);
    pthread_create(&threads[1], NULL, read_all, peer);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    check(velo_rma_disconnect(peer), "velo_rma_disconnect");
    check(velo_rma_close(other), "velo_rma_close");
    check(velo_rma_close(rma), "velo_rma_close");
    race_map_once(false);
}
