/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of scenes share: PROGRAM SCENE ROLE, with role 0 or 1; two processes play a
 * scene.
 *
 * Exit status: 0 all went well; 3 a call failed, which it says in one line of its own and one of
 * the library, and everything was closed; 4 what arrived is not what was sent, or a descriptor is
 * left. $SCENE_PATIENCE_MS is how long a process waits for the other one.
 */
#ifndef VELO_TESTS_FAULTS_PLAY_H
#define VELO_TESTS_FAULTS_PLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NS_PER_MS 1000000
#define DATA_BYTES (1 << 20)

struct scene {
    const char *name;
    void (*play)(int role);
};

/* Of the program: its scenes, up to one without a name, and what closes all that is open. */
extern const struct scene scenes[];
void close_all(void);

extern int64_t patience_ns;
extern unsigned char data[DATA_BYTES];

int64_t now_ns(void);
/* Once that is past, the other process does not answer. */
void expect_before(int64_t end_ns, const char *what);
/* A call has failed: say so, close everything, end. `status` and `more` are words. */
_Noreturn void give_up(const char *call, const char *status, const char *more);
/* End with 4 unless that is so. */
void expect(bool is_right, const char *what);

#endif
