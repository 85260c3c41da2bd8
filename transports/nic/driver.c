/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host port of a card, by its driver (driver/include/uapi/linux/velo.h): /dev/velo0, or what
 * $VELO_CARD names.
 *
 * The card holds few stores that the node has not taken yet, and drops what it has to hold for too
 * long. A context that never has more than its share of them under way loses none. Nobody but the
 * card knows how a line gets there: the processor may send it in up to as many parts as it has
 * words, and each part takes a place. So each word counts as one, until a look at the card's counts
 * tells how many places are in use in truth: no more than the parts that had come when all of ours
 * had, less those that have gone on to the node. That is one call of the kernel for a share. Before
 * it a fence empties the processor's write-combining buffers. A share that does not hold a line is
 * of no use: then the kernel, which has one of its own, stores each line (pwrite). That is one call
 * a line. So it is with a kernel whose pages are larger than the card's: it maps none of these, and
 * the kernel stores the read pointers, too.
 *
 * Parts of a line have to come in ascending order (recombine.h). A write-combining buffer that is
 * full leaves as one; in which order the words of another leave no processor promises. So a line
 * that does not fill the buffer is stored word by word with a fence after each.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <velo/spec.h>

#include "../../driver/include/uapi/linux/velo.h"
#include "../../lib/base/fd.h"
#include "../../lib/base/order.h"
#include "host_io.h"

#define LINE_WORDS (VELO_LINE_BYTES / 8u)
/* Places to ask for: a port sends line after line, a unit now and then one. */
#define PORT_PLACES (4 * LINE_WORDS)
#define UNIT_PLACES LINE_WORDS
#define TARGETS 65536u
#define NS_PER_S INT64_C(1000000000)

/* A context, as the driver gave it. */
struct card {
    struct card *next; /* Of this process. */
    const struct host_context *context;
    int file;
    uint64_t *ring, *queue;
    volatile uint64_t *ring_pointer, *queue_pointer; /* NULL: the kernel stores to them. */
    /* Threads have connections of one port each; a line must not mix with another one's, as parts
     * of two lines of one context cannot be told apart. */
    pthread_mutex_t storing;
    /* Pages to store to, and how many places are in use at most. Without a share there are none. */
    uint32_t share, under_way;
    uint32_t accepted;           /* The card's count of parts that came... */
    bool has_accepted;           /* ...is from after the last store. */
    volatile uint64_t **targets; /* By (node << 8 | number); NULL: not mapped yet. */
};

static struct card *cards;
static int files = -1; /* An epoll of all their descriptors. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*take_news)(void);

static struct card *card_of(const struct host_context *context) { return context->back; }

static const char *card_path(void)
{
    const char *set = getenv("VELO_CARD");
    return set && *set ? set : "/dev/velo0";
}

/* ---- mappings -------------------------------------------------------------------------------- */

static void *map_file(const struct card *card, unsigned kind, uint64_t rest, size_t len_bytes,
                      int rights)
{
    void *at =
        mmap(NULL, len_bytes, rights, MAP_SHARED, card->file, (off_t)VELO_CARD_OFFSET(kind, rest));
    return at == MAP_FAILED ? NULL : at;
}

static void unmap_file(volatile void *at, size_t len_bytes)
{
    if (at)
        (void)munmap((void *)(uintptr_t)at, len_bytes);
}

