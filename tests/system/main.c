/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "run.h"

static const char usage[] =
    "usage: velo-system [options]\n"
    "\n"
    "Runs a whole system of processes that open ports, connect, send, match, put, get, die, start\n"
    "again and come back, as a seed decides, and holds everything against a model. The same seed "
    "and\n"
    "options give the same run, step by step.\n"
    "\n"
    "  --seed N         the first seed (default 1); \"time\" takes it from the clock\n"
    "  --seeds N        how many of them, one after the other (default 1)\n"
    "  --seconds S      go on with the next seed until so long has gone by\n"
    "  --steps N        steps of each (default 2000)\n"
    "  --only FAMILY    only messages (velo.h), queues (mq.h), memory (rma.h) or edges (signals,\n"
    "                   forks and the like, beside the others); may be repeated\n"
    "  --without STEP   leave steps of this name out; may be repeated (a wrong one lists them)\n"
    "  --calm           no port closes and nobody dies\n"
    "  --twice          run each seed twice and compare\n"
    "  --verbose        tell every step\n"
    "  --help           this text\n";

static unsigned family_of(const char *name)
{
    if (strcmp(name, "messages") == 0)
        return MESSAGES;
    if (strcmp(name, "queues") == 0)
        return QUEUES;
    if (strcmp(name, "memory") == 0)
        return MEMORY;
    if (strcmp(name, "edges") == 0)
        return EDGES;
    fprintf(stderr, "velo-system: --only takes messages, queues, memory or edges, not %s\n", name);
    exit(2);
}

static uint64_t number_of(const char *option, const char *text)
{
    char *end = NULL;
    uint64_t number = strtoull(text, &end, 0);

    if (end == text || *end != '\0' || *text == '-') {
        fprintf(stderr, "velo-system: --%s takes a number, not %s\n", option, text);
        exit(2);
    }
    return number;
}

static bool is_step(const char *name)
{
    static const struct action *const all[] = {message_actions, queue_actions, memory_actions,
                                               edge_actions};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        for (const struct action *action = all[i]; action->name != NULL; action++)
            if (strcmp(action->name, name) == 0)
                return true;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        for (const struct action *action = all[i]; action->name != NULL; action++)
            fprintf(stderr, "%s\n", action->name);
    return false;
}

static void leave_out(struct options *options, const char *name)
{
    if (!is_step(name) || options->without_len == WITHOUT_MAX) {
        fprintf(stderr, "velo-system: --without takes up to %d of these, not %s\n", WITHOUT_MAX,
                name);
        exit(2);
    }
    options->without[options->without_len++] = name;
}

static void read_options(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"seed", required_argument, NULL, 's'},
        {"seeds", required_argument, NULL, 'n'},
        {"seconds", required_argument, NULL, 't'},
        {"steps", required_argument, NULL, 'c'},
        {"only", required_argument, NULL, 'o'},
        {"calm", no_argument, NULL, 'q'},
        {"without", required_argument, NULL, 'w'},
        {"twice", no_argument, NULL, '2'},
        {"verbose", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option, index = 0;

    while ((option = getopt_long(argc, argv, "", known, &index)) != -1) {
        switch (option) {
        case 's':
            options->seed =
                strcmp(optarg, "time") == 0 ? (uint64_t)time(NULL) : number_of("seed", optarg);
            break;
        case 'n':
            options->seeds = number_of("seeds", optarg);
            break;
        case 't':
            options->seconds = (double)number_of("seconds", optarg);
            break;
        case 'c':
            options->steps = (uint32_t)number_of("steps", optarg);
            break;
        case 'o':
            options->families |= family_of(optarg);
            break;
        case 'w':
            leave_out(options, optarg);
            break;
        case 'q':
            options->is_calm = true;
            break;
        case '2':
            options->is_twice = true;
            break;
        case 'v':
            options->is_verbose = true;
            break;
        default:
            fputs(usage, option == 'h' ? stdout : stderr);
            exit(option == 'h' ? 0 : 2);
        }
    }
    if (options->families == 0)
        options->families = ALL;
}

static void run_seed(const struct options *options, uint64_t seed)
{
    run_once(options, seed);
    uint64_t before = run.digest;
    if (!options->is_twice)
        return;
    run_once(options, seed);
    if (run.digest != before) {
        fprintf(stderr, "velo-system: seed %llu gives another run the second time\n",
                (unsigned long long)seed);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    struct options options = {.seed = 1, .seeds = 1, .steps = 2000};
    int64_t start_ns = test_now_ns();
    uint64_t count = 0;
    double seconds = 0;

    read_options(argc, argv, &options);
    if (options.steps == 0 || (options.seeds == 0 && options.seconds == 0)) {
        fprintf(stderr, "velo-system: no steps, or no seeds, would check nothing\n");
        return 2;
    }
    printf("velo-system: seeds from %llu\n", (unsigned long long)options.seed);
    for (; options.seconds > 0 ? seconds < options.seconds : count < options.seeds; count++) {
        run_seed(&options, options.seed + count);
        seconds = (double)(test_now_ns() - start_ns) / 1e9;
    }
    printf("velo-system: %llu seeds held in %.1f s: %llu steps, %llu deaths, %llu messages sent, "
           "%llu received, %llu operations on memory\n",
           (unsigned long long)count, seconds, (unsigned long long)count * options.steps,
           (unsigned long long)run.deaths, (unsigned long long)run.messages,
           (unsigned long long)run.receives, (unsigned long long)run.operations);
    return 0;
}
