/* SPDX-License-Identifier: Apache-2.0 */
/* Ends a measurement that has failed. */
#ifndef VELO_BENCH_FAIL_H
#define VELO_BENCH_FAIL_H

/* Exit codes; the front end in tools/ knows them. */
enum exit_code {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_VERIFY = 3, /* A payload was not what its sender wrote. */
    EXIT_INTERRUPTED = 130,
};

/* End the run, in all of its processes, with a sentence. Any thread of any rank. */
_Noreturn void rank_fail(int exit_code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
