/* SPDX-License-Identifier: Apache-2.0 */
/* A sparse matrix times a vector that another process owns: one list get fetches what is needed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <velo/dimmnet.h>

enum { ROWS = 64, EACH = 4, VECTOR = 4096, OWNER = 1, BLOCK = 64 };
static const int64_t patience_ns = INT64_C(5000000000);

static void check(int status, const char *call)
{
    if (status < VELO_OK) {
        fprintf(stderr, "%s: %s\n%s\n", call, velo_strerror(status), velo_last_error());
        exit(1);
    }
}

int main(void)
{
    struct velo_dimmnet_board_attr board_attr = VELO_DIMMNET_BOARD_ATTR_INIT;
    struct velo_dimmnet_attr attr = VELO_DIMMNET_ATTR_INIT;
    struct velo_dimmnet_board *board;
    struct velo_dimmnet *owner, *worker; /* Of a program of one process; else each opens its own. */
    char domain[32];
    snprintf(domain, sizeof domain, "sparse-%d", (int)getpid());
    board_attr.domain = attr.domain = domain;
    board_attr.lid = attr.lid = 1;
    check(velo_dimmnet_board_open(&board_attr, &board), "velo_dimmnet_board_open");
    check(velo_dimmnet_board_pid(board, OWNER, 1, 0), "velo_dimmnet_board_pid");
    check(velo_dimmnet_open(&attr, &owner, patience_ns), "velo_dimmnet_open");
    check(velo_dimmnet_open(&attr, &worker, patience_ns), "velo_dimmnet_open");

    /* The owner's vector: x[i] = 3 i, stored by its Write Windows into its SO-DIMM. */
    for (uint32_t at = 0; at < VECTOR; at += BLOCK) {
        struct velo_dimmnet_transfer store = {.len_words = BLOCK, .local_word = at};
        for (uint64_t i = 0; i < BLOCK; i++)
            velo_dimmnet_write_window(owner, 0)[i] = 3 * (at + i);
        check(velo_dimmnet_store(owner, &store), "velo_dimmnet_store");
        check(velo_dimmnet_quiet(owner, patience_ns), "velo_dimmnet_quiet");
    }
    /* The matrix has EACH ones in a row; their columns are the list, in the worker's LLCM. */
    uint32_t columns[ROWS * EACH];
    for (uint32_t i = 0; i < ROWS * EACH; i++)
        columns[i] = (i * 1009 + 17) % VECTOR;
    memcpy(velo_dimmnet_llcm(worker), columns, sizeof columns);
    struct velo_dimmnet_transfer get = {
        .pid = OWNER,
        .len_words = ROWS * EACH,
        .local_memory = VELO_DIMMNET_PREFETCH,
        .status = 1,
        .remote = {.access = VELO_DIMMNET_LIST, .element_words = 1}};
    check(velo_dimmnet_get(worker, &get), "velo_dimmnet_get");
    check(velo_dimmnet_wait(worker, NULL, patience_ns), "velo_dimmnet_wait");
    check(velo_dimmnet_refresh(worker, 0, ROWS * EACH), "velo_dimmnet_refresh");

    uint64_t sum = 0, expected = 0; /* Of all rows; row r has elements EACH r and those after. */
    for (uint32_t i = 0; i < ROWS * EACH; i++) {
        sum += velo_dimmnet_prefetch(worker)[i];
        expected += UINT64_C(3) * columns[i];
    }
    printf("%d rows by one command: %llu\n", ROWS, (unsigned long long)sum);
    check(velo_dimmnet_close(owner), "velo_dimmnet_close");
    check(velo_dimmnet_close(worker), "velo_dimmnet_close");
    check(velo_dimmnet_board_close(board), "velo_dimmnet_board_close");
    return sum == expected ? 0 : 1;
}
