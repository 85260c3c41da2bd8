/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The world of world.h, driven by random inputs from a seed: needs no fuzzer, and finds the same
 * things more slowly.
 *
 * Usage: velo-fuzz-campaign [inputs [seed [only]]]    only: play nothing but this input, to debug
 * it velo-fuzz-campaign -r FILE...                play files, such as libFuzzer's findings
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "world.h"

#define INPUTS_DEFAULT 12000
#define INPUT_BYTES_MAX 600

struct progress {
    uint64_t input;
    struct world_tally tally;
};

static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void play_random(uint64_t seed, uint64_t number, struct world_tally *tally)
{
    uint8_t input[INPUT_BYTES_MAX];
    uint64_t state = seed * UINT64_C(1000003) + number;
    size_t len_bytes = random_next(&state) % (INPUT_BYTES_MAX + 1);
    for (size_t i = 0; i < len_bytes; i++)
        input[i] = (uint8_t)(random_next(&state) >> 32);
    /* Half of the inputs leave the header page and the table alone, so that they check more. */
    if (number % 2)
        for (size_t i = 0; i + 1 < len_bytes; i++)
            if (input[i] % 16 == 6 || input[i] % 16 == 7)
                input[i + 1] |= 2;
    world_play(input, len_bytes, tally);
}

static int play_file(const char *path)
{
    static uint8_t input[1 << 20];
    struct world_tally tally = {0};
    FILE *file = fopen(path, "re");
    if (!file) {
        (void)fprintf(stderr, "cannot open %s\n", path);
        return 1;
    }
    size_t len_bytes = fread(input, 1, sizeof input, file);
    (void)fclose(file);
    world_play(input, len_bytes, &tally);
    return 0;
}

/* A campaign that never met a case says nothing about it. */
static int check_tally(const struct world_tally *t)
{
    const struct {
        const char *what;
        uint64_t count;
    } all[] = {
        {"honest messages arrived", t->honest},
        {"hostile messages arrived", t->hostile},
        {"messages were held in place", t->peeked},
        {"messages were too big for the buffer", t->too_big},
        {"slots were refused and counted", t->refused},
        {"senders were told VELO_ERR_CORRUPT", t->told},
        {"senders were told that the peer is gone", t->closed},
        {"sends found the ring full", t->again},
        {"tables came back whole", t->reused},
    };
    int missing = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        (void)printf("%10llu %s\n", (unsigned long long)all[i].count, all[i].what);
        missing |= all[i].count == 0;
    }
    if (missing)
        (void)printf("a case was never met: the campaign is too short, or the library misses it\n");
    return missing;
}

static int report(const struct progress *progress, int status, uint64_t inputs, uint64_t seed)
{
    if (status == 0) {
        (void)printf("%llu inputs of seed %llu\n", (unsigned long long)inputs,
                     (unsigned long long)seed);
        return check_tally(&progress->tally);
    }
    (void)printf("input %llu of seed %llu failed (%s %d); play it alone with:\n"
                 "    velo-fuzz-campaign 0 %llu %llu\n",
                 (unsigned long long)progress->input, (unsigned long long)seed,
                 WIFSIGNALED(status) ? "signal" : "exit status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
                 (unsigned long long)seed, (unsigned long long)progress->input);
    return 1;
}

int main(int argc, char **argv)
{
    uint64_t inputs = argc > 1 ? strtoull(argv[1], NULL, 0) : INPUTS_DEFAULT;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    if (argc > 2 && strcmp(argv[1], "-r") == 0) {
        int failed = 0;
        world_init();
        for (int i = 2; i < argc; i++)
            failed |= play_file(argv[i]);
        return failed;
    }
    if (argc > 3) {
        struct world_tally tally = {0};
        world_init();
        play_random(seed, strtoull(argv[3], NULL, 0), &tally);
        return 0;
    }
    if (inputs == 0) {
        (void)fprintf(stderr, "velo-fuzz-campaign: no inputs would check nothing\n");
        return 2;
    }
    /* In a child, so that somebody is left to say which input it was. */
    struct progress *progress =
        mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED)
        return 1;
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        world_init();
        for (; progress->input < inputs; progress->input++)
            play_random(seed, progress->input, &progress->tally);
        exit(0);
    }
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 1;
    world_clean_up_after(child);
    return report(progress, status, inputs, seed);
}
