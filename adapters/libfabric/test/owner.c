/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The peer interface, with an owner that is written here: a shared receive queue with matching of
 * its own, and a completion queue. This program is the provider's libfabric: it loads the provider,
 * and says which version it is, so that each test runs over every form of the interface.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <test.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_prov.h>

#include "../owner.h"

/* Where the headers have the interface, it must be the same as ours. */
#if __has_include(<rdma/providers/fi_peer.h>)
#include <rdma/providers/fi_peer.h>
#define SAME(ours, theirs, member)                                                                 \
    _Static_assert(offsetof(struct ours, member) == offsetof(struct theirs, member), #member)
SAME(vf_owner_ops, fi_ops_srx_owner, get_msg);
SAME(vf_owner_ops, fi_ops_srx_owner, queue_tag);
SAME(vf_owner_ops, fi_ops_srx_owner, foreach_unspec_addr);
SAME(vf_owner_ops, fi_ops_srx_owner, free_entry);
SAME(vf_owner_peer_ops, fi_ops_srx_peer, discard_tag);
SAME(vf_owner_srx, fid_peer_srx, peer_ops);
SAME(vf_owner_match, fi_peer_match_attr, tag);
SAME(vf_owner_cq, fid_peer_cq, owner_ops);
#define BEHIND_LINKS (offsetof(struct fi_peer_rx_entry, srx))
_Static_assert(BEHIND_LINKS == 0 || BEHIND_LINKS == VF_OWNER_LINK_BYTES, "links");
_Static_assert(offsetof(struct vf_owner_entry, iov) + BEHIND_LINKS ==
                   offsetof(struct fi_peer_rx_entry, iov),
               "entry");
_Static_assert(offsetof(struct vf_owner_entry, cq_data) + BEHIND_LINKS ==
                   offsetof(struct fi_peer_rx_entry, cq_data),
               "entry");
#endif

#define CHECK_FI(call) CHECK_EQ((call), 0)
#define UNTIL(condition)                                                                           \
    do {                                                                                           \
        int64_t end_ns_ = test_now_ns() + TEST_PATIENCE_NS;                                        \
        while (!(condition)) {                                                                     \
            progress();                                                                            \
            if (test_now_ns() > end_ns_)                                                           \
                test_fail(__FILE__, __LINE__, "%s never holds", #condition);                       \
        }                                                                                          \
    } while (0)
#define POST(call)                                                                                 \
    do {                                                                                           \
        ssize_t posted_ = -FI_EAGAIN;                                                              \
        UNTIL((posted_ = (call)) != -FI_EAGAIN);                                                   \
        CHECK_EQ(posted_, 0);                                                                      \
    } while (0)

/* --- libfabric ---------------------------------------------------------------------------------
 */

static uint32_t version;

/* The provider asks us. */
__attribute__((visibility("default"))) uint32_t fi_version(void) { return version; }

static struct fi_provider *load(uint32_t as_version)
{
    char path[4096];
    const char *dir = getenv("FI_PROVIDER_PATH");

    version = as_version;
    CHECK(dir != NULL);
    snprintf(path, sizeof(path), "%s/libvelo-fi.so", dir);
    void *library = dlopen(path, RTLD_NOW);
    CHECK(library != NULL);
    struct fi_provider *(*init)(void);
    *(void **)&init = dlsym(library, "fi_prov_ini");
    CHECK(init != NULL);
    struct fi_provider *provider = init();
    CHECK_EQ(provider->fi_version, as_version);
    return provider;
}

static void free_info(struct fi_info *info)
{
    free(info->domain_attr->name);
    free(info->fabric_attr->name);
    free(info->domain_attr);
    free(info->fabric_attr);
    free(info->tx_attr);
    free(info->rx_attr);
    free(info->ep_attr);
    free(info->src_addr);
    free(info);
}

static int get_info(struct fi_provider *provider, uint64_t caps, enum fi_progress progress_wanted,
                    struct fi_info **info)
{
    struct fi_domain_attr domain = {.threading = FI_THREAD_DOMAIN,
                                    .data_progress = progress_wanted};
    struct fi_ep_attr ep = {.type = FI_EP_RDM};
    struct fi_info hints = {.caps = caps, .domain_attr = &domain, .ep_attr = &ep};

    return provider->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, &hints, info);
}

/* --- the owner ---------------------------------------------------------------------------------
 */

#define ENTRIES_MAX 1600
#define COMPLETIONS_MAX 1600

/* The form of an entry that is running; see owner.h. */
static size_t links_bytes;

struct entry {
    void *links[2];
    struct vf_owner_entry body;
    uint64_t ignore;
    struct iovec iov[4];
    struct entry *next;
    bool is_used;
};

struct written {
    void *context;
    uint64_t flags, data, tag;
    size_t len, olen;
    void *buf;
    fi_addr_t source;
    int error;
};

static struct {
    struct entry entries[ENTRIES_MAX];
    struct entry *posted, *unexpected; /* In order. */
    struct written written[COMPLETIONS_MAX];
    size_t written_first, written_end;
    int used;
    /* What the owner refuses next. */
    int refuse_get, refuse_queue, refuse_write;
    int refused;
} owner;

static struct entry *entry_at(void *given)
{
    return (struct entry *)((char *)given + links_bytes - offsetof(struct entry, body));
}

static void *given_of(struct entry *entry) { return (char *)&entry->body - links_bytes; }

static struct entry *new_entry(struct vf_owner_srx *srx)
{
    for (size_t i = 0; i < ENTRIES_MAX; i++) {
        struct entry *entry = &owner.entries[i];
        if (entry->is_used)
            continue;
        *entry = (struct entry){.is_used = true};
        entry->links[0] = entry->links[1] = entry;
        entry->body.srx = srx;
        entry->body.iov = entry->iov;
        owner.used++;
        return entry;
    }
    test_fail(__FILE__, __LINE__, "the owner has no entry left");
}

static void append(struct entry **list, struct entry *entry)
{
    while (*list)
        list = &(*list)->next;
    entry->next = NULL;
    *list = entry;
}

static struct entry *take_out(struct entry **list, fi_addr_t addr, uint64_t tag, uint64_t ignore)
{
    for (; *list; list = &(*list)->next) {
        struct entry *entry = *list;
        uint64_t matters = ~(ignore | entry->ignore);
        bool is_from = addr == FI_ADDR_UNSPEC || entry->body.addr == FI_ADDR_UNSPEC ||
                       entry->body.addr == addr;
        if (!is_from || ((entry->body.tag ^ tag) & matters))
            continue;
        *list = entry->next;
        return entry;
    }
    return NULL;
}

static int get(struct vf_owner_srx *srx, struct vf_owner_match *match, bool is_tagged, void **out)
{
    if (owner.refuse_get) {
        owner.refuse_get--;
        owner.refused++;
        return -FI_ENOMEM;
    }
    uint64_t tag = is_tagged ? match->tag : 0;
    struct entry *entry = take_out(&owner.posted, match->addr, tag, 0);
    if (entry) {
        entry->body.msg_size = match->msg_size;
        *out = given_of(entry);
        return 0;
    }
    entry = new_entry(srx);
    entry->body.addr = match->addr;
    entry->body.tag = tag;
    *out = given_of(entry);
    return -FI_ENOENT;
}

static int get_msg(struct vf_owner_srx *srx, struct vf_owner_match *match, void **entry)
{
    return get(srx, match, false, entry);
}

static int get_tag(struct vf_owner_srx *srx, struct vf_owner_match *match, void **entry)
{
    return get(srx, match, true, entry);
}

static int queue_entry(void *given)
{
    if (owner.refuse_queue) {
        owner.refuse_queue--;
        owner.refused++;
        return -FI_ENOMEM;
    }
    append(&owner.unexpected, entry_at(given));
    return 0;
}

/* Also of one that is still queued, when its endpoint is closed. */
static void free_entry(void *given)
{
    struct entry *entry = entry_at(given);
    CHECK(entry->is_used);
    for (struct entry **at = &owner.unexpected; *at; at = &(*at)->next) {
        if (*at == entry) {
            *at = entry->next;
            break;
        }
    }
    entry->is_used = false;
    owner.used--;
}

static void each_unspec(struct vf_owner_srx *srx, fi_addr_t (*get_addr)(void *))
{
    (void)srx;
    for (struct entry *entry = owner.unexpected; entry; entry = entry->next)
        if (entry->body.addr == FI_ADDR_UNSPEC)
            entry->body.addr = get_addr(given_of(entry));
}

static struct vf_owner_ops owner_ops = {sizeof(owner_ops), get_msg,     get_tag,   queue_entry,
                                        queue_entry,       each_unspec, free_entry};

static bool has_room(void)
{
    if (owner.refuse_write) {
        owner.refuse_write--;
        owner.refused++;
        return false;
    }
    return true;
}

static ssize_t cq_write(struct vf_owner_cq *cq, void *context, uint64_t flags, size_t len,
                        void *buf, uint64_t data, uint64_t tag, fi_addr_t src)
{
    (void)cq;
    if (!has_room())
        return -FI_EAGAIN;
    CHECK(owner.written_end < COMPLETIONS_MAX);
    owner.written[owner.written_end++] =
        (struct written){context, flags, data, tag, len, 0, buf, src, 0};
    return 0;
}

static ssize_t cq_writeerr(struct vf_owner_cq *cq, const struct fi_cq_err_entry *error)
{
    (void)cq;
    if (!has_room())
        return -FI_EAGAIN;
    CHECK(owner.written_end < COMPLETIONS_MAX && error->err > 0);
    owner.written[owner.written_end++] =
        (struct written){error->op_context, error->flags, error->data,      error->tag, error->len,
                         error->olen,       error->buf,   FI_ADDR_NOTAVAIL, error->err};
    return 0;
}

static struct vf_owner_cq owner_cq;

/* --- links: endpoints that the owner uses ------------------------------------------------------
 */

struct link {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *srx_ep, *ep;
    struct vf_owner_srx srx;
    char name[64];
    size_t name_len;
};

#define LINKS_MAX 4
static struct link *links[LINKS_MAX];
static size_t links_len;

static void progress(void)
{
    for (size_t i = 0; i < links_len; i++)
        (void)fi_cq_read(links[i]->cq, NULL, 0);
}

/* Long enough for whatever is on its way. */
static void settle(void)
{
    for (int i = 0; i < 200; i++)
        progress();
    test_sleep_ns(TEST_MS);
    for (int i = 0; i < 200; i++)
        progress();
}

static void link_open(struct link *link, struct fi_provider *provider)
{
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    struct fi_cq_attr cq_attr = {.flags = FI_PEER};
    struct fi_rx_attr rx_attr = {.op_flags = FI_PEER};
    struct vf_owner_cq_context cq_context = {sizeof(cq_context), &owner_cq};
    struct vf_owner_srx_context srx_context = {sizeof(srx_context), &link->srx};

    memset(link, 0, sizeof(*link));
    link->srx.owner_ops = &owner_ops;
    CHECK_FI(get_info(provider, FI_TAGGED | FI_MSG | FI_PEER | FI_AV_USER_ID, FI_PROGRESS_UNSPEC,
                      &link->info));
    CHECK_FI(provider->fabric(link->info->fabric_attr, &link->fabric, NULL));
    CHECK_FI(fi_domain(link->fabric, link->info, &link->domain, NULL));
    CHECK_FI(fi_av_open(link->domain, &av_attr, &link->av, NULL));
    CHECK_FI(fi_cq_open(link->domain, &cq_attr, &link->cq, &cq_context));
    CHECK_FI(fi_endpoint(link->domain, link->info, &link->ep, NULL));
    CHECK_FI(fi_ep_bind(link->ep, &link->cq->fid, FI_TRANSMIT | FI_RECV));
    CHECK_FI(fi_ep_bind(link->ep, &link->av->fid, 0));
    CHECK_FI(fi_srx_context(link->domain, &rx_attr, &link->srx_ep, &srx_context));
    CHECK_FI(fi_ep_bind(link->ep, &link->srx_ep->fid, 0));
    CHECK_FI(fi_enable(link->ep));
    CHECK(link->srx.peer_ops && link->srx.peer_ops->size == sizeof(struct vf_owner_peer_ops));
    link->name_len = sizeof(link->name);
    CHECK_FI(fi_getname(&link->ep->fid, link->name, &link->name_len));
    CHECK(links_len < LINKS_MAX);
    links[links_len++] = link;
}

static void link_close(struct link *link)
{
    for (size_t i = 0; i < links_len; i++)
        if (links[i] == link)
            links[i] = links[--links_len];
    CHECK_FI(fi_close(&link->ep->fid));
    CHECK_FI(fi_close(&link->srx_ep->fid));
    CHECK_FI(fi_close(&link->cq->fid));
    CHECK_FI(fi_close(&link->av->fid));
    CHECK_FI(fi_close(&link->domain->fid));
    CHECK_FI(fi_close(&link->fabric->fid));
    free_info(link->info);
}

/* Make a name known; sources are reported as `id`. */
static fi_addr_t learn(struct link *link, const struct link *other, fi_addr_t id)
{
    fi_addr_t addr = id;
    CHECK_EQ(fi_av_insert(link->av, other->name, 1, &addr, FI_AV_USER_ID, NULL), 1);
    return addr;
}

/* A sender and a receiver; the receiver knows the sender as FROM_A. */
#define FROM_A UINT64_C(0x1100)
#define FROM_C UINT64_C(0x3300)

static struct link a, b;
static fi_addr_t to_b;
static struct fi_context2 sent, got[ENTRIES_MAX];

static void owner_reset(void)
{
    memset(&owner, 0, sizeof(owner));
    owner_cq.owner_ops = malloc(sizeof(*owner_cq.owner_ops));
    CHECK(owner_cq.owner_ops != NULL);
    owner_cq.owner_ops->size = sizeof(*owner_cq.owner_ops);
    owner_cq.owner_ops->write = cq_write;
    owner_cq.owner_ops->writeerr = cq_writeerr;
}

static struct fi_provider *begin(uint32_t as_version)
{
    links_bytes = FI_VERSION_LT(as_version, FI_VERSION(2, 3)) ? VF_OWNER_LINK_BYTES : 0;
    owner_reset();
    return load(as_version);
}

static void begin_pair(uint32_t as_version)
{
    struct fi_provider *provider = begin(as_version);
    link_open(&a, provider);
    link_open(&b, provider);
    to_b = learn(&a, &b, 7);
    (void)learn(&b, &a, FROM_A);
}

/* Everything was given back. */
static void end_pair(void)
{
    link_close(&a);
    link_close(&b);
    CHECK_EQ(owner.used, 0);
    free(owner_cq.owner_ops);
}

/* Each test runs over each form of an entry. */
#define FORMS(name)                                                                                \
    static void name##_as(uint32_t as_version);                                                    \
    static void both_##name(void)                                                                  \
    {                                                                                              \
        name##_as(FI_VERSION(2, 1));                                                               \
        name##_as(FI_VERSION(2, 6));                                                               \
    }                                                                                              \
    static void name##_as(uint32_t as_version)

static struct written next(void)
{
    UNTIL(owner.written_first < owner.written_end);
    return owner.written[owner.written_first++];
}

static void nothing_more(void)
{
    settle();
    CHECK_EQ(owner.written_first, owner.written_end);
}

#define TAGGED (FI_TAGGED | FI_RECV)

/* The owner posts a receive, as LNX does: first it looks at what has come. */
static void recv_flags(void *buf, size_t len, fi_addr_t from, uint64_t tag, uint64_t ignore,
                       void *context, uint64_t flags)
{
    struct entry *entry = take_out(&owner.unexpected, from, tag, ignore);
    bool has_come = entry != NULL;

    if (!has_come)
        entry = new_entry(NULL);
    entry->iov[0] = (struct iovec){buf, len};
    entry->body.count = 1;
    entry->body.context = context;
    entry->body.flags |= flags;
    if (has_come) {
        CHECK_FI(entry->body.srx->peer_ops->start_tag(given_of(entry)));
        return;
    }
    entry->body.addr = from;
    entry->body.tag = tag;
    entry->ignore = ignore;
    append(&owner.posted, entry);
}

static void receive(void *buf, size_t len, fi_addr_t from, uint64_t tag, uint64_t ignore,
                    void *context)
{
    recv_flags(buf, len, from, tag, ignore, context, TAGGED | FI_COMPLETION);
}

static void send_tag(const void *buf, size_t len, uint64_t tag)
{
    POST(fi_tinject(a.ep, buf, len, to_b, tag));
}

/* The number of messages that wait at the owner. */
static int waiting(void)
{
    int count = 0;
    for (struct entry *entry = owner.unexpected; entry; entry = entry->next)
        count++;
    return count;
}

/* --- tests -------------------------------------------------------------------------------------
 */

static char text[] = "what is sent", room[64];

FORMS(posted)
{
    begin_pair(as_version);
    receive(room, sizeof(room), FI_ADDR_UNSPEC, 5, 0, &got[0]);
    POST(fi_tinjectdata(a.ep, text, sizeof(text), 0xabcdef, to_b, 5));
    struct written found = next();
    CHECK(found.context == &got[0] && found.error == 0);
    CHECK_EQ(found.flags & (TAGGED | FI_REMOTE_CQ_DATA), TAGGED | FI_REMOTE_CQ_DATA);
    CHECK_EQ(found.len, sizeof(text));
    CHECK_EQ(found.tag, 5);
    CHECK_EQ(found.data, 0xabcdef);
    CHECK(found.buf == room);
    CHECK_EQ(found.source, FROM_A);
    CHECK_EQ(memcmp(room, text, sizeof(text)), 0);
    CHECK_EQ(owner.used, 0);
    end_pair();
}

TEST(a_message_goes_to_the_receive_that_the_owner_posted) { both_posted(); }

FORMS(unexpected)
{
    begin_pair(as_version);
    POST(fi_tinjectdata(a.ep, text, sizeof(text), 77, to_b, 5));
    UNTIL(waiting() == 1);
    struct vf_owner_entry *body = &owner.unexpected->body;
    CHECK_EQ(body->addr, FROM_A);
    CHECK_EQ(body->msg_size, sizeof(text));
    CHECK_EQ(body->cq_data, 77);
    CHECK(body->flags & FI_REMOTE_CQ_DATA);
    nothing_more();
    receive(room, sizeof(room), FROM_A, 5, 0, &got[0]);
    struct written found = next();
    CHECK(found.context == &got[0] && found.error == 0);
    CHECK_EQ(found.flags & (TAGGED | FI_REMOTE_CQ_DATA), TAGGED | FI_REMOTE_CQ_DATA);
    CHECK_EQ(found.data, 77);
    CHECK_EQ(found.source, FROM_A);
    CHECK_EQ(found.tag, 5);
    CHECK_EQ(memcmp(room, text, sizeof(text)), 0);
    end_pair();
}

TEST(a_message_without_receive_waits_at_the_owner_and_is_started_later) { both_unexpected(); }

/* A third is posted before, the others come before their receives: more than an endpoint's
 * attributes say. */
FORMS(order)
{
    enum { COUNT = 1599 };
    static uint32_t values[COUNT];

    begin_pair(as_version);
    for (uint32_t i = 0; i < COUNT / 3; i++)
        receive(&values[i], sizeof(values[i]), FI_ADDR_UNSPEC, 0, UINT64_MAX, &got[i]);
    for (uint32_t i = 0; i < COUNT; i++)
        send_tag(&i, sizeof(i), i);
    UNTIL(waiting() == COUNT - COUNT / 3);
    for (uint32_t i = COUNT / 3; i < COUNT; i++)
        receive(&values[i], sizeof(values[i]), FI_ADDR_UNSPEC, 0, UINT64_MAX, &got[i]);
    for (uint32_t i = 0; i < COUNT; i++) {
        struct written found = next();
        CHECK(found.context == &got[i]);
        CHECK_EQ(found.tag, i);
        CHECK_EQ(values[i], i);
    }
    end_pair();
}

TEST(an_owner_gets_messages_in_the_order_of_sending) { both_order(); }

FORMS(out_of_order)
{
    begin_pair(as_version);
    for (uint32_t i = 0; i < 5; i++)
        send_tag(&i, sizeof(i), i);
    UNTIL(waiting() == 5);
    for (uint32_t i = 5; i-- > 0;) {
        uint32_t value = 99;
        receive(&value, sizeof(value), FI_ADDR_UNSPEC, i, 0, &got[i]);
        CHECK(next().context == &got[i]);
        CHECK_EQ(value, i);
    }
    end_pair();
}

TEST(an_owner_starts_messages_in_any_order) { both_out_of_order(); }

FORMS(discards)
{
    begin_pair(as_version);
    struct fi_msg_tagged msg = {.msg_iov = &(struct iovec){text, sizeof(text)},
                                .iov_count = 1,
                                .addr = to_b,
                                .tag = 1,
                                .context = &sent};
    POST(fi_tsendmsg(a.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION));
    send_tag("next", 5, 2);
    UNTIL(waiting() == 2);
    nothing_more();
    struct entry *entry = take_out(&owner.unexpected, FI_ADDR_UNSPEC, 1, 0);
    CHECK_FI(entry->body.srx->peer_ops->discard_tag(given_of(entry)));
    CHECK(entry->is_used); /* It stays ours. */
    free_entry(given_of(entry));
    struct written found = next(); /* Its sender is told. */
    CHECK(found.context == &sent && (found.flags & FI_SEND));
    receive(room, sizeof(room), FI_ADDR_UNSPEC, 0, UINT64_MAX, &got[0]);
    CHECK_EQ(next().tag, 2);
    end_pair();
}

TEST(an_owner_discards_a_message) { both_discards(); }

static void is_cut(struct written found)
{
    CHECK_EQ(found.error, FI_ETRUNC);
    CHECK_EQ(found.len, 4);
    CHECK_EQ(found.olen, sizeof(text) - 4);
    CHECK_EQ(memcmp(room, text, 4), 0);
    CHECK_EQ(room[4], 0x77);
}

FORMS(truncation)
{
    begin_pair(as_version);
    memset(room, 0x77, sizeof(room));
    receive(room, 4, FI_ADDR_UNSPEC, 5, 0, &got[0]);
    send_tag(text, sizeof(text), 5);
    is_cut(next());
    memset(room, 0x77, sizeof(room));
    send_tag(text, sizeof(text), 5);
    UNTIL(waiting() == 1);
    /* An error is reported even if successes are not. */
    recv_flags(room, 4, FI_ADDR_UNSPEC, 5, 0, &got[0], TAGGED);
    is_cut(next());
    end_pair();
}

TEST(a_message_longer_than_the_owners_memory_is_cut) { both_truncation(); }

FORMS(silence)
{
    begin_pair(as_version);
    recv_flags(room, sizeof(room), FI_ADDR_UNSPEC, 5, 0, &got[0], TAGGED);
    send_tag(text, sizeof(text), 5);
    UNTIL(owner.used == 0);
    nothing_more();
    CHECK_EQ(memcmp(room, text, sizeof(text)), 0);
    end_pair();
}

TEST(a_receive_of_the_owner_without_completion_reports_nothing) { both_silence(); }

/* Beyond what is sent at once, and beyond what is copied in pieces. */
static void sends_long(uint32_t as_version, size_t len, bool is_posted)
{
    char *from = malloc(len), *to = calloc(1, len);

    CHECK(from && to);
    for (size_t i = 0; i < len; i++)
        from[i] = (char)(i * 7 + (i >> 12));
    begin_pair(as_version);
    if (is_posted)
        receive(to, len, FI_ADDR_UNSPEC, 5, 0, &got[0]);
    POST(fi_tsend(a.ep, from, len, NULL, to_b, 5, &sent));
    if (!is_posted) {
        UNTIL(waiting() == 1);
        CHECK_EQ(owner.unexpected->body.msg_size, len);
        receive(to, len, FI_ADDR_UNSPEC, 5, 0, &got[0]);
    }
    struct written first = next(), second = next();
    struct written found = first.flags & FI_RECV ? first : second;
    CHECK((first.flags | second.flags) & FI_SEND);
    CHECK(found.context == &got[0] && found.error == 0);
    CHECK_EQ(found.len, len);
    CHECK_EQ(memcmp(from, to, len), 0);
    end_pair();
    free(from);
    free(to);
}

TEST(a_long_message_goes_to_the_receive_that_the_owner_posted)
{
    sends_long(FI_VERSION(2, 1), 200000, true);
    sends_long(FI_VERSION(2, 6), 3000000, true);
}

TEST(a_long_message_waits_at_the_owner_and_is_started_later)
{
    sends_long(FI_VERSION(2, 1), 3000000, false);
    sends_long(FI_VERSION(2, 6), 200000, false);
}

FORMS(pieces)
{
    char one[3], two[5], three[32];

    begin_pair(as_version);
    struct entry *entry = new_entry(NULL);
    entry->iov[0] = (struct iovec){one, sizeof(one)};
    entry->iov[1] = (struct iovec){two, sizeof(two)};
    entry->iov[2] = (struct iovec){three, sizeof(three)};
    entry->body.count = 3;
    entry->body.addr = FI_ADDR_UNSPEC;
    entry->body.tag = 5;
    entry->body.flags = TAGGED | FI_COMPLETION;
    append(&owner.posted, entry);
    send_tag(text, sizeof(text), 5);
    CHECK_EQ(next().len, sizeof(text));
    CHECK_EQ(memcmp(one, text, 3), 0);
    CHECK_EQ(memcmp(two, text + 3, 5), 0);
    CHECK_EQ(memcmp(three, text + 8, sizeof(text) - 8), 0);
    end_pair();
}

TEST(a_receive_of_the_owner_has_several_pieces) { both_pieces(); }

/* The owner tells senders apart by the ids that it gave them. */
FORMS(directed)
{
    struct link c;
    char from_a[8], from_c[8];

    begin_pair(as_version);
    link_open(&c, load(as_version));
    fi_addr_t c_to_b = learn(&c, &b, 7);
    (void)learn(&b, &c, FROM_C);
    receive(from_c, sizeof(from_c), FROM_C, 5, 0, &got[0]);
    send_tag("a", 2, 5);
    UNTIL(waiting() == 1);
    nothing_more();
    POST(fi_tinject(c.ep, "c", 2, c_to_b, 5));
    struct written found = next();
    CHECK(found.context == &got[0]);
    CHECK_EQ(found.source, FROM_C);
    CHECK_EQ(from_c[0], 'c');
    receive(from_a, sizeof(from_a), FROM_A, 5, 0, &got[1]);
    CHECK_EQ(next().source, FROM_A);
    CHECK_EQ(from_a[0], 'a');
    link_close(&c);
    end_pair();
}

TEST(an_owner_receives_from_one_sender_alone) { both_directed(); }

/* Two links, each with a receive context and a domain of its own, feed the owner's one queue. */
FORMS(two_links)
{
    struct link c, d;

    begin_pair(as_version);
    struct fi_provider *provider = load(as_version);
    link_open(&c, provider);
    link_open(&d, provider);
    fi_addr_t c_to_d = learn(&c, &d, 7);
    (void)learn(&d, &c, FROM_C);
    for (uint32_t i = 0; i < 10; i++) {
        uint32_t values[2] = {99, 99};
        receive(&values[0], sizeof(values[0]), FI_ADDR_UNSPEC, 5, 0, &got[0]);
        receive(&values[1], sizeof(values[1]), FI_ADDR_UNSPEC, 5, 0, &got[1]);
        send_tag(&i, sizeof(i), 5);
        CHECK_EQ(next().source, FROM_A);
        POST(fi_tinject(c.ep, &i, sizeof(i), c_to_d, 5));
        CHECK_EQ(next().source, FROM_C);
        CHECK(values[0] == i && values[1] == i);
    }
    send_tag("b", 2, 5);
    POST(fi_tinject(c.ep, "d", 2, c_to_d, 6));
    UNTIL(waiting() == 2);
    receive(room, sizeof(room), FI_ADDR_UNSPEC, 6, 0, &got[0]);
    CHECK_EQ(next().source, FROM_C);
    CHECK_EQ(room[0], 'd');
    receive(room, sizeof(room), FI_ADDR_UNSPEC, 5, 0, &got[0]);
    CHECK_EQ(next().source, FROM_A);
    CHECK_EQ(room[0], 'b');
    link_close(&c);
    link_close(&d);
    end_pair();
}

TEST(two_links_feed_one_queue_of_the_owner) { both_two_links(); }

/* The next message without tag that waits. */
static struct entry *waits(void)
{
    UNTIL(waiting() == 1);
    return take_out(&owner.unexpected, FI_ADDR_UNSPEC, 0, 0);
}

FORMS(messages)
{
    begin_pair(as_version);
    struct entry *entry = new_entry(NULL);
    entry->iov[0] = (struct iovec){room, sizeof(room)};
    entry->body.count = 1;
    entry->body.addr = FI_ADDR_UNSPEC;
    entry->body.context = &got[0];
    entry->body.flags = FI_MSG | FI_RECV | FI_COMPLETION | FI_MULTI_RECV;
    append(&owner.posted, entry);
    POST(fi_inject(a.ep, text, sizeof(text), to_b));
    struct written found = next();
    CHECK(found.context == &got[0]);
    /* The owner says when its memory for many messages is used up. */
    CHECK_EQ(found.flags, FI_MSG | FI_RECV | FI_MULTI_RECV);
    CHECK_EQ(memcmp(room, text, sizeof(text)), 0);
    end_pair();
}

TEST(an_owner_gets_messages_without_tag) { both_messages(); }

FORMS(waiting_messages)
{
    begin_pair(as_version);
    POST(fi_inject(a.ep, "x", 2, to_b));
    struct entry *entry = waits();
    entry->iov[0] = (struct iovec){room, sizeof(room)};
    entry->body.count = 1;
    entry->body.flags |= FI_COMPLETION;
    CHECK_FI(entry->body.srx->peer_ops->start_msg(given_of(entry)));
    CHECK_EQ(next().flags, FI_MSG | FI_RECV);
    CHECK_EQ(room[0], 'x');
    POST(fi_inject(a.ep, "y", 2, to_b));
    entry = waits();
    CHECK_FI(entry->body.srx->peer_ops->discard_msg(given_of(entry)));
    free_entry(given_of(entry));
    end_pair();
}

TEST(an_owner_starts_and_discards_messages_without_tag) { both_waiting_messages(); }

FORMS(sends)
{
    begin_pair(as_version);
    receive(room, sizeof(room), FI_ADDR_UNSPEC, 5, 0, &got[0]);
    owner.refuse_write = 5;
    POST(fi_tsend(a.ep, text, sizeof(text), NULL, to_b, 5, &sent));
    struct written first = next(), second = next();
    struct written found = first.flags & FI_SEND ? first : second;
    CHECK(found.context == &sent);
    CHECK_EQ(found.flags, FI_TAGGED | FI_SEND);
    nothing_more();
    end_pair();
}

TEST(what_was_sent_is_reported_to_the_owner) { both_sends(); }

/* A full queue of the owner: nothing is lost, and the order stays. */
FORMS(full)
{
    enum { COUNT = 50 };
    static uint32_t values[COUNT];

    begin_pair(as_version);
    for (uint32_t i = 0; i < COUNT; i++) {
        receive(&values[i], sizeof(values[i]), FI_ADDR_UNSPEC, 5, 0, &got[i]);
        send_tag(&i, sizeof(i), 5);
    }
    owner.refuse_write = 1000;
    UNTIL(owner.refused >= 20);
    CHECK_EQ(owner.written_end, 0);
    CHECK_EQ(owner.used, COUNT); /* An entry is the provider's until it is reported. */
    owner.refuse_write = 3;
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK(next().context == &got[i]);
        CHECK_EQ(values[i], i);
        if (i % 7 == 0)
            owner.refuse_write = 2;
    }
    nothing_more();
    end_pair();
}

