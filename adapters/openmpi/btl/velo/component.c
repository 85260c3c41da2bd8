/* SPDX-License-Identifier: Apache-2.0 */
#include "btl_velo.h"

#include "common/persistent.h"
#include "common/runtime.h"
#include "common/waits.h"

#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/btl/base/btl_base_error.h"
#include "opal/runtime/opal_progress.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Messages taken in one call, so that a flood from one side does not keep us from the rest. */
#define BURST_MSGS 64
/* Time between two checks of a waiting rank whether the others live, and polls between two looks at
 * the clock. */
#define CHECK_NS INT64_C(500000000)
#define CLOCK_POLLS 1024
/* The lines of a message of up to this length are asked for at once. There is no gain above it. */
#define FETCH_BYTES 4096u
/* The ring of a rank of many; that of one of few is twice as long, so that both sides can copy at
 * the same time. */
#define RING_BYTES_LEAST ((size_t)128 << 10)
/* Polls to one look at RMA while no memory is registered. */
#define IDLE_POLLS 256
/* The two copies of a fragment overlap with those of the next one, and stay in cache: that is two
 * to three times as fast as one copy by the kernel, also between far cores. A message that does not
 * stay in cache gains nothing by that, and its fragments take a page fault for each page of memory
 * that nobody has touched. */
#define BTL_VELO_GET_BYTES (32ull << 20)

static int component_register(void);
static int component_open(void);
static int component_close(void);
static mca_btl_base_module_t **component_init(int *count, bool progress_threads, bool mpi_threads);
static int component_progress(void);
static int finalize(mca_btl_base_module_t *btl);
static int register_error(mca_btl_base_module_t *btl, mca_btl_base_module_error_cb_fn_t failed);

struct btl_velo_component mca_btl_velo_component = {
    .super =
        {
            .btl_version =
                {
                    MCA_BTL_DEFAULT_VERSION("velo"),
                    .mca_open_component = component_open,
                    .mca_close_component = component_close,
                    .mca_register_component_params = component_register,
                },
            .btl_data = {.param_field = MCA_BASE_METADATA_PARAM_NONE},
            .btl_init = component_init,
            .btl_progress = component_progress,
        },
    .params = {.sleep = -1, .sleep_polls = 10000, .sleep_us = 100},
    .serve_polls = 8,
    .get_bytes = BTL_VELO_GET_BYTES,
};

struct btl_velo_module btl_velo = {
    .super =
        {
            .btl_component = &mca_btl_velo_component.super,
            .btl_add_procs = btl_velo_add_procs,
            .btl_del_procs = btl_velo_del_procs,
            .btl_finalize = finalize,
            .btl_alloc = btl_velo_alloc,
            .btl_free = btl_velo_free,
            .btl_prepare_src = btl_velo_prepare_src,
            .btl_send = btl_velo_send,
            .btl_sendi = btl_velo_sendi,
            .btl_put = btl_velo_put,
            .btl_get = btl_velo_get,
            .btl_dump = mca_btl_base_dump,
            .btl_atomic_op = btl_velo_atomic_op,
            .btl_atomic_fop = btl_velo_atomic_fop,
            .btl_atomic_cswap = btl_velo_atomic_cswap,
            .btl_register_mem = btl_velo_register_mem,
            .btl_deregister_mem = btl_velo_deregister_mem,
            .btl_register_error = register_error,
        },
    .lock = OPAL_MUTEX_STATIC_INIT,
};

