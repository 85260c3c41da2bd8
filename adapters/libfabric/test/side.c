/* SPDX-License-Identifier: Apache-2.0 */
#include "side.h"

#include <dirent.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct side *sides[SIDES_MAX];
static size_t sides_len;

const char *provider(void)
{
    const char *name = getenv("VELO_FI_TEST_PROVIDER");

    return name && *name ? name : "velo";
}

bool is_velo(void) { return strcmp(provider(), "velo") == 0; }

/* Others' constructors run for nothing, and some of them print. */
__attribute__((constructor)) static void choose_provider(void)
{
    if (is_velo())
        setenv("FI_PROVIDER", "velo", 1);
}

void check_fi(const char *file, int line, const char *call, long long status, long long expected)
{
    if (status != expected)
        test_fail(file, line, "%s\n  gave     %lld (%s)\n  expected %lld (%s)", call, status,
                  status < 0 ? fi_strerror((int)-status) : "", expected,
                  expected < 0 ? fi_strerror((int)-expected) : "");
}

size_t longest(void)
{
    const char *text = getenv("VELO_FI_TEST_LONGEST");

    return text && *text ? strtoull(text, NULL, 10) : SIZE_MAX;
}

size_t descriptors_open(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t count = 0;

    CHECK(dir != NULL);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

void lacks(const char *what)
{
    static char text[1024];
    const char *complete = getenv("VELO_FI_TEST_COMPLETE");

    snprintf(text, sizeof(text), "provider %s does not offer %s", provider(), what);
    if (complete && *complete)
        test_fail(__FILE__, __LINE__, "%s", text);
    test_skip(text);
}

struct fi_info *hints_of(const struct side_attr *attr)
{
    struct fi_info *hints = fi_allocinfo();
    uint64_t caps = attr->caps ? attr->caps : FI_MSG | FI_TAGGED;
    uint64_t order = caps & (FI_MSG | FI_TAGGED) ? FI_ORDER_SAS : 0;

    CHECK(hints != NULL);
    hints->fabric_attr->prov_name = strdup(provider());
    hints->caps = caps;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->threading = attr->threading ? attr->threading : FI_THREAD_DOMAIN;
    hints->domain_attr->data_progress = attr->progress ? attr->progress : FI_PROGRESS_MANUAL;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->domain_attr->av_type = attr->av_type ? attr->av_type : FI_AV_MAP;
    hints->domain_attr->mr_mode = attr->mr_mode;
    hints->tx_attr->op_flags = attr->tx_flags;
    hints->rx_attr->op_flags = attr->rx_flags;
    hints->tx_attr->msg_order = attr->tx_order ? attr->tx_order : order;
    hints->rx_attr->msg_order = attr->rx_order ? attr->rx_order : order;
    hints->tx_attr->size = attr->tx_size;
    hints->rx_attr->size = attr->rx_size;
    return hints;
}

static struct fi_info *info_of(const struct side_attr *attr)
{
    struct fi_info *hints = hints_of(attr);
    struct fi_info *info = NULL;
    int status = fi_getinfo(API_VERSION, NULL, NULL, 0, hints, &info);

    if (status == -FI_ENODATA) {
        char text[768];
        snprintf(text, sizeof(text), "%s", fi_tostr(&hints->caps, FI_TYPE_CAPS));
        if (attr->progress == FI_PROGRESS_AUTO)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), " with automatic progress");
        if (attr->threading == FI_THREAD_SAFE)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), " with FI_THREAD_SAFE");
        if (attr->tx_flags)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), " with %s by default",
                     fi_tostr(&attr->tx_flags, FI_TYPE_OP_FLAGS));
        if (hints->caps & (FI_RMA | FI_ATOMIC))
            snprintf(text + strlen(text), sizeof(text) - strlen(text), " with mr_mode %s",
                     attr->mr_mode ? fi_tostr(&attr->mr_mode, FI_TYPE_MR_MODE) : "0");
        fi_freeinfo(hints);
        lacks(text);
    }
    fi_freeinfo(hints);
    CHECK_FI(status);
    return info;
}

void needs(const struct side_attr *attr) { fi_freeinfo(info_of(attr)); }

void side_open_domain(struct side *side, const struct side_attr *attr)
{
    struct fi_av_attr av_attr = {.type = attr->av_type ? attr->av_type : FI_AV_MAP,
                                 .count = attr->av_count};
    struct fi_cq_attr cq_attr = {.format = attr->format ? attr->format : FI_CQ_FORMAT_TAGGED,
                                 .wait_obj = attr->wait ? attr->wait : FI_WAIT_NONE,
                                 .size = attr->cq_size};
    struct fi_cntr_attr cntr_attr = {.events = FI_CNTR_EVENTS_COMP,
                                     .wait_obj = attr->wait ? FI_WAIT_UNSPEC : FI_WAIT_NONE};

    memset(side, 0, sizeof(*side));
    side->attr = *attr;
    side->info = info_of(attr);
    CHECK_FI(fi_fabric(side->info->fabric_attr, &side->fabric, NULL));
    CHECK_FI(fi_domain(side->fabric, side->info, &side->domain, NULL));
    CHECK_FI(fi_av_open(side->domain, &av_attr, &side->av, NULL));
    CHECK_FI(fi_cq_open(side->domain, &cq_attr, &side->cq, NULL));
    if (attr->has_counters) {
        CHECK_FI(fi_cntr_open(side->domain, &cntr_attr, &side->done, NULL));
        CHECK_FI(fi_cntr_open(side->domain, &cntr_attr, &side->received, NULL));
    }
}