TEST(a_full_queue_of_the_owner_loses_nothing) { both_full(); }

/* A message that the owner refused is offered again, before those behind it. */
FORMS(refusals)
{
    begin_pair(as_version);
    for (uint32_t i = 0; i < 6; i++)
        send_tag(&i, sizeof(i), i);
    owner.refuse_get = 3;
    UNTIL(owner.refused == 3);
    UNTIL(waiting() == 6);
    for (uint32_t i = 6; i < 12; i++)
        send_tag(&i, sizeof(i), i);
    owner.refuse_queue = 3;
    UNTIL(owner.refused == 6);
    UNTIL(waiting() == 12);
    CHECK_EQ(owner.used, 12);
    for (uint32_t i = 0; i < 12; i++) {
        uint32_t value = 99;
        receive(&value, sizeof(value), FI_ADDR_UNSPEC, 0, UINT64_MAX, &got[i]);
        CHECK_EQ(next().tag, i);
        CHECK_EQ(value, i);
    }
    end_pair();
}

TEST(a_message_that_the_owner_cannot_take_is_offered_again) { both_refusals(); }

FORMS(late_address)
{
    struct fi_provider *provider = begin(as_version);

    link_open(&a, provider);
    link_open(&b, provider);
    to_b = learn(&a, &b, 7);
    send_tag(text, sizeof(text), 5);
    UNTIL(waiting() == 1);
    CHECK_EQ(owner.unexpected->body.addr, FI_ADDR_UNSPEC);
    /* One of another provider: what it means by its context is not ours to look at. */
    struct entry *foreign = new_entry(NULL);
    foreign->body.addr = FI_ADDR_UNSPEC;
    foreign->body.tag = 6;
    foreign->body.peer_context = &foreign->iov[3];
    append(&owner.unexpected, foreign);
    (void)learn(&b, &a, FROM_A);
    CHECK_EQ(owner.unexpected->body.addr, FROM_A);
    CHECK_EQ(foreign->body.addr, FI_ADDR_UNSPEC);
    free_entry(given_of(foreign));
    receive(room, sizeof(room), FROM_A, 5, 0, &got[0]);
    CHECK_EQ(next().source, FROM_A);
    end_pair();
}