static int component_register(void)
{
    mca_btl_base_module_t *btl = &btl_velo.super;
    if (!velo_ompi_fits(OBJ_CLASS(mca_btl_base_descriptor_t), sizeof(mca_btl_base_descriptor_t)))
        return OPAL_ERR_NOT_AVAILABLE;
    /* Above Open MPI's shared memory: a user who has both wants velo. */
    btl->btl_exclusivity = VELO_OMPI_BTL_EXCLUSIVITY;
    btl->btl_eager_limit = 16 * 1024 + sizeof(struct btl_velo_front);
    btl->btl_rndv_eager_limit = 16 * 1024;
    btl->btl_max_send_size = 32 * 1024;
    btl->btl_rdma_pipeline_send_length = 32 * 1024;
    btl->btl_rdma_pipeline_frag_size = INT_MAX;
    btl->btl_min_rdma_pipeline_size = INT_MAX;
    btl->btl_latency = 1;
    btl->btl_bandwidth = 100000; /* Mbit/s. */
    btl->btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_SEND_INPLACE | MCA_BTL_FLAGS_RDMA |
                     MCA_BTL_FLAGS_ATOMIC_OPS | MCA_BTL_FLAGS_ATOMIC_FOPS | VELO_OMPI_BTL_FLAGS;
    btl->btl_atomic_flags = MCA_BTL_ATOMIC_SUPPORTS_ADD | MCA_BTL_ATOMIC_SUPPORTS_AND |
                            MCA_BTL_ATOMIC_SUPPORTS_OR | MCA_BTL_ATOMIC_SUPPORTS_XOR |
                            MCA_BTL_ATOMIC_SUPPORTS_LAND | MCA_BTL_ATOMIC_SUPPORTS_LOR |
                            MCA_BTL_ATOMIC_SUPPORTS_LXOR | MCA_BTL_ATOMIC_SUPPORTS_SWAP |
                            MCA_BTL_ATOMIC_SUPPORTS_32BIT | MCA_BTL_ATOMIC_SUPPORTS_CSWAP |
                            MCA_BTL_ATOMIC_SUPPORTS_GLOB;
    btl->btl_registration_handle_size = sizeof(struct mca_btl_base_registration_handle_t);
    /* Only the memory of the other side needs a registration. */
    btl->btl_get_local_registration_threshold = SIZE_MAX;
    btl->btl_put_local_registration_threshold = SIZE_MAX;
    const mca_base_component_t *version = &mca_btl_velo_component.super.btl_version;
    (void)mca_btl_base_param_register((mca_base_component_t *)version, btl);
    velo_ompi_register(version, &mca_btl_velo_component.params);
    (void)mca_base_component_var_register(
        version, "serve_polls",
        "Polls for messages to one look at what others ask of this rank's memory",
        MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, 0, 0, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_READONLY,
        &mca_btl_velo_component.serve_polls);
    (void)mca_base_component_var_register(
        version, "get",
        "Messages from this many bytes on are fetched by their receiver, in one copy, where that "
        "is permitted; shorter ones go in fragments through the ring",
        MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, 0, 0, OPAL_INFO_LVL_4,
        MCA_BASE_VAR_SCOPE_READONLY, &mca_btl_velo_component.get_bytes);
    return OPAL_SUCCESS;
}

static int component_open(void)
{
    OBJ_CONSTRUCT(&btl_velo.small, opal_free_list_t);
    OBJ_CONSTRUCT(&btl_velo.large, opal_free_list_t);
    OBJ_CONSTRUCT(&btl_velo.ops, opal_free_list_t);
    OBJ_CONSTRUCT(&btl_velo.endpoints, opal_list_t);
    return OPAL_SUCCESS;
}

static int component_close(void)
{
    btl_velo_forget_endpoints();
    OBJ_DESTRUCT(&btl_velo.endpoints);
    OBJ_DESTRUCT(&btl_velo.ops);
    OBJ_DESTRUCT(&btl_velo.large);
    OBJ_DESTRUCT(&btl_velo.small);
    return OPAL_SUCCESS;
}

static int init_list(opal_free_list_t *list, opal_class_t *class_, size_t item_bytes,
                     size_t payload_bytes, int max)
{
    return opal_free_list_init(list, item_bytes, opal_cache_line_size, class_, payload_bytes,
                               payload_bytes > 0 ? opal_cache_line_size : 0, 0, max, 64, NULL, 0,
                               NULL, NULL, NULL);
}

/* A fragment is one message, so the ring bounds its length, whatever the parameters say. */
static void bound_sizes(mca_btl_base_module_t *btl, size_t data_bytes)
{
    size_t max_bytes = data_bytes / 4 < UINT16_MAX ? data_bytes / 4 : UINT16_MAX;
    max_bytes -= sizeof(struct btl_velo_front);
    if (btl->btl_max_send_size > max_bytes)
        btl->btl_max_send_size = max_bytes;
    if (btl->btl_eager_limit > btl->btl_max_send_size)
        btl->btl_eager_limit = btl->btl_max_send_size;
    if (btl->btl_rndv_eager_limit > btl->btl_max_send_size)
        btl->btl_rndv_eager_limit = btl->btl_max_send_size;
}

/* Returns the length of the shortest ring that a peer may have. */
static size_t choose_ring(struct velo_ompi_params *params)
{
    if (params->data_bytes > 0)
        return params->data_bytes;
    /* In virtual time a ring is no memory that two cores share. */
    size_t len_bytes = params->simulated ? 0 : velo_mq_ring_bytes(velo_ompi_ranks());
    params->data_bytes = (unsigned)(len_bytes > RING_BYTES_LEAST ? len_bytes : RING_BYTES_LEAST);
    return RING_BYTES_LEAST; /* Jobs that meet may have different numbers of ranks. */
}

