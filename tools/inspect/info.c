/* SPDX-License-Identifier: Apache-2.0 */
/* velo-info: the library, the machine, the ports and rings of a domain, as JSON or for people. */
#include "base/copy.h"
#include "bcast/inspect.h"
#include "clock.h"
#include "json.h"
#include "machine.h"
#include "mq/ways.h"
#include "shm/inspect.h"

#include <velo/mq.h>
#include <velo/velo.h>

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define EXIT_USAGE 2
#define CPUS_MAX 1024
#define DEFAULT_SHM_DIR "/dev/shm"

struct options {
    const char *domain;
    bool json;
    unsigned watch_ms;
};

/* The state of the walk over a domain's ports or rings. */
struct walk {
    const struct options *options;
    unsigned count;
};

/* --- command line ---------------------------------------------------------------------------- */

static const char doc[] =
    "Show the velo library, this machine, and the ports and rings that are open in a domain."
    "\vExit code: 0 done, 1 failed, 2 usage.";

enum key { KEY_WATCH_MS = 256 };

static const struct argp_option argp_options[] = {
    {"domain", 'd', "NAME", 0, "Domain to look at ($VELO_DOMAIN, else u<uid>)", 0},
    {"json", 'j', NULL, 0, "Print one JSON object on one line", 0},
    {"watch-ms", KEY_WATCH_MS, "N", 0, "Repeat a JSON line every N ms until killed", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    char *end;
    unsigned long value;
    switch (key) {
    case 'd':
        options->domain = arg;
        return 0;
    case 'j':
        options->json = true;
        return 0;
    case KEY_WATCH_MS:
        value = strtoul(arg, &end, 10);
        if (end == arg || *end || *arg == '-' || value < 1 || value > 3600000) {
            argp_error(state, "watch-ms '%s' is not a number from 1 to 3600000", arg);
        }
        options->watch_ms = (unsigned)value;
        options->json = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s' is too much; name a domain with --domain", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* --- library and machine --------------------------------------------------------------------- */

/* The map of transports to peers: see docs/reference/network.md. */
static const char *network(void)
{
    const char *map = getenv("VELO_NETWORK");
    return map && *map ? map : "shm";
}

static const char *shm_dir(void)
{
    const char *dir = getenv("VELO_SHM_DIR");
    return dir && *dir ? dir : DEFAULT_SHM_DIR;
}

static void print_cpus(const unsigned *cpus, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        printf("%s%u", i ? "," : "", cpus[i]);
    }
}

static void json_machine(void)
{
    char model[MACHINE_TEXT_BYTES];
    unsigned cpus[CPUS_MAX];
    struct statvfs shm;
    fputs("\"machine\":{\"cpu_model\":", stdout);
    json_string(stdout, machine_cpu_model(model));
    fputs(",\"cpus\":[", stdout);
    print_cpus(cpus, machine_cpus(cpus, CPUS_MAX));
    printf("],\"cache_line_bytes\":%ld,\"membarrier\":%s,\"shm_dir\":", machine_cache_line_bytes(),
           machine_has_membarrier() ? "true" : "false");
    json_string(stdout, shm_dir());
    fputs(",\"network\":", stdout);
    json_string(stdout, network());
    if (statvfs(shm_dir(), &shm) == 0) {
        printf(",\"shm_size_bytes\":%llu,\"shm_free_bytes\":%llu",
               (unsigned long long)shm.f_blocks * shm.f_frsize,
               (unsigned long long)shm.f_bavail * shm.f_frsize);
    } else {
        fputs(",\"shm_size_bytes\":null,\"shm_free_bytes\":null", stdout);
    }
    fputc('}', stdout);
}

static void json_library(const char *domain)
{
    fputs("\"engine\":\"native\",\"version\":", stdout);
    json_string(stdout, velo_version());
    printf(",\"abi\":%u,\"spec_hash\":\"%016llx\",\"time_ns\":%llu,\"domain\":", VELO_ABI_VERSION,
           (unsigned long long)VELO_SPEC_HASH, (unsigned long long)now_ns());
    json_string(stdout, domain);
    fputc(',', stdout);
}

static void text_library(const char *domain)
{
    char model[MACHINE_TEXT_BYTES];
    unsigned cpus[CPUS_MAX];
    struct statvfs shm;
    printf("engine      native\nversion     %s\nspec hash   %016llx\n", velo_version(),
           (unsigned long long)VELO_SPEC_HASH);
    printf("cpu         %s\ncores       ", machine_cpu_model(model));
    print_cpus(cpus, machine_cpus(cpus, CPUS_MAX));
    printf("\ncache line  %ld bytes\nmembarrier  %s\n", machine_cache_line_bytes(),
           machine_has_membarrier() ? "yes" : "no: senders fence each message");
    printf("network     %s\n", network());
    if (statvfs(shm_dir(), &shm) == 0) {
        printf("segments    %s, %llu of %llu MiB free\n", shm_dir(),
               (unsigned long long)shm.f_bavail * shm.f_frsize >> 20,
               (unsigned long long)shm.f_blocks * shm.f_frsize >> 20);
    }
    printf("domain      %s\n", domain);
}

/* --- copies ---------------------------------------------------------------------------------- */

/* What processes with this environment do. */
struct copies {
    struct copy_choice copy;
    struct mq_ways ways;
    bool is_attach_wanted;
};

static bool find_copies(struct copies *copies)
{
    const char *attach = getenv("VELO_RMA_ATTACH");
    copies->is_attach_wanted = !attach || strcmp(attach, "0") != 0;
    if (copy_configure(&copies->copy) == VELO_OK &&
        mq_ways_from_environment(&copies->ways) == VELO_OK) {
        return true;
    }
    fprintf(stderr, "velo-info: %s\n", velo_last_error());
    return false;
}

static const char *path_name(const struct copies *copies)
{
    bool fetches = copies->ways.path != VELO_MQ_PATH_COPY && copies->is_attach_wanted;
    return !fetches ? "copy" : copies->ways.measures ? "measured" : "get";
}

/* From which length on the way is the one of path_name(). */
static uint64_t path_bytes(const struct copies *copies)
{
    bool is_any = strcmp(path_name(copies), "copy") == 0 || copies->ways.path == VELO_MQ_PATH_GET;
    return is_any ? 0 : copies->ways.get_bytes;
}

/* Below long_bytes, copies go line by line. */
static void json_copies(const struct copies *copies)
{
    bool is_split = copies->copy.by != COPY_BY_LINES;
    fputs("\"copies\":{\"by\":", stdout);
    json_string(stdout, copy_name(copies->copy.by));
    if (is_split) {
        printf(",\"long_bytes\":%u", copies->copy.long_bytes);
    } else {
        fputs(",\"long_bytes\":null", stdout);
    }
    fputs(",\"reason\":", stdout);
    json_string(stdout, copies->copy.reason);
    fputs(",\"path\":", stdout);
    json_string(stdout, path_name(copies));
    printf(",\"path_bytes\":%llu},", (unsigned long long)path_bytes(copies));
}

static void text_copies(const struct copies *copies)
{
    if (copies->copy.by == COPY_BY_LINES) {
        printf("copies      lines (%s)\n", copies->copy.reason);
    } else {
        printf("copies      lines, from %u bytes on %s (%s)\n", copies->copy.long_bytes,
               copy_name(copies->copy.by), copies->copy.reason);
    }
    printf("messages    %s from %llu bytes on\n", path_name(copies),
           (unsigned long long)path_bytes(copies));
}

/* --- ports ----------------------------------------------------------------------------------- */

static void json_counters(const struct velo_port_counters *c)
{
    const struct {
        const char *name;
        uint64_t value;
    } fields[] = {
        {"rx_msgs", c->rx_msgs},           {"rx_bytes", c->rx_bytes},
        {"rx_doorbells", c->rx_doorbells}, {"rx_sleeps", c->rx_sleeps},
        {"rx_errors", c->rx_errors},       {"rx_conns", c->rx_conns},
        {"rx_reclaimed", c->rx_reclaimed}, {"tx_msgs", c->tx_msgs},
        {"tx_bytes", c->tx_bytes},         {"tx_again", c->tx_again},
        {"tx_sleeps", c->tx_sleeps},       {"tx_conns", c->tx_conns},
    };
    fputs("\"counters\":{", stdout);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        printf("%s\"%s\":%llu", i ? "," : "", fields[i].name, (unsigned long long)fields[i].value);
    }
    fputc('}', stdout);
}

/* The number of connections at the head of a list that go the same way as the first. */
static size_t count_same(const struct velo_conn_view *conns, size_t len)
{
    size_t same = 0;
    while (same < len && conns[same].is_outgoing == conns->is_outgoing &&
           strcmp(conns[same].transport, conns->transport) == 0) {
        same++;
    }
    return same;
}

/* {"shm":{"in":["0.1",...],"out":[...]},"loop":...}: a peer for each connection. */
static void json_conns(const struct velo_conn_view *conns, size_t len)
{
    const char *transport = "";
    fputs("\"connections\":{", stdout);
    for (size_t at = 0, same; at < len; at += same) {
        const struct velo_conn_view *first = &conns[at];
        same = count_same(first, len - at);
        if (strcmp(transport, first->transport) != 0) {
            fputs(at ? "}," : "", stdout);
            json_string(stdout, first->transport);
            fputs(":{", stdout);
        } else {
            fputc(',', stdout);
        }
        transport = first->transport;
        fputs(first->is_outgoing ? "\"out\":[" : "\"in\":[", stdout);
        for (size_t i = 0; i < same; i++) {
            printf("%s\"%u.%u\"", i ? "," : "", VELO_ID_NODE(first[i].peer),
                   VELO_ID_VPID(first[i].peer));
        }
        fputc(']', stdout);
    }
    fputs(len ? "}}," : "},", stdout);
}

static void json_port(const struct velo_port_view *view)
{
    printf("{\"id\":%u,\"node\":%u,\"vpid\":%u,\"pid\":%ld,\"alive\":%s,", view->id,
           VELO_ID_NODE(view->id), VELO_ID_VPID(view->id), view->pid,
           view->alive ? "true" : "false");
    printf("\"depth_slots\":%u,\"data_bytes\":%u,\"conns_max\":%u,", view->depth_slots,
           view->data_bytes, view->conns_max);
    printf("\"segment_bytes\":%llu,\"memory_bytes\":%llu,", (unsigned long long)view->segment_bytes,
           (unsigned long long)view->memory_bytes);
    printf("\"kept_bytes\":%llu,\"kept_bound_bytes\":%llu,\"path\":",
           (unsigned long long)view->kept_bytes, (unsigned long long)view->kept_bound_bytes);
    json_string(stdout, view->path);
    fputc(',', stdout);
    json_conns(view->conns, view->conns_len);
    json_counters(&view->counters);
    fputc('}', stdout);
}

static void text_conns(const struct velo_conn_view *conns, size_t len)
{
    for (size_t at = 0, same; at < len; at += same) {
        const struct velo_conn_view *first = &conns[at];
        same = count_same(first, len - at);
        printf("  by %s, %s", first->transport, first->is_outgoing ? "to" : "from");
        for (size_t i = 0; i < same; i++) {
            printf(" %u.%u", VELO_ID_NODE(first[i].peer), VELO_ID_VPID(first[i].peer));
        }
        putchar('\n');
    }
}

static void text_port(const struct velo_port_view *view)
{
    const struct velo_port_counters *c = &view->counters;
    printf("port %u.%u    pid %ld%s, %llu connected, %llu KiB; received %llu, sent %llu, "
           "slept %llu, errors %llu\n",
           VELO_ID_NODE(view->id), VELO_ID_VPID(view->id), view->pid, view->alive ? "" : " (dead)",
           (unsigned long long)c->rx_conns, (unsigned long long)view->memory_bytes >> 10,
           (unsigned long long)c->rx_msgs, (unsigned long long)c->tx_msgs,
           (unsigned long long)c->rx_sleeps, (unsigned long long)c->rx_errors);
    text_conns(view->conns, view->conns_len);
}

static int print_port(void *arg, const struct velo_port_view *view)
{
    struct walk *walk = arg;
    if (walk->options->json) {
        fputs(walk->count ? "," : "", stdout);
        json_port(view);
    } else {
        text_port(view);
    }
    walk->count++;
    return 0;
}

/* --- rings ----------------------------------------------------------------------------------- */

static void json_ring(const struct velo_ring_view *view)
{
    printf("{\"id\":%u,\"node\":%u,\"vpid\":%u,\"pid\":%ld,\"alive\":%s,\"drops\":%s,", view->id,
           VELO_ID_NODE(view->id), VELO_ID_VPID(view->id), view->pid,
           view->alive ? "true" : "false", view->drops ? "true" : "false");
    printf("\"depth_slots\":%u,\"msg_bytes_max\":%u,\"readers\":%u,\"readers_max\":%u,",
           view->depth_slots, view->msg_bytes_max, view->readers, view->readers_max);
    printf("\"msgs\":%llu,\"behind_msgs\":%llu,\"memory_bytes\":%llu}",
           (unsigned long long)view->msgs, (unsigned long long)view->behind_msgs,
           (unsigned long long)view->memory_bytes);
}

static void text_ring(const struct velo_ring_view *view)
{
    printf(
        "ring %u.%u    pid %ld%s, %u readers, %llu KiB; wrote %llu, the slowest is %llu behind%s\n",
        VELO_ID_NODE(view->id), VELO_ID_VPID(view->id), view->pid, view->alive ? "" : " (dead)",
        view->readers, (unsigned long long)view->memory_bytes >> 10, (unsigned long long)view->msgs,
        (unsigned long long)view->behind_msgs, view->drops ? ", drops" : "");
}

static int print_ring(void *arg, const struct velo_ring_view *view)
{
    struct walk *walk = arg;
    if (walk->options->json) {
        fputs(walk->count ? "," : "", stdout);
        json_ring(view);
    } else {
        text_ring(view);
    }
    walk->count++;
    return 0;
}

/* --- one look -------------------------------------------------------------------------------- */

/* The library's rule, so that the domain can be shown. */
static const char *domain_name(const struct options *options, char buf[32])
{
    const char *domain = options->domain ? options->domain : getenv("VELO_DOMAIN");
    if (!domain || !*domain) {
        snprintf(buf, 32, "u%u", (unsigned)getuid());
        return buf;
    }
    return domain;
}

static bool print_info(const struct options *options)
{
    char buf[32];
    const char *domain = domain_name(options, buf);
    struct walk ports = {.options = options};
    struct walk rings = {.options = options};
    struct copies copies;
    if (!find_copies(&copies)) {
        return false;
    }
    if (options->json) {
        fputc('{', stdout);
        json_library(domain);
        json_copies(&copies);
        json_machine();
        fputs(",\"ports\":[", stdout);
    } else {
        text_library(domain);
        text_copies(&copies);
    }
    int status = velo_inspect_domain(domain, print_port, &ports);
    if (options->json) {
        fputs("],\"rings\":[", stdout);
    } else if (ports.count == 0 && status == VELO_OK) {
        puts("ports       none open");
    }
    if (status == VELO_OK) {
        status = velo_inspect_rings(domain, print_ring, &rings);
    }
    if (options->json) {
        fputc(']', stdout);
        if (status != VELO_OK) {
            fputs(",\"error\":", stdout);
            json_string(stdout, velo_last_error());
        }
        fputs("}\n", stdout);
    }
    if (status != VELO_OK) {
        fprintf(stderr, "velo-info: %s\n", velo_last_error());
    }
    return status == VELO_OK && fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
    static const struct argp argp = {argp_options, parse_option, NULL, doc, NULL, NULL, NULL};
    struct options options = {.domain = NULL};
    argp_program_version = velo_version();
    argp_err_exit_status = EXIT_USAGE;
    error_t error = argp_parse(&argp, argc, argv, 0, NULL, &options);
    if (error) {
        fprintf(stderr, "velo-info: %s\n", strerror(error));
        return EXIT_USAGE;
    }
    bool ok = print_info(&options);
    while (ok && options.watch_ms) {
        struct timespec nap = {.tv_sec = options.watch_ms / 1000,
                               .tv_nsec = (long)(options.watch_ms % 1000) * 1000000};
        nanosleep(&nap, NULL);
        ok = print_info(&options);
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