static void bind_counters(struct side *side)
{
    uint64_t done = FI_SEND, received = FI_RECV;

    if (side->info->caps & (FI_RMA | FI_ATOMIC)) {
        done |= FI_READ | FI_WRITE;
        if (side->info->caps & FI_RMA_EVENT)
            received |= FI_REMOTE_WRITE | FI_REMOTE_READ;
    }
    CHECK_FI(fi_ep_bind(side->ep, &side->done->fid, done));
    CHECK_FI(fi_ep_bind(side->ep, &side->received->fid, received));
}

void side_open_endpoint(struct side *side)
{
    CHECK_FI(fi_endpoint(side->domain, side->info, &side->ep, NULL));
    CHECK_FI(fi_ep_bind(side->ep, &side->av->fid, 0));
    CHECK_FI(fi_ep_bind(side->ep, &side->cq->fid, FI_SEND | FI_RECV | side->attr.bind_flags));
    if (side->attr.has_counters)
        bind_counters(side);
    CHECK_FI(fi_enable(side->ep));
    side->name_len = sizeof(side->name);
    CHECK_FI(fi_getname(&side->ep->fid, side->name, &side->name_len));
    CHECK(sides_len < SIDES_MAX);
    sides[sides_len++] = side;
}

void side_open(struct side *side, const struct side_attr *attr)
{
    side_open_domain(side, attr);
    side_open_endpoint(side);
}

void side_open_beside(struct side *side, struct side *host)
{
    *side = (struct side){.attr = host->attr,
                          .info = host->info,
                          .fabric = host->fabric,
                          .domain = host->domain,
                          .av = host->av,
                          .cq = host->cq,
                          .done = host->done,
                          .received = host->received,
                          .borrows = true};
    side_open_endpoint(side);
    sides_len--; /* The host reads the queue. */
}

void side_close(struct side *side)
{
    CHECK_FI(fi_close(&side->ep->fid));
    free(side->kept);
    if (side->borrows)
        return;
    for (size_t i = 0; i < sides_len; i++) {
        if (sides[i] == side) {
            sides[i] = sides[--sides_len];
            break;
        }
    }
    if (side->attr.has_counters) {
        CHECK_FI(fi_close(&side->done->fid));
        CHECK_FI(fi_close(&side->received->fid));
    }
    CHECK_FI(fi_close(&side->cq->fid));
    CHECK_FI(fi_close(&side->av->fid));
    CHECK_FI(fi_close(&side->domain->fid));
    CHECK_FI(fi_close(&side->fabric->fid));
    fi_freeinfo(side->info);
}

fi_addr_t side_learn(struct side *side, const struct side *other)
{
    fi_addr_t addr = FI_ADDR_NOTAVAIL;

    CHECK_EQ(fi_av_insert(side->av, other->name, 1, &addr, 0, NULL), 1);
    CHECK(addr != FI_ADDR_NOTAVAIL);
    return addr;
}

void pair_open(struct pair *pair, const struct side_attr *attr)
{
    side_open(&pair->a, attr);
    side_open(&pair->b, attr);
    pair->to_b = side_learn(&pair->a, &pair->b);
    pair->to_a = side_learn(&pair->b, &pair->a);
    pair->a_to_a = side_learn(&pair->a, &pair->a);
}

void pair_close(struct pair *pair)
{
    side_close(&pair->a);
    side_close(&pair->b);
}

/* --- completions
 * --------------------------------------------------------------------------------*/

static void keep(struct side *side, const struct completion *completion)
{
    if (side->kept_end == side->kept_max) {
        side->kept_max = side->kept_max ? 2 * side->kept_max : 64;
        struct completion *more = realloc(side->kept, side->kept_max * sizeof(*more));
        CHECK(more != NULL);
        side->kept = more;
    }
    side->kept[side->kept_end++] = *completion;
}

static void keep_error(struct side *side)
{
    struct fi_cq_err_entry error = {0};
    struct completion completion = {.source = FI_ADDR_NOTAVAIL};

    CHECK_EQ(fi_cq_readerr(side->cq, &error, 0), 1);
    completion.entry = (struct fi_cq_tagged_entry){.op_context = error.op_context,
                                                   .flags = error.flags,
                                                   .len = error.len,
                                                   .buf = error.buf,
                                                   .data = error.data,
                                                   .tag = error.tag};
    completion.error = error.err;
    completion.olen = error.olen;
    CHECK(error.err > 0);
    keep(side, &completion);
}

