/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host port of the simulated cluster. Time is virtual: the host's own work is charged to the
 * thread's clock, and a thread that polls in vain calls the simulator (sim/client/poll.h).
 */
#include "../../sim/client/poll.h"
#include "host_io.h"
#include "velo/spec.h"

/* ---- contexts -------------------------------------------------------------------------------- */

/* A cluster of more than 256 nodes has fewer contexts a node: a name of 16 bits is parted elsewhere
 * (sim/names.h). Ids and contexts here are such names; the simulator is told node and context. */

static uint32_t context_bits(void)
{
    const struct sim_area *area = sim_channel_area();
    return area ? area->context_bits : SIM_CONTEXTS_LOG2;
}

static uint32_t name_node(uint32_t name) { return name >> context_bits(); }
static uint32_t name_context(uint32_t name) { return name & ((1u << context_bits()) - 1); }

static uint32_t name_of(const struct host_context *context)
{
    return context->node << SIM_CONTEXTS_LOG2 | context->number;
}

static uint32_t node_of(const struct host_context *context) { return name_node(name_of(context)); }

static uint32_t number_of(const struct host_context *context)
{
    return name_context(name_of(context));
}

static uint32_t ranks_a_node(void)
{
    uint64_t ranks = sim_environment_number("VELO_SIM_RANKS_A_NODE", 1);
    return ranks < 1 || ranks > SIM_CONTEXTS ? 1 : (uint32_t)ranks;
}

/* Ranks that share a node take turns with its contexts, so that it does not matter which of them
 * comes first. */
static void place(int *node, uint32_t *first, uint32_t *step)
{
    uint64_t rank = sim_environment_number("VELO_SIM_RANK", 0);
    *step = ranks_a_node();
    uint64_t name = (rank / *step << context_bits() | rank % *step) % SIM_RANKS_MAX;
    *first = (uint32_t)(*node == 0 ? name % SIM_CONTEXTS : rank % *step);
    if (*node == 0)
        *node = (int)(name / SIM_CONTEXTS);
}

/* Contexts with names in a row may be of the next node, too. */
static bool is_elsewhere(uint32_t node)
{
    uint64_t rank = sim_environment_number("VELO_SIM_RANK", SIM_NEVER);
    return context_bits() < SIM_CONTEXTS_LOG2 && rank != SIM_NEVER && rank / ranks_a_node() != node;
}

/* Ports may be on more nodes than there are: they share them then. A port that has another port's
 * id in another domain gets another context. Units look for theirs in the second half, so that
 * ports and units do not meet. */
static int context_open(uint32_t node, velo_id_t id, bool is_unit, struct host_context *context)
{
    struct sim_channel *channel = sim_channel_self();
    if (!channel)
        return host_fail(VELO_ERR_STATE, "%s", sim_channel_why_none());
    uint32_t name = node << SIM_CONTEXTS_LOG2 | VELO_ID_VPID(id);
    uint32_t contexts = 1u << context_bits();
    node = name_node(name) % sim_channel_area()->nodes;
    uint64_t number = (name_context(name) + (is_unit ? contexts / 2 : 0)) % contexts;
    uint64_t opened;
    int status = is_elsewhere(node) ? SIM_ERR_FULL : sim_port_open(channel, node, &number, &opened);
    if (status == SIM_ERR_NODE) /* There are no others: the number is below that of the nodes. */
        return host_fail(VELO_ERR_STATE, "node %u of the simulated cluster is a guest's card",
                         node);
    if (status != SIM_OK)
        return host_fail(VELO_ERR_FULL,
                         "all %u contexts of the simulated node %u are in use; each port has one, "
                         "and each that uses remote memory a second one: give it fewer ranks "
                         "(--ranks-a-node), or the cluster fewer nodes, at least %u",
                         contexts, node, SIM_RANKS_MAX / SIM_CONTEXTS);
    name = node << context_bits() | (uint32_t)number;
    *context = (struct host_context){
        .node = name / SIM_CONTEXTS,
        .number = name % SIM_CONTEXTS,
        .opened = (uint32_t)opened,
        .ring_slots = SIM_RING_SLOTS,
        .ring = (const uint64_t *)(const void *)(sim_channel_memory(node) +
                                                 (size_t)number * SIM_RING_BYTES),
        .queue_entries = SIM_QUEUE_ENTRIES,
    };
    return VELO_OK;
}

