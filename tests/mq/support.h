/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several queues in one process and one thread: each test decides who makes progress, and when.
 */
#ifndef VELO_MQ_SUPPORT_H
#define VELO_MQ_SUPPORT_H

#include <velo/mq.h>

#include "test.h"

#define NODES_MAX 8

/* A function of the C library that a test has for itself: velo's library calls it, too. */
#define INTERPOSED __attribute__((visibility("default")))

/* One port with its queues. */
struct node {
    struct velo_port *port;
    struct velo_rma *rma;
    struct velo_mq *mq;
    velo_id_t id;
};

/* Open vpid 0, 1, ... count-1 with these attributes (NULL: defaults), and RMA units if wanted. */
void nodes_open(struct node *nodes, int count, const struct velo_mq_attr *attr, bool with_rma);
void nodes_close(struct node *nodes, int count);
/* Open one with a ring of its own size. */
void node_open(struct node *node, int vpid, uint32_t depth_slots, uint32_t data_bytes,
               const struct velo_mq_attr *attr, bool with_rma);
void node_close(struct node *node);

struct velo_mq_peer *node_connect(struct node *node, velo_id_t id);
struct velo_mq_counters node_counters(struct node *node);

/* Make progress everywhere until nobody has had anything to do for a few rounds. */
void nodes_settle(struct node *nodes, int count);
/* Make progress everywhere until the request is done. */
void nodes_finish(struct node *nodes, int count, const struct velo_mq_request *request);

#endif