/* Keep what is there; returns whether there was anything. */
static bool side_read(struct side *side)
{
    struct fi_cq_tagged_entry entries[16];
    fi_addr_t sources[16];
    bool has_source = side->info->caps & FI_SOURCE;
    ssize_t count = has_source ? fi_cq_readfrom(side->cq, entries, 16, sources)
                               : fi_cq_read(side->cq, entries, 16);

    if (count == -FI_EAGAIN)
        return false;
    if (count == -FI_EAVAIL) {
        keep_error(side);
        return true;
    }
    if (count <= 0 || count > 16)
        test_fail(__FILE__, __LINE__, "fi_cq_read() gave %zd", count);
    for (ssize_t i = 0; i < count; i++) {
        struct completion completion = {.entry = entries[i], .source = FI_ADDR_NOTAVAIL};
        if (has_source)
            completion.source = sources[i];
        keep(side, &completion);
    }
    return true;
}

void sides_progress(void)
{
    bool found = false;

    for (size_t i = 0; i < sides_len; i++) {
        if (sides[i]->attr.reads_itself)
            (void)fi_cq_read(sides[i]->cq, NULL, 0);
        else
            found |= side_read(sides[i]);
    }
    if (!found)
        sched_yield();
}

void sides_settle(void)
{
    for (int i = 0; i < 300; i++)
        sides_progress();
    test_sleep_ns(2 * TEST_MS);
    for (int i = 0; i < 300; i++)
        sides_progress();
}

size_t kept(const struct side *side) { return side->kept_end - side->kept_first; }

struct completion next(struct side *side)
{
    struct completion completion;

    UNTIL(kept(side) > 0);
    completion = side->kept[side->kept_first++];
    if (side->kept_first == side->kept_end)
        side->kept_first = side->kept_end = 0;
    return completion;
}

struct completion next_ok(struct side *side, const void *context, uint64_t flags)
{
    struct completion completion = next(side);

    if (completion.error)
        test_fail(__FILE__, __LINE__, "an operation failed: %s", fi_strerror(completion.error));
    CHECK(completion.entry.op_context == context);
    CHECK_EQ(completion.entry.flags & flags, flags);
    return completion;
}

struct completion next_error(struct side *side, const void *context, int error)
{
    struct completion completion = next(side);

    CHECK_EQ(completion.error, error);
    CHECK(completion.entry.op_context == context);
    return completion;
}

void nothing_more(struct side *side)
{
    sides_settle();
    CHECK_EQ(kept(side), 0);
}

/* --- several processes
 * --------------------------------------------------------------------------*/

struct meeting *meeting_of(int ranks)
{
    struct meeting *meeting = test_shared_alloc(sizeof(*meeting));

    CHECK(ranks <= RANKS_MAX);
    meeting->ranks = ranks;
    return meeting;
}

struct start {
    struct meeting *meeting;
    int rank;
    void (*body)(struct meeting *, int);
};

static void run_rank(void *arg)
{
    struct start *start = arg;

    start->body(start->meeting, start->rank);
}

pid_t process_start(struct meeting *meeting, int rank, void (*body)(struct meeting *, int))
{
    struct start start = {meeting, rank, body};

    return child_start(run_rank, &start);
}

void processes_run(int ranks, void (*body)(struct meeting *, int))
{
    struct meeting *meeting = meeting_of(ranks);
    pid_t children[RANKS_MAX];

    for (int rank = 0; rank < ranks; rank++)
        children[rank] = process_start(meeting, rank, body);
    for (int rank = 0; rank < ranks; rank++)
        child_join(children[rank]);
}

void meet(struct meeting *meeting)
{
    uint32_t ranks = (uint32_t)meeting->ranks;
    /* Pairs with the load below: what came before is seen by all that leave. */
    uint32_t mine = atomic_fetch_add(&meeting->arrived, 1);
    uint32_t end = (mine / ranks + 1) * ranks;

    UNTIL(atomic_load(&meeting->arrived) >= end);
}

void side_introduce(struct side *side, struct meeting *meeting, int rank, fi_addr_t *addrs)
{
    CHECK(side->name_len <= NAME_MAX_BYTES);
    memcpy(meeting->names[rank].bytes, side->name, side->name_len);
    meeting->names[rank].len = side->name_len;
    meet(meeting);
    for (int i = 0; i < meeting->ranks; i++)
        CHECK_EQ(fi_av_insert(side->av, meeting->names[i].bytes, 1, &addrs[i], 0, NULL), 1);
    meet(meeting);
}

void side_open_among(struct side *side, const struct side_attr *attr, struct meeting *meeting,
                     int rank, fi_addr_t *addrs)
{
    side_open(side, attr);
    side_introduce(side, meeting, rank, addrs);
}