static volatile uint64_t *target_page(struct card *card, uint16_t number)
{
    if (!card->targets[number])
        card->targets[number] =
            map_file(card, VELO_CARD_TARGETS, (uint64_t)number * HOST_PAGE_BYTES, HOST_PAGE_BYTES,
                     PROT_WRITE);
    return card->targets[number];
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* A child must not keep its parent's contexts open: their end would not be seen. What is mapped it
 * does not have. */
static void forget_in_child(void)
{
    for (struct card *card = cards; card; card = card->next) {
        close(card->file);
        card->file = -1;
    }
    cards = NULL;
    if (files >= 0)
        close(files);
    files = -1;
    (void)pthread_mutex_init(&lock, NULL);
}

static void watch_forks(void) { (void)pthread_atfork(NULL, NULL, forget_in_child); }

static void free_card(struct card *card)
{
    const struct host_context *context = card->context;
    unmap_file(card->ring, (size_t)context->ring_slots * VELO_LINE_BYTES);
    unmap_file(card->queue, (size_t)context->queue_entries * 16);
    unmap_file(card->ring_pointer, HOST_PAGE_BYTES);
    unmap_file(card->queue_pointer, HOST_PAGE_BYTES);
    for (uint32_t i = 0; card->targets && i < TARGETS; i++)
        unmap_file(card->targets[i], HOST_PAGE_BYTES);
    free((void *)card->targets);
    if (card->file >= 0)
        close(card->file);
    free(card);
}

static int fail_open(void)
{
    return host_fail(errno == EACCES ? VELO_ERR_ACCESS : VELO_ERR_STATE,
                     "VELO_SIM names no simulated cluster, and the card %s cannot be opened: %s",
                     card_path(), strerror(errno));
}

static int fail_take(void)
{
    int error = errno;
    int status = error == ENOSPC || error == EBUSY || error == EDQUOT ? VELO_ERR_FULL
                 : error == ENOTTY || error == E2BIG                  ? VELO_ERR_VERSION
                 : error == EPERM                                     ? VELO_ERR_ACCESS
                                                                      : VELO_ERR_STATE;
    return host_fail(
        status, "%s gives no context: %s", card_path(),
        error == ENOTTY || error == E2BIG
            ? "its driver is older than this library, and does not know the call"
        : error == ENOSPC ? "all are in use"
        : error == EDQUOT
            ? "those that are free are kept for other users (user_shares), or this cgroup may have "
              "no more (rdma.max)"
            : strerror(error));
}

/* The context that is wanted, else any: it is in use, or there are not so many. A port takes its
 * vpid, so that others find it by that; a unit is found by its port. */
static int take_context(const struct card *card, velo_id_t id, bool is_unit,
                        struct velo_card_take *take)
{
    *take = (struct velo_card_take){.size = sizeof *take,
                                    .number = is_unit ? VELO_CARD_ANY : VELO_ID_VPID(id),
                                    .store_lines = is_unit ? UNIT_PLACES : PORT_PLACES};
    int result = ioctl(card->file, VELO_CARD_TAKE, take);
    if (result != 0 && (errno == EBUSY || errno == EINVAL) && !is_unit) {
        take->number = VELO_CARD_ANY;
        result = ioctl(card->file, VELO_CARD_TAKE, take);
    }
    return result;
}

/* A page of the card; false: it cannot be mapped. A kernel with larger pages maps none: NULL. */
static bool map_pointer(const struct card *card, unsigned kind, volatile uint64_t **page)
{
    *page = map_file(card, kind, 0, HOST_PAGE_BYTES, PROT_WRITE);
    return *page || errno == EOPNOTSUPP;
}

/* The driver maps ring, queue and pages in the layouts that this library was built with. */
static int check_layouts(const struct velo_card_take *taken)
{
    if (taken->ring_layout == VELO_CARD_RING_LAYOUT &&
        taken->queue_layout == VELO_CARD_QUEUE_LAYOUT &&
        taken->descriptor_layout == VELO_CARD_DESCRIPTOR_LAYOUT &&
        taken->stores_layout == VELO_CARD_STORES_LAYOUT)
        return VELO_OK;
    return host_fail(VELO_ERR_VERSION,
                     "%s has layouts that this library does not know: ring %u, queue %u, "
                     "descriptors %u, stores %u; it knows %d, %d, %d, %d",
                     card_path(), taken->ring_layout, taken->queue_layout, taken->descriptor_layout,
                     taken->stores_layout, VELO_CARD_RING_LAYOUT, VELO_CARD_QUEUE_LAYOUT,
                     VELO_CARD_DESCRIPTOR_LAYOUT, VELO_CARD_STORES_LAYOUT);
}

static bool map_all(struct card *card, const struct host_context *context, uint32_t store_lines)
{
    card->ring =
        map_file(card, VELO_CARD_RING, 0, (size_t)context->ring_slots * VELO_LINE_BYTES, PROT_READ);
    if (!card->ring || !map_pointer(card, VELO_CARD_RING_POINTER, &card->ring_pointer))
        return false;
    if (store_lines >= LINE_WORDS) {
        card->share = store_lines;
        card->targets = calloc(TARGETS, sizeof *card->targets);
    }
    return card->share == 0 || card->targets;
}

static int watch_card(struct card *card)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct epoll_event event = {.events = EPOLLIN};
    (void)pthread_once(&once, watch_forks);
    (void)pthread_mutex_lock(&lock);
    if (files < 0)
        files = fd_above_standard(epoll_create1(EPOLL_CLOEXEC));
    int error = files < 0 ? -1 : epoll_ctl(files, EPOLL_CTL_ADD, card->file, &event);
    if (error == 0) {
        card->next = cards;
        cards = card;
    }
    (void)pthread_mutex_unlock(&lock);
    return error;
}

