/* SPDX-License-Identifier: Apache-2.0 */
/* velo-clean: remove what dead processes left in shared memory, and print what was found. */
#include "json.h"
#include "shm/inspect.h"

#include <velo/velo.h>

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_USAGE 2

struct options {
    struct velo_clean clean;
    unsigned domains;
};

static const char doc[] =
    "Take away the segments that dead processes left, of all domains in which nobody lives; print "
    "one JSON object that says what was found in each domain, and what could not be removed."
    "\vExit code: 0 done, 1 failed, 2 usage.";

static const struct argp_option argp_options[] = {
    {"domain", 'd', "NAME", 0, "Only this domain, and where others in it live, too", 0},
    {"dry-run", 'n', NULL, 0, "Remove nothing", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case 'd':
        options->clean.domain = arg;
        return 0;
    case 'n':
        options->clean.removes = false;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s' is too much; name a domain with --domain", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int print_domain(void *arg, const struct velo_domain_view *view)
{
    struct options *options = arg;
    fputs(options->domains++ ? ",{\"domain\":" : "{\"domain\":", stdout);
    json_string(stdout, view->name);
    printf(",\"alive\":%u,\"dead\":%u,\"unknown\":%u,\"removable\":%u,\"removed\":%u,"
           "\"memory_bytes\":%llu,\"removable_bytes\":%llu,\"error\":",
           view->alive, view->dead, view->unknown, view->removable, view->removed,
           (unsigned long long)view->memory_bytes, (unsigned long long)view->removable_bytes);
    if (view->failed)
        json_string(stdout, velo_last_error());
    else
        fputs("null", stdout);
    fputc('}', stdout);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp argp = {argp_options, parse_option, NULL, doc, NULL, NULL, NULL};
    struct options options = {.clean.removes = true};
    argp_program_version = velo_version();
    argp_err_exit_status = EXIT_USAGE;
    error_t error = argp_parse(&argp, argc, argv, 0, NULL, &options);
    if (error) {
        fprintf(stderr, "velo-clean: %s\n", strerror(error));
        return EXIT_USAGE;
    }
    fputs("{\"domains\":[", stdout);
    int status = velo_clean(&options.clean, print_domain, &options);
    puts("]}");
    if (status != VELO_OK)
        fprintf(stderr, "velo-clean: %s\n", velo_last_error());
    return status == VELO_OK && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
