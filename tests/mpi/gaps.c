/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages with gaps between their data, in a process that may take hardly any more memory: neither
 * side holds a packed copy of the whole.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define BLOCK 1000
#define STRIDE 1040
#define BLOCKS (48 * 1024)
#define ROOM_KB 12288 /* For rings, requests and pieces; a copy would be of 47 MiB. */

static int rank;
static unsigned char *sent, *received;
static MPI_Datatype type;

static _Noreturn void fail(const char *what)
{
    (void)fprintf(stderr, "rank %d: %s\n", rank, what);
    (void)MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

/* Let this process take no more private memory than that beside what it has. */
static void limit(long more_kb)
{
    char line[128];
    long data_kb = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "VmData:", 7) == 0)
            data_kb = strtol(line + 7, NULL, 10);
    if (file == NULL || data_kb < 0)
        fail("/proc/self/status does not say VmData");
    (void)fclose(file);
    rlim_t most_bytes = (rlim_t)(data_kb + more_kb) * 1024;
    if (setrlimit(RLIMIT_DATA, &(struct rlimit){most_bytes, most_bytes}) != 0)
        fail("setrlimit fails");
    void *copy = malloc((size_t)BLOCKS * BLOCK);
    if (copy != NULL)
        fail("the limit does not hold"); /* It would show nothing. */
}

static void prepare(int round)
{
    for (size_t i = 0; i < BLOCKS; i++)
        memset(sent + i * STRIDE, (int)(i + (size_t)round + (size_t)rank) & 0xff, BLOCK);
    memset(received, 0xee, (size_t)BLOCKS * STRIDE);
}

static void check(int round)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        const unsigned char *block = received + i * STRIDE;
        unsigned char wanted = (unsigned char)(i + (size_t)round + (size_t)(1 - rank));
        for (size_t j = 0; j < STRIDE; j++)
            if (block[j] != (j < BLOCK ? wanted : 0xee))
                fail("data is not where it belongs");
    }
}

static void one_after_the_other(void)
{
    if (rank == 0) {
        MPI_Send(sent, 1, type, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(received, 1, type, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(received, 1, type, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Ssend(sent, 1, type, 0, 1, MPI_COMM_WORLD);
    }
}

static void both_at_once(void)
{
    MPI_Request requests[2];
    MPI_Irecv(received, 1, type, 1 - rank, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(sent, 1, type, 1 - rank, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void found_by_a_probe(void)
{
    MPI_Message message;
    MPI_Request request;
    MPI_Isend(sent, 1, type, 1 - rank, 3, MPI_COMM_WORLD, &request);
    MPI_Mprobe(1 - rank, 3, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(received, 1, type, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    static void (*const ways[])(void) = {one_after_the_other, both_at_once, found_by_a_probe};
    int provided, round = 0;
    MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Type_create_hvector(BLOCKS, BLOCK, STRIDE, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    sent = malloc((size_t)BLOCKS * STRIDE);
    received = malloc((size_t)BLOCKS * STRIDE);
    if (sent == NULL || received == NULL)
        fail("no memory");
    prepare(0);
    MPI_Barrier(MPI_COMM_WORLD);
    limit(ROOM_KB);
    for (size_t way = 0; way < sizeof ways / sizeof ways[0]; way++) {
        for (int again = 0; again < 2; again++) {
            prepare(round);
            MPI_Barrier(MPI_COMM_WORLD);
            ways[way]();
            check(round++);
        }
    }
    MPI_Request requests[2];
    MPI_Recv_init(received, 1, type, 1 - rank, 4, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(sent, 1, type, 1 - rank, 4, MPI_COMM_WORLD, &requests[1]);
    for (int start = 0; start < 3; start++) {
        prepare(round);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check(round++);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Type_free(&type);
    free(sent);
    free(received);
    MPI_Finalize();
    return 0;
}