/* The node of a port is that of the card, whatever the port calls it. */
static int context_open(uint32_t node, velo_id_t id, bool is_unit, struct host_context *context)
{
    struct velo_card_take taken = {0};
    struct card *card = calloc(1, sizeof *card);
    (void)node;
    if (!card)
        return host_fail(VELO_ERR_NO_MEMORY, "out of memory");
    *context = (struct host_context){.back = card};
    card->context = context;
    (void)pthread_mutex_init(&card->storing, NULL);
    card->file = fd_above_standard(open(card_path(), O_RDWR | O_CLOEXEC));
    int status = card->file < 0                                 ? fail_open()
                 : take_context(card, id, is_unit, &taken) != 0 ? fail_take()
                                                                : check_layouts(&taken);
    if (status) {
        free_card(card);
        return status;
    }
    context->node = taken.node;
    context->number = taken.number;
    context->opened = taken.opened;
    context->ring_slots = taken.ring_slots;
    context->queue_entries = taken.queue_entries;
    if (!map_all(card, context, taken.store_lines) || watch_card(card) != 0) {
        status = host_fail(VELO_ERR_SYSTEM, "%s: a context cannot be mapped: %s", card_path(),
                           strerror(errno));
        free_card(card);
        return status;
    }
    context->ring = card->ring;
    return VELO_OK;
}

static void context_close(struct host_context *context)
{
    struct card *card = card_of(context);
    (void)pthread_mutex_lock(&lock);
    struct card **at = &cards;
    while (*at && *at != card)
        at = &(*at)->next;
    if (*at)
        *at = card->next;
    (void)pthread_mutex_unlock(&lock);
    free_card(card);
}

static int queue_open(struct host_context *context)
{
    struct card *card = card_of(context);
    if (context->queue)
        return VELO_OK;
    card->queue = map_file(card, VELO_CARD_QUEUE, 0, (size_t)context->queue_entries * 16,
                           PROT_READ | PROT_WRITE);
    if (!card->queue || !map_pointer(card, VELO_CARD_QUEUE_POINTER, &card->queue_pointer))
        return host_fail(VELO_ERR_STATE, "%s gives no notification queue: %s", card_path(),
                         strerror(errno));
    context->queue = card->queue;
    return VELO_OK;
}

