/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory whose pages the node has looked up, all of them: it is told to forget one after the other,
 * which takes longer than the simulator waits for anything where nothing is under way.
 */
#include <stdlib.h>
#include <string.h>

#include "../mq/support.h"

#define PAGE_BYTES 4096u
#define PAGES 1024u
#define OFFSET 40u
#define TIMEOUT_NS (100 * TEST_MS)

TEST(memory_of_many_pages_is_withdrawn)
{
    static const struct velo_rma_stride one_each = {.block_bytes = 8,
                                                    .count = PAGES,
                                                    .local_stride_bytes = 8,
                                                    .remote_stride_bytes = PAGE_BYTES};
    static uint64_t words[PAGES];
    struct node nodes[2];
    struct velo_rma_peer *peer;
    struct velo_rma_mem *mem;
    unsigned char *memory = calloc(PAGES, PAGE_BYTES);

    CHECK(memory != NULL);
    for (uint64_t i = 0; i < PAGES; i++)
        words[i] = i + 1;
    nodes_open(nodes, 2, NULL, true);
    CHECK_OK(velo_rma_mem_register(nodes[1].rma, memory, (size_t)PAGES * PAGE_BYTES,
                                   VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY, &mem));
    CHECK_OK(velo_rma_connect(nodes[0].rma, nodes[1].id, &peer, TIMEOUT_NS));
    CHECK_OK(velo_rma_put_strided(peer, words, &one_each,
                                  velo_rma_place(velo_rma_mem_key(mem), OFFSET), 0, 0));
    CHECK_OK(velo_rma_flush(peer, TIMEOUT_NS));
    CHECK_OK(velo_rma_mem_deregister(mem, VELO_FOREVER));
    for (uint64_t i = 0; i < PAGES; i++)
        CHECK(memcmp(memory + i * PAGE_BYTES + OFFSET, &words[i], sizeof words[i]) == 0);
    CHECK_OK(velo_rma_disconnect(peer));
    nodes_close(nodes, 2);
    free(memory);
}
