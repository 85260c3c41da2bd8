/* SPDX-License-Identifier: Apache-2.0 */
#include "remote.h"

#include <stdlib.h>

#include "../../lib/base/error.h"
#include "wire.h"

#define OUTCOMES_MAX 256u
/* Most gates and slots that may wait for each other. Correct peers have fewer under way. */
#define WAITING_MAX 65536u

/* A gate that opened, or a slot that waits for one. */
struct half {
    uint32_t sender;
    uint8_t gate;
    uint64_t word; /* Of the slot, as in its line. */
};

struct halves {
    struct half *all;
    size_t len;
    size_t room;
};

struct device_remote {
    uint64_t head;      /* Notifications taken out. */
    uint64_t head_told; /* The hardware knows that these are taken out. */
    struct remote_outcome outcomes[OUTCOMES_MAX];
    uint32_t outcomes_head;
    uint32_t outcomes_tail;
    struct halves opened;
    struct halves waiting;
};

_Static_assert(OUTCOMES_MAX > REMOTE_DESCRIPTORS_MAX, "each descriptor has one outcome");

/* ---- the queue ------------------------------------------------------------------------------- */

static struct device_remote *make_remote(struct device_port *device)
{
    if (!device->remote)
        device->remote = calloc(1, sizeof *device->remote);
    return device->remote;
}

int remote_open(struct device_port *device)
{
    pthread_mutex_lock(&nic_lock);
    const struct device_remote *remote = make_remote(device);
    pthread_mutex_unlock(&nic_lock);
    if (!remote)
        return velo_fail(VELO_ERR_NO_MEMORY, "out of memory");
    struct host_context context = device->context;
    int status = host_io->queue_open(&context);
    pthread_mutex_lock(&nic_lock);
    device->context.queue = context.queue;
    device->context.queue_entries = context.queue_entries;
    pthread_mutex_unlock(&nic_lock);
    return status;
}

void remote_close(struct device_port *device)
{
    if (!device->remote)
        return;
    free(device->remote->opened.all);
    free(device->remote->waiting.all);
    free(device->remote);
    device->remote = NULL;
}

/* ---- gates ----------------------------------------------------------------------------------- */

static bool add_half(struct halves *halves, const struct half *half)
{
    if (halves->len == halves->room) {
        size_t room = halves->room ? 2 * halves->room : 64;
        struct half *all = room > WAITING_MAX ? NULL : realloc(halves->all, room * sizeof *all);
        if (!all)
            return false;
        halves->all = all;
        halves->room = room;
    }
    halves->all[halves->len++] = *half;
    return true;
}

/* The order of the others stays: a gate opens for the first slot that waits for it. */
static void take_out(struct halves *halves, size_t at)
{
    halves->len--;
    memmove(halves->all + at, halves->all + at + 1, (halves->len - at) * sizeof *halves->all);
}

/* The place of the first half that is for a gate; `len`: there is none. */
static size_t find_half(const struct halves *halves, uint32_t sender, uint8_t gate)
{
    size_t at = 0;
    while (at < halves->len && (halves->all[at].sender != sender || halves->all[at].gate != gate))
        at++;
    return at;
}

static bool open_gate(struct device_port *device, uint32_t sender, uint8_t gate)
{
    struct device_remote *remote = device->remote;
    size_t at = find_half(&remote->waiting, sender, gate);
    if (at == remote->waiting.len)
        return add_half(&remote->opened, &(struct half){.sender = sender, .gate = gate});
    uint64_t word = remote->waiting.all[at].word;
    take_out(&remote->waiting, at);
    nic_open_slot(device->port, word, sender);
    return true;
}

bool remote_gated(struct device_port *device, uint64_t word, uint8_t gate, uint32_t sender)
{
    struct device_remote *remote = make_remote(device);
    if (!remote)
        return false;
    size_t at = find_half(&remote->opened, sender, gate);
    if (at == remote->opened.len)
        return add_half(&remote->waiting, &(struct half){sender, gate, word});
    take_out(&remote->opened, at);
    nic_open_slot(device->port, word, sender);
    return true;
}

void remote_slot_came(struct device_port *device, uint64_t word, uint32_t sender)
{
    const uint64_t same = VELO_HEADER_SEQ_MASK | VELO_HEADER_SOURCE_MASK;
    struct halves *waiting = device->remote ? &device->remote->waiting : NULL;
    for (size_t at = 0; waiting && at < waiting->len; at++)
        if (waiting->all[at].sender == sender && ((waiting->all[at].word ^ word) & same) == 0) {
            take_out(waiting, at);
            return;
        }
}

/* ---- what the node notifies ------------------------------------------------------------------ */

/* Take a notification. False: it makes no sense. */
static bool take_notification(struct device_port *device, uint64_t word)
{
    struct device_remote *remote = device->remote;
    unsigned place = velo_rma_notification_place(word);
    uint32_t sender =
        (uint32_t)velo_rma_notification_node(word) << 8 | velo_rma_notification_ctx(word);
    if (place == VELO_RMA_PLACE_RESPONDER || place == VELO_RMA_PLACE_COMPLETER)
        return open_gate(device, sender, velo_rma_notification_cookie(word));
    if (remote->outcomes_tail - remote->outcomes_head == OUTCOMES_MAX)
        return false;
    remote->outcomes[remote->outcomes_tail++ % OUTCOMES_MAX] = (struct remote_outcome){
        velo_rma_notification_cookie(word), velo_rma_notification_error(word)};
    return true;
}

void remote_drain(struct device_port *device)
{
    struct device_remote *remote = device->remote;
    const struct host_context *context = &device->context;
    while (remote && context->queue) {
        uint64_t *entry = context->queue + remote->head % context->queue_entries * 2;
        uint64_t word = order_read_header(entry);
        if (!velo_rma_notification_valid(word))
            return;
        *entry = 0;
        remote->head++;
        order_show(&device->context.queue_head, remote->head);
        device->news++;
        host_io->work(HOST_COPY);
        if (!take_notification(device, word))
            order_count(&device->port->shared->rx_errors, 1);
        nic_give_back(device, HOST_REG_QUEUE_READ_POINTERS, remote->head, &remote->head_told,
                      context->queue_entries / 4);
    }
}

bool remote_has_outcome(const struct device_port *device)
{
    const struct device_remote *remote = device->remote;
    return remote && remote->outcomes_head != remote->outcomes_tail;
}

bool remote_take_outcome(struct device_port *device, struct remote_outcome *outcome)
{
    pthread_mutex_lock(&nic_lock);
    bool has = remote_has_outcome(device);
    if (has)
        *outcome = device->remote->outcomes[device->remote->outcomes_head++ % OUTCOMES_MAX];
    pthread_mutex_unlock(&nic_lock);
    return has;
}