/* Ports count as on the card's node. Without a card they do not open, and say why. */
static void place(int *node, uint32_t *first, uint32_t *step)
{
    char name[PATH_MAX], text[16] = {0};
    const char *slash = strrchr(card_path(), '/');
    *first = 0;
    *step = 1;
    (void)snprintf(name, sizeof name, "/sys/class/velo/%s/node", slash ? slash + 1 : card_path());
    int file = *node == 0 ? fd_above_standard(open(name, O_RDONLY | O_CLOEXEC)) : -1;
    if (file < 0)
        return;
    if (read(file, text, sizeof text - 1) > 0)
        *node = (int)(strtoul(text, NULL, 10) % VELO_NODES);
    close(file);
}

/* ---- towards the node ------------------------------------------------------------------------ */

static bool read_stores(const struct card *card, uint32_t *accepted, uint32_t *taken)
{
    uint64_t word = 0;
    if (pread(card->file, &word, sizeof word, (off_t)VELO_CARD_OFFSET(VELO_CARD_STORES, 0)) !=
        (ssize_t)sizeof word)
        return false;
    *accepted = (uint32_t)word;
    *taken = (uint32_t)(word >> 32);
    return true;
}

/* Is there room for so many more? A card that is gone takes everything, and nothing comes of it. */
static bool has_room(struct card *card, uint32_t len_words)
{
    uint32_t accepted, taken;
    if (card->under_way + len_words <= card->share)
        return true;
    order_full_fence();
    if (!read_stores(card, &accepted, &taken))
        return true;
    if (!card->has_accepted)
        card->accepted = accepted;
    card->has_accepted = true;
    /* What came later is not ours. */
    int32_t in_use = (int32_t)(card->accepted - taken);
    if (in_use < 0)
        in_use = 0;
    if ((uint32_t)in_use < card->under_way)
        card->under_way = (uint32_t)in_use;
    return card->under_way + len_words <= card->share;
}

static bool write_by_call(const struct card *card, unsigned kind, uint64_t address,
                          const uint64_t *words, size_t len_bytes)
{
    ssize_t written;
    do
        written = pwrite(card->file, words, len_bytes, (off_t)VELO_CARD_OFFSET(kind, address));
    while (written < 0 && errno == EINTR);
    return written == (ssize_t)len_bytes;
}

/* Without a share of the card's places. After EAGAIN the card does not have the line; after other
 * errors it may have, so the line is not repeated. */
static bool store_by_call(const struct card *card, unsigned kind, uint64_t address,
                          const uint64_t *line, size_t len_bytes)
{
    return write_by_call(card, kind, address, line, len_bytes) || errno != EAGAIN;
}

static bool store_by_share(struct card *card, uint64_t address, const uint64_t *line,
                           uint32_t len_words)
{
    if (!has_room(card, len_words))
        return false;
    volatile uint64_t *page = target_page(card, (uint16_t)(address / HOST_PAGE_BYTES));
    if (!page)
        return true;
    card->under_way += len_words;
    card->has_accepted = false;
    page += address % HOST_PAGE_BYTES / sizeof *page;
    for (uint32_t i = 0; i < len_words; i++) {
        page[i] = line[i];
        if (len_words < LINE_WORDS)
            order_full_fence();
    }
    /* The next line must not mix with this one, nor leave before it. */
    order_full_fence();
    return true;
}

static bool store(const struct host_context *context, unsigned unit, uint64_t address,
                  const uint64_t *line, uint32_t len_words)
{
    struct card *card = card_of(context);
    bool is_message = unit == VELO_UNIT_VELO;
    /* The unit puts no parts of a descriptor together. */
    if (!is_message)
        return store_by_call(card, VELO_CARD_DESCRIPTORS, 0, line, len_words * sizeof *line);
    if (card->share == 0)
        return store_by_call(card, VELO_CARD_TARGETS, address, line, len_words * sizeof *line);
    (void)pthread_mutex_lock(&card->storing);
    bool is_stored = store_by_share(card, address, line, len_words);
    (void)pthread_mutex_unlock(&card->storing);
    return is_stored;
}

