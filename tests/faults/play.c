/* SPDX-License-Identifier: Apache-2.0 */
#include "play.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FAILED = 3, WRONG = 4 };

int64_t patience_ns = INT64_C(10000000000);
unsigned char data[DATA_BYTES];

static unsigned descriptors_before;

static unsigned descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    unsigned count = 0;
    while (folder && readdir(folder))
        count++;
    if (folder)
        (void)closedir(folder);
    return count;
}

/* A process keeps the socket that it rings doorbells with. */
static void close_and_end(int status)
{
    close_all();
    unsigned left = descriptors();
    if (left > descriptors_before + 1) {
        (void)fprintf(stderr, "wrong: %u descriptors are left\n", left - descriptors_before);
        status = WRONG;
    }
    exit(status);
}

void give_up(const char *call, const char *status, const char *more)
{
    (void)fprintf(stderr, "%s: %s\n%s\n", call, status, more);
    close_and_end(FAILED);
    abort();
}

void expect(bool is_right, const char *what)
{
    if (is_right)
        return;
    (void)fprintf(stderr, "wrong: %s\n", what);
    close_all();
    exit(WRONG);
}

int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void expect_before(int64_t end_ns, const char *what)
{
    if (now_ns() > end_ns)
        give_up(what, "the other process does not answer", "");
}

int main(int argc, char **argv)
{
    const char *patience_ms = getenv("SCENE_PATIENCE_MS");
    if (patience_ms)
        patience_ns = strtoll(patience_ms, NULL, 10) * NS_PER_MS;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7 + i / 256);
    descriptors_before = descriptors();
    for (const struct scene *scene = scenes; argc == 3 && scene->name; scene++) {
        if (strcmp(argv[1], scene->name) != 0)
            continue;
        scene->play(argv[2][0] != '0');
        close_and_end(0);
    }
    (void)fprintf(stderr, "usage: %s SCENE 0|1; scenes:", argv[0]);
    for (const struct scene *scene = scenes; scene->name; scene++)
        (void)fprintf(stderr, " %s", scene->name);
    (void)fprintf(stderr, "\n");
    return 2;
}