static void context_close(struct host_context *context)
{
    sim_channel_expect_done(
        sim_port_close(sim_channel_self(), node_of(context), number_of(context)),
        "the end of a context");
}

static int queue_open(struct host_context *context)
{
    if (context->queue)
        return VELO_OK;
    if (sim_queue_open(sim_channel_self(), node_of(context), number_of(context)) != SIM_OK)
        return host_fail(VELO_ERR_STATE, "the simulated node gives no notification queue");
    char *memory = (char *)sim_channel_memory(node_of(context));
    context->queue =
        (uint64_t *)(void *)(memory + SIM_QUEUES_AT + (size_t)number_of(context) * SIM_QUEUE_BYTES);
    return VELO_OK;
}

/* ---- towards the node ------------------------------------------------------------------------ */

static bool may_send(const struct host_context *context, uint16_t target)
{
    (void)context;
    (void)target;
    return true;
}

/* The host model's pause after a line comes when the line has gone: it delays the next line. */
static bool store(const struct host_context *context, unsigned unit, uint64_t address,
                  const uint64_t *line, uint32_t len_words)
{
    struct sim_channel *channel = sim_channel_self();
    uint64_t window =
        velo_window_pack((uint32_t)address, (uint8_t)number_of(context), (uint8_t)unit);
    sim_channel_expect_done(sim_poll_store(node_of(context), window, line, len_words), "a store");
    sim_channel_charge(channel, sim_channel_area()->gap_ps);
    return true;
}

/* Distance from a context's registers to those of the next one (spec/velo_regs.rdl). */
#define REG_CONTEXT_STRIDE UINT64_C(0x1000)

static void register_write(const struct host_context *context, uint64_t offset, uint64_t value)
{
    sim_channel_expect_done(sim_register_write(sim_channel_self(), node_of(context),
                                               offset + number_of(context) * REG_CONTEXT_STRIDE,
                                               value),
                            "a write to a register");
}

static bool memory_enter(const struct host_context *context, uint64_t address, uint64_t len_bytes,
                         uint64_t rights, uint32_t *first_page)
{
    uint64_t page;
    if (sim_memory_enter(sim_channel_self(), node_of(context), number_of(context), address,
                         len_bytes, rights, &page) != SIM_OK)
        return false;
    *first_page = (uint32_t)page;
    return true;
}

static void memory_withdraw(const struct host_context *context, uint32_t first_page)
{
    sim_channel_expect_done(sim_memory_withdraw(sim_channel_self(), node_of(context), first_page),
                            "to take memory from its node");
}

/* ---- what comes ------------------------------------------------------------------------------ */

/* Signals do not come in virtual time. */
static bool wait(int64_t timeout_ns)
{
    uint64_t now_ns = sim_channel_self()->call.time_ps / PS_PER_NS;
    sim_poll_until((now_ns + (uint64_t)timeout_ns) * PS_PER_NS);
    return false;
}

static void work(enum host_work work)
{
    const struct sim_area *area = sim_channel_area();
    sim_channel_charge(sim_channel_self(), work == HOST_CALL ? area->call_ps : area->copy_ps);
}

/* Somebody has to ask the simulator, or virtual time stands still. */
static int descriptor(const struct host_context *context)
{
    (void)context;
    return -1;
}

static bool arm(const struct host_context *context)
{
    (void)context;
    return false;
}

const struct host_io host_io_sim = {
    .place = place,
    .context_open = context_open,
    .context_close = context_close,
    .queue_open = queue_open,
    .may_send = may_send,
    .store = store,
    .register_write = register_write,
    .memory_enter = memory_enter,
    .memory_withdraw = memory_withdraw,
    .enters_addresses = true,
    .on_news = sim_poll_on_news,
    .poll = sim_poll_once,
    .wait = wait,
    .descriptor = descriptor,
    .arm = arm,
    .work = work,
    .found = sim_poll_napped,
};