static mca_btl_base_module_t **component_init(int *count, bool progress_threads, bool mpi_threads)
{
    (void)progress_threads;
    (void)mpi_threads;
    struct btl_velo_component *own = &mca_btl_velo_component;
    *count = 0;
    bound_sizes(&btl_velo.super, choose_ring(&own->params));
    mca_btl_base_module_t **modules = malloc(sizeof(mca_btl_base_module_t *));
    if (modules == NULL)
        return NULL;
    int rc = init_list(&btl_velo.small, OBJ_CLASS(btl_velo_fragment_small),
                       sizeof(struct btl_velo_fragment), btl_velo.super.btl_eager_limit, -1);
    if (rc == OPAL_SUCCESS)
        rc = init_list(&btl_velo.large, OBJ_CLASS(btl_velo_fragment_large),
                       sizeof(struct btl_velo_fragment), btl_velo.super.btl_max_send_size, -1);
    if (rc == OPAL_SUCCESS)
        rc = init_list(&btl_velo.ops, OBJ_CLASS(btl_velo_op), sizeof(struct btl_velo_op), 0,
                       VELO_RMA_OPS_MAX);
    /* A rank that is alone may spawn others. */
    if (rc == OPAL_SUCCESS)
        rc = velo_ompi_open(&own->super.btl_version, &own->params, &btl_velo.port);
    if (rc != OPAL_SUCCESS) {
        free(modules);
        return NULL;
    }
    /* Open MPI 4.1's osc/rdma looks for it among these flags where there are several nodes. Without
     * it ranks of a node would have to reach their node's first one by the BTL, and that one
     * itself.
     */
    btl_velo.super.btl_flags |= MCA_BTL_ATOMIC_SUPPORTS_GLOB;
    velo_ompi_idle_init(&btl_velo.idle, &own->params);
    velo_ompi_hurry_runtime();
    modules[0] = &btl_velo.super;
    *count = 1;
    return modules;
}

static int finalize(mca_btl_base_module_t *btl)
{
    (void)btl;
    velo_ompi_leave_waits();
    velo_ompi_leave_persistent();
    velo_ompi_close(&btl_velo.port);
    return OPAL_SUCCESS;
}

static int register_error(mca_btl_base_module_t *btl, mca_btl_base_module_error_cb_fn_t failed)
{
    (void)btl;
    btl_velo.failed = failed;
    return OPAL_SUCCESS;
}

void btl_velo_give_up(opal_proc_t *proc)
{
    if (btl_velo.failed != NULL)
        btl_velo.failed(&btl_velo.super, MCA_BTL_ERROR_FLAGS_FATAL, proc,
                        (char *)"btl velo lost a rank of this node");
    exit(EXIT_FAILURE); /* The callback does not return; without one nobody can be told. */
}

void btl_velo_fail(struct mca_btl_base_endpoint_t *endpoint, const char *what, int status)
{
    velo_ompi_complain(what, status);
    btl_velo_give_up(endpoint->proc);
}

/* Ask for the lines of a message while the PML looks for its receive. The last one comes first: the
 * PML copies upwards, and behind it the core would ask for lines that the sender is about to write.
 */
static inline void prefetch_message(const struct velo_msg *msg)
{
    const char *data = msg->data;
    if (msg->len_bytes <= VELO_INLINE_BYTES || msg->len_bytes > FETCH_BYTES)
        return;
    for (size_t end = msg->len_bytes; end > 0; end = (end - 1) & ~(size_t)(VELO_LINE_BYTES - 1))
        __builtin_prefetch(data + end - 1);
}

/* Header and payload of a message. False: its front makes no sense. */
static bool find_segment(const struct velo_msg *msg, mca_btl_base_segment_t *segment)
{
    uint64_t header_at = 0;
    if (msg->len_bytes > VELO_INLINE_BYTES)
        memcpy(&header_at, msg->data, sizeof header_at); /* Once: its sender can still write it. */
    if (header_at > sizeof(struct btl_velo_front) || header_at > msg->len_bytes)
        return false;
    segment->seg_addr.pval = (char *)(uintptr_t)msg->data + header_at;
    segment->seg_len = msg->len_bytes - header_at;
    return true;
}