TEST(an_owner_learns_an_address_that_comes_after_its_message) { both_late_address(); }

FORMS(cancels)
{
    begin_pair(as_version);
    receive(room, sizeof(room), FI_ADDR_UNSPEC, 5, 0, &got[0]);
    CHECK_EQ(fi_cancel(&b.ep->fid, &got[0]), -FI_ENOENT); /* It is the owner's. */
    free_entry(given_of(take_out(&owner.posted, FI_ADDR_UNSPEC, 5, 0)));
    send_tag(text, sizeof(text), 5);
    UNTIL(waiting() == 1);
    nothing_more();
    end_pair();
}

TEST(a_receive_that_the_owner_takes_back_gets_nothing) { both_cancels(); }

/* What waits, what is held and what could not be reported. */
FORMS(closing)
{
    begin_pair(as_version);
    send_tag(text, sizeof(text), 1);
    UNTIL(waiting() == 1);
    owner.refuse_write = 1000000;
    receive(room, sizeof(room), FI_ADDR_UNSPEC, 2, 0, &got[0]);
    send_tag(text, sizeof(text), 2);
    UNTIL(owner.refused > 0);
    owner.refuse_get = 1000000;
    owner.refused = 0;
    send_tag(text, sizeof(text), 3);
    UNTIL(owner.refused > 2);
    CHECK_EQ(owner.used, 2);
    end_pair();
}