static bool may_send(const struct host_context *context, uint16_t number)
{
    struct card *card = card_of(context);
    if (card->share)
        return target_page(card, number) != NULL;
    /* Nothing is stored; the driver says whether it would be. */
    return write_by_call(card, VELO_CARD_TARGETS, (uint64_t)number * HOST_PAGE_BYTES, NULL, 0);
}

static void register_write(const struct host_context *context, uint64_t offset, uint64_t value)
{
    struct card *card = card_of(context);
    bool is_ring = offset == HOST_REG_READ_POINTERS;
    volatile uint64_t *page = is_ring ? card->ring_pointer : card->queue_pointer;
    if (page)
        *page = value;
    else
        (void)write_by_call(card, is_ring ? VELO_CARD_RING_POINTER : VELO_CARD_QUEUE_POINTER, 0,
                            &value, sizeof value);
}

static bool memory_enter(const struct host_context *context, uint64_t address, uint64_t len_bytes,
                         uint64_t rights, uint32_t *first_page)
{
    bool is_one_peer = velo_registered_page_one_peer(rights) != 0;
    struct velo_card_enter enter = {.size = sizeof enter,
                                    .flags = is_one_peer ? VELO_CARD_ONE_PEER : 0,
                                    .address = address,
                                    .len_bytes = len_bytes,
                                    .rights = (uint32_t)velo_registered_page_rights(rights),
                                    .peer = is_one_peer ? velo_registered_page_peer(rights) : 0};
    if (ioctl(card_of(context)->file, VELO_CARD_ENTER, &enter) != 0)
        return false;
    *first_page = enter.first_page;
    return true;
}

static void memory_withdraw(const struct host_context *context, uint32_t first_page)
{
    struct velo_card_withdraw withdraw = {.size = sizeof withdraw, .first_page = first_page};
    (void)ioctl(card_of(context)->file, VELO_CARD_WITHDRAW, &withdraw);
}

/* ---- what comes ------------------------------------------------------------------------------ */

static void on_news(void (*taker)(void)) { take_news = taker; }

static void look(void)
{
    if (take_news)
        take_news();
}

static void poll_once(void)
{
    order_pause();
    look();
}

static int descriptor(const struct host_context *context) { return card_of(context)->file; }

static bool arm(const struct host_context *context)
{
    struct velo_card_arm seen = {.size = sizeof seen,
                                 .ring_head = (uint16_t)order_counter(&context->ring_head),
                                 .queue_head = (uint16_t)order_counter(&context->queue_head)};
    return ioctl(card_of(context)->file, VELO_CARD_ARM, &seen) == 0 && !seen.ready;
}

static bool arm_all(void)
{
    bool is_armed = true;
    (void)pthread_mutex_lock(&lock);
    for (const struct card *card = cards; card && is_armed; card = card->next)
        is_armed = arm(card->context);
    (void)pthread_mutex_unlock(&lock);
    return is_armed;
}

static bool wait(int64_t timeout_ns)
{
    struct pollfd file = {.fd = files, .events = POLLIN};
    const struct timespec timeout = {.tv_sec = timeout_ns / NS_PER_S,
                                     .tv_nsec = timeout_ns % NS_PER_S};
    bool is_interrupted = arm_all() && ppoll(&file, 1, &timeout, NULL) < 0 && errno == EINTR;
    look();
    return is_interrupted;
}

/* Time is real here. */
static void work(enum host_work work) { (void)work; }
static void found(void) {}

const struct host_io host_io_card = {
    .place = place,
    .context_open = context_open,
    .context_close = context_close,
    .queue_open = queue_open,
    .may_send = may_send,
    .store = store,
    .register_write = register_write,
    .memory_enter = memory_enter,
    .memory_withdraw = memory_withdraw,
    .enters_addresses = false,
    .on_news = on_news,
    .poll = poll_once,
    .wait = wait,
    .descriptor = descriptor,
    .arm = arm,
    .work = work,
    .found = found,
};
