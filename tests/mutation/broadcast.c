/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread writes to a short ring that pushes back; two others read, by copies and in place
 * (edges 11 and 12).
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <velo/bcast.h>

#include "race.h"

#define READERS 2
#define MESSAGES 3000
#define LEN_MAX 300

static size_t length_of(unsigned n) { return n % 5 == 4 ? LEN_MAX : n % 48; }

static void *read_all(void *arg)
{
    struct velo_bcast_reader *reader = arg;
    char payload[LEN_MAX];
    struct velo_msg msg;
    for (unsigned n = 0; n < MESSAGES; n++) {
        if (n % 2) {
            check(velo_bcast_recv(reader, payload, sizeof payload, &msg, VELO_FOREVER), "recv");
        } else {
            check(velo_bcast_peek(reader, &msg, VELO_FOREVER), "peek");
            memcpy(payload, msg.data, msg.len_bytes);
            check(velo_bcast_release(reader), "release");
        }
        for (uint32_t i = 0; i < msg.len_bytes; i++) {
            if ((uint8_t)payload[i] != (uint8_t)n) {
                fprintf(stderr, "message %u of the ring is damaged at byte %u\n", n, i);
                exit(1);
            }
        }
    }
    return NULL;
}

static void write_all(struct velo_bcast *ring)
{
    char payload[LEN_MAX];
    for (unsigned n = 0; n < MESSAGES; n++) {
        size_t len_bytes = length_of(n);
        void *room;
        memset(payload, (int)(n & 0xff), sizeof payload);
        if (n % 3) {
            check(velo_bcast_send(ring, payload, len_bytes, 0, VELO_FOREVER), "velo_bcast_send");
            continue;
        }
        check(velo_bcast_reserve(ring, len_bytes, &room, VELO_FOREVER), "velo_bcast_reserve");
        memcpy(room, payload, len_bytes);
        check(velo_bcast_commit(ring, len_bytes, 0), "velo_bcast_commit");
    }
}

void race_broadcast(const char *domain)
{
    struct velo_bcast_attr attr = VELO_BCAST_ATTR_INIT;
    struct velo_bcast *ring;
    struct velo_bcast_reader *readers[READERS];
    pthread_t threads[READERS];
    attr.domain = domain;
    attr.depth_slots = 8;
    attr.msg_bytes_max = LEN_MAX;
    attr.data_bytes = 1024;
    race_map_once(true);
    check(velo_bcast_open(&attr, &ring), "velo_bcast_open");
    for (int i = 0; i < READERS; i++)
        check(velo_bcast_join(&attr, &readers[i], VELO_FOREVER), "velo_bcast_join");
    for (int i = 0; i < READERS; i++)
        pthread_create(&threads[i], NULL, read_all, readers[i]);
    write_all(ring);
    for (int i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < READERS; i++)
        check(velo_bcast_leave(readers[i]), "velo_bcast_leave");
    check(velo_bcast_close(ring), "velo_bcast_close");
    race_map_once(false);
}