TEST(an_endpoint_that_is_closed_gives_the_owner_its_entries_back) { both_closing(); }

static int domain_of(struct fi_provider *provider, uint64_t caps, struct link *link)
{
    memset(link, 0, sizeof(*link));
    int rc = get_info(provider, caps, FI_PROGRESS_UNSPEC, &link->info);
    if (rc)
        return rc;
    CHECK_FI(provider->fabric(link->info->fabric_attr, &link->fabric, NULL));
    CHECK_FI(fi_domain(link->fabric, link->info, &link->domain, NULL));
    return 0;
}

static void domain_close(struct link *link)
{
    CHECK_FI(fi_close(&link->domain->fid));
    CHECK_FI(fi_close(&link->fabric->fid));
    free_info(link->info);
}

TEST(a_libfabric_before_2_0_is_offered_no_peer_interface)
{
    struct fi_provider *provider = begin(FI_VERSION(1, 22));
    struct fi_info *info;
    struct fi_rx_attr rx_attr = {.op_flags = FI_PEER};
    struct fi_cq_attr cq_attr = {.flags = FI_PEER};
    struct vf_owner_srx srx = {.owner_ops = &owner_ops};
    struct vf_owner_srx_context srx_context = {sizeof(srx_context), &srx};
    struct vf_owner_cq_context cq_context = {sizeof(cq_context), &owner_cq};
    struct link link;

    CHECK_EQ(get_info(provider, FI_TAGGED | FI_PEER, FI_PROGRESS_UNSPEC, &info), -FI_ENODATA);
    CHECK_FI(domain_of(provider, FI_TAGGED, &link));
    CHECK_EQ(fi_srx_context(link.domain, &rx_attr, &link.srx_ep, &srx_context), -FI_ENOSYS);
    CHECK_EQ(fi_cq_open(link.domain, &cq_attr, &link.cq, &cq_context), -FI_EINVAL);
    domain_close(&link);
    free(owner_cq.owner_ops);
}

