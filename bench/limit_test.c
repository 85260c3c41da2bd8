/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the pipelined copy between two processes: it compares every byte by itself. */
#include "fail.h"
#include "limit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_S 30u

/* One chunk, a part of one, many, and more than the ring holds; both lengths of chunks, in turns.
 */
static const size_t sizes_bytes[] = {
    1, 4096, 16384, 16385, 65536, 131071, 131072, 131073, 600001, 16384, LIMIT_PIPE_BYTES_MAX};
#define SIZES (sizeof sizes_bytes / sizeof sizes_bytes[0])

void rank_fail(int exit_code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    _exit(exit_code);
}

static void run_side(struct limit_area *area, unsigned side)
{
    struct limit limit;
    alarm(WAIT_S); /* A side whose peer has failed would wait for ever. */
    limit_attach(&limit, area, side);
    for (unsigned i = 0; i < SIZES; i++) {
        double half_rtt_ns = limit_pipe_half_rtt_ns(&limit, sizes_bytes[i], 3);
        if (half_rtt_ns <= 0) {
            rank_fail(EXIT_FAILED, "%zu bytes took %g ns", sizes_bytes[i], half_rtt_ns);
        }
    }
    free(limit.local);
    free(limit.pipe_out);
    free(limit.pipe_in);
}

int main(void)
{
    struct limit_area *area = limit_area_new();
    int status = 0;
    if (!area) {
        rank_fail(EXIT_FAILED, "out of memory for the shared area");
    }
    pid_t child = fork();
    if (child < 0) {
        rank_fail(EXIT_FAILED, "cannot fork");
    }
    run_side(area, child == 0);
    if (child == 0) {
        return 0;
    }
    return waitpid(child, &status, 0) == child && status == 0 ? EXIT_OK : EXIT_FAILED;
}
