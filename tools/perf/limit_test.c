/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the bare copies between two processes: they check by themselves what came. */
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
static const size_t message_sizes_bytes[] = {8, 24, 56, 57, 64, 256, 1000, 4096};
#define MESSAGE_SIZES (sizeof message_sizes_bytes / sizeof message_sizes_bytes[0])
#define MESSAGE_WAYS 16u /* All combinations. */
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
        double half_rtt_ns = limit_pipe_half_rtt_ns(&limit, sizes_bytes[i], 3, i % 2 == 1);
        if (half_rtt_ns <= 0) {
            rank_fail(EXIT_FAILED, "%zu bytes took %g ns", sizes_bytes[i], half_rtt_ns);
        }
    }
    for (unsigned i = 0; i < MESSAGE_SIZES * MESSAGE_WAYS; i++) {
        size_t size_bytes = message_sizes_bytes[i / MESSAGE_WAYS];
        enum limit_message_way way = i % MESSAGE_WAYS;
        if (limit_message_half_rtt_ns(&limit, size_bytes, 100, way) <= 0 ||
            limit_message_msgs_per_s(&limit, size_bytes, 1000, way) <= 0) {
            rank_fail(EXIT_FAILED, "messages of %zu bytes took no time", size_bytes);
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