/* LNX knows by the name "shm" that a provider is for its own machine. */
TEST(the_peer_interface_is_offered_to_who_asks)
{
    struct fi_provider *provider = begin(FI_VERSION(2, 6));
    struct fi_info *info;

    CHECK_FI(get_info(provider, FI_TAGGED, FI_PROGRESS_UNSPEC, &info));
    CHECK(!(info->caps & FI_PEER));
    CHECK_EQ(strcmp(info->fabric_attr->name, "velo"), 0);
    free_info(info);
    CHECK_FI(get_info(provider, 0, FI_PROGRESS_UNSPEC, &info));
    CHECK(!(info->caps & FI_PEER));
    free_info(info);
    CHECK_FI(get_info(provider, FI_TAGGED | FI_PEER, FI_PROGRESS_UNSPEC, &info));
    CHECK(info->caps & FI_PEER);
    CHECK_EQ(strcmp(info->fabric_attr->name, "shm"), 0);
    CHECK(info->rx_attr->size <= 1024); /* LNX refuses more. */
    free_info(info);
    /* Progress is the owner's. */
    CHECK_EQ(get_info(provider, FI_TAGGED | FI_PEER, FI_PROGRESS_AUTO, &info), -FI_ENODATA);
    free(owner_cq.owner_ops);
}