/* The payload is handed up in place: the callback copies it out before it returns. */
static void deliver_message(const struct velo_msg *msg)
{
    mca_btl_base_segment_t segment;
    if (msg->tag >= MCA_BTL_TAG_MAX || !find_segment(msg, &segment))
        return;
    prefetch_message(msg);
    const mca_btl_active_message_callback_t *handler =
        &mca_btl_base_active_message_trigger[msg->tag];
    if (handler->cbfunc != NULL)
        VELO_OMPI_BTL_CALL(&btl_velo.super, handler, msg->tag, &segment);
}

/* Take a message that was found. In a ping-pong it does not pay to look for a second one. So we
 * look for one only after two looks in a row have found a message. */
static __attribute__((noinline)) int take(struct velo_msg *msg)
{
    int count = 0, most = btl_velo.in_stream ? BURST_MSGS : 1;
    do {
        deliver_message(msg);
        (void)velo_release(btl_velo.port.port);
    } while (++count < most && velo_try_peek(btl_velo.port.port, msg) == VELO_OK);
    btl_velo.in_stream = true;
    return count;
}

/* What finds nothing is short: a rank that waits does little else. */
static inline int receive_messages(int64_t sleep_ns)
{
    struct velo_msg msg;
    int status = sleep_ns == 0 ? velo_try_peek(btl_velo.port.port, &msg)
                               : velo_peek(btl_velo.port.port, &msg, sleep_ns);
    if (status == VELO_OK)
        return take(&msg);
    btl_velo.in_stream = false;
    return 0;
}

/* A rank that waits long looks now and then whether the others still live. */
static void nothing_came(uint32_t polls)
{
    btl_velo.empty_polls += polls;
    if (btl_velo.empty_polls < CLOCK_POLLS)
        return;
    btl_velo.empty_polls = 0;
    int64_t now_ns = velo_ompi_now_ns();
    if (now_ns - btl_velo.checked_ns < CHECK_NS)
        return;
    btl_velo.checked_ns = now_ns;
    btl_velo_check_peers();
}

/* The number of polls after which others are served. While no memory is registered, nobody has
 * anything to ask of us. In virtual time each poll serves: how many polls go before the program's
 * first message depends on the real time that a launcher takes, and must not matter. */
static inline uint32_t serve_polls(void)
{
    if (mca_btl_velo_component.params.simulated)
        return 1;
    return btl_velo.registered > 0 ? mca_btl_velo_component.serve_polls : IDLE_POLLS;
}

/* Is there more to do than to look for a message? */
static inline bool has_work(void)
{
    return btl_velo.waiting > 0 || btl_velo.ops_under_way > 0 ||
           ++btl_velo.polls >= serve_polls() || velo_ompi_idle_leaves_core(&btl_velo.idle);
}

/* Others can wait for us a little, but not for our turn at a core. */
static bool must_serve(int events)
{
    return btl_velo.ops_under_way > 0 || btl_velo.polls >= serve_polls() ||
           (events == 0 && btl_velo.idle.polls > 0);
}

/* All but receiving. Returns the number of events. *yields: once it holds nothing. */
static __attribute__((noinline)) int work(int received, bool *yields)
{
    int events = received;
    uint32_t polls = btl_velo.polls;
    velo_ompi_idle_note_thread(&btl_velo.idle);
    if (btl_velo.waiting > 0)
        events += btl_velo_send_waiting();
    if (must_serve(events)) {
        btl_velo.polls = 0;
        events += btl_velo_rma_progress();
    }
    enum velo_ompi_rest rest = velo_ompi_idle_rest(&btl_velo.idle, events);
    *yields = rest == VELO_OMPI_YIELDS;
    /* A sleep in the port would keep other threads from it. */
    if (rest == VELO_OMPI_SLEEPS && !opal_using_threads() && btl_velo.waiting == 0 &&
        btl_velo.ops_under_way == 0)
        events += receive_messages(btl_velo.idle.sleep_ns);
    if (events == 0)
        nothing_came(polls > 0 ? polls : 1);
    return events - received;
}

static int component_progress(void)
{
    /* A callback of ours that makes progress must not take the message that it was called for. */
    if (OPAL_THREAD_SWAP_32(&btl_velo.receiving, 1) != 0) {
        if (opal_using_threads())
            velo_ompi_idle_stand_back();
        return 0;
    }
    bool yields = false;
    int events = receive_messages(0);
    if (__builtin_expect(has_work(), 0))
        events += work(events, &yields);
    opal_atomic_wmb();
    btl_velo.receiving = 0;
    if (__builtin_expect(yields, 0))
        (void)sched_yield();
    return events;
}