static struct vf_owner_srx lone_srx = {.owner_ops = &owner_ops};
static struct vf_owner_srx_context lone_context = {sizeof(lone_context), &lone_srx};

TEST(what_an_owner_leaves_out_is_refused)
{
    struct fi_provider *provider = begin(FI_VERSION(2, 6));
    struct fi_rx_attr rx_attr = {.op_flags = FI_PEER};
    struct fi_cq_attr cq_attr = {.flags = FI_PEER};
    struct vf_owner_ops older = owner_ops;
    struct link link;

    CHECK_FI(domain_of(provider, FI_TAGGED | FI_PEER, &link));
    older.size = sizeof(older) - sizeof(void *);
    lone_srx.owner_ops = &older;
    CHECK_EQ(fi_srx_context(link.domain, &rx_attr, &link.srx_ep, &lone_context), -FI_EINVAL);
    lone_srx.owner_ops = &owner_ops;
    CHECK_EQ(fi_srx_context(link.domain, &rx_attr, &link.srx_ep, NULL), -FI_EINVAL);
    rx_attr.op_flags = 0;
    CHECK_EQ(fi_srx_context(link.domain, &rx_attr, &link.srx_ep, &lone_context), -FI_ENOSYS);
    CHECK_EQ(fi_cq_open(link.domain, &cq_attr, &link.cq, NULL), -FI_EINVAL);
    domain_close(&link);
    free(owner_cq.owner_ops);
}

TEST(a_receive_context_without_a_queue_of_the_owner_is_refused)
{
    struct fi_provider *provider = begin(FI_VERSION(2, 6));
    struct fi_rx_attr rx_attr = {.op_flags = FI_PEER};
    struct fi_cq_attr cq_attr = {0};
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    struct link link;

    CHECK_FI(domain_of(provider, FI_TAGGED | FI_PEER, &link));
    CHECK_FI(fi_srx_context(link.domain, &rx_attr, &link.srx_ep, &lone_context));
    CHECK_FI(fi_cq_open(link.domain, &cq_attr, &link.cq, NULL));
    CHECK_FI(fi_av_open(link.domain, &av_attr, &link.av, NULL));
    CHECK_FI(fi_endpoint(link.domain, link.info, &link.ep, NULL));
    CHECK_FI(fi_ep_bind(link.ep, &link.cq->fid, FI_TRANSMIT | FI_RECV));
    CHECK_FI(fi_ep_bind(link.ep, &link.av->fid, 0));
    CHECK_FI(fi_ep_bind(link.ep, &link.srx_ep->fid, 0));
    CHECK_EQ(fi_enable(link.ep), -FI_EINVAL);
    CHECK_EQ(fi_close(&link.srx_ep->fid), -FI_EBUSY);
    CHECK_FI(fi_close(&link.ep->fid));
    CHECK_FI(fi_close(&link.srx_ep->fid));
    CHECK_FI(fi_close(&link.cq->fid));
    CHECK_FI(fi_close(&link.av->fid));
    domain_close(&link);
    free(owner_cq.owner_ops);
}
