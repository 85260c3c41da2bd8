/* SPDX-License-Identifier: Apache-2.0 */
/* A requester that lives, but is stopped in the middle of an operation on our memory. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <velo/rma.h>

#include "base/hook.h"
#include "test.h"

struct order {
    _Atomic velo_rma_key_t key;
};

static void stop_inside(unsigned point)
{
    if (point == HOOK_RMA_ENTERED)
        (void)raise(SIGSTOP);
}

static void put_and_stop(void *arg)
{
    struct order *order = arg;
    struct velo_port *port = port_open(1);
    struct velo_rma *rma;
    struct velo_rma_peer *peer;

    CHECK_OK(velo_rma_open(port, NULL, &rma));
    CHECK_OK(velo_rma_connect(rma, VELO_ID(0, 0), &peer, TEST_PATIENCE_NS));
    velo_rma_key_t key;
    while ((key = atomic_load(&order->key)) == 0)
        test_sleep_ns(TEST_MS);
    velo_test_hook = stop_inside;
    /* It has said which memory it uses; when it goes on, the key is worthless. */
    CHECK_STATUS(velo_rma_put(peer, "x", 1, velo_rma_place(key, 0), 0, 0), VELO_ERR_ACCESS);
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
}

/* After the wait for it has begun. */
static void wake_up(void *stopped)
{
    test_sleep_ns(50 * TEST_MS);
    CHECK_EQ(kill(*(pid_t *)stopped, SIGCONT), 0);
}

TEST(deregistering_waits_no_longer_than_it_may_for_a_requester_that_is_stopped)
{
    struct order *order = test_shared_alloc(sizeof(*order));
    pid_t child = child_start(put_and_stop, order);
    struct velo_port *port = port_open(0);
    struct velo_rma *rma;
    struct velo_rma_mem *mem;
    int state;

    CHECK_OK(velo_rma_open(port, NULL, &rma));
    CHECK_OK(velo_rma_mem_alloc(rma, 8, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY, &mem));
    char *memory = velo_rma_mem_addr(mem);
    atomic_store(&order->key, velo_rma_mem_key(mem));
    CHECK_EQ(waitpid(child, &state, WUNTRACED), child);
    CHECK(WIFSTOPPED(state));
    CHECK_STATUS(velo_rma_mem_deregister(mem, -2), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_mem_deregister(mem, 0), VELO_TIMEOUT);
    int64_t start_ns = test_now_ns();
    CHECK_STATUS(velo_rma_mem_deregister(mem, 30 * TEST_MS), VELO_TIMEOUT);
    CHECK(test_now_ns() - start_ns >= 30 * TEST_MS);
    CHECK_EQ(memory[0], 0); /* It is mapped still. */
    pid_t waker = child_start(wake_up, &child);
    CHECK_OK(velo_rma_mem_deregister(mem, INT64_MAX)); /* A time that no clock counts to. */
    child_join(waker);
    child_join(child);
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
}

/* Half a second by itself; as long as the port was asked to, otherwise. */
TEST(closing_a_unit_waits_no_longer_than_its_port_lingers_for_a_requester_that_is_stopped)
{
    struct order *order = test_shared_alloc(sizeof(*order));
    pid_t child = child_start(put_and_stop, order);
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port;
    struct velo_rma *rma;
    struct velo_rma_mem *mem, *other;
    int state;

    attr.vpid = 0;
    attr.linger_ns = -2;
    CHECK_FAILS(velo_port_open(&attr, &port), VELO_ERR_ARG, "linger_ns");
    attr.linger_ns = 40 * TEST_MS;
    CHECK_OK(velo_port_open(&attr, &port));
    CHECK_OK(velo_rma_open(port, NULL, &rma));
    CHECK_OK(velo_rma_mem_alloc(rma, 8, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY, &mem));
    CHECK_OK(velo_rma_mem_alloc(rma, 8, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY, &other));
    char *memory = velo_rma_mem_addr(mem);
    atomic_store(&order->key, velo_rma_mem_key(mem));
    CHECK_EQ(waitpid(child, &state, WUNTRACED), child);
    CHECK(WIFSTOPPED(state));
    int64_t start_ns = test_now_ns();
    CHECK_FAILS(velo_rma_close(rma), VELO_TIMEOUT, "close it again");
    CHECK(test_now_ns() - start_ns >= 40 * TEST_MS);
    CHECK_EQ(memory[0], 0); /* It is mapped still. */
    CHECK_EQ(kill(child, SIGCONT), 0);
    int status;
    while ((status = velo_rma_close(rma)) == VELO_TIMEOUT)
        ;
    CHECK_OK(status);
    child_join(child);
    CHECK_OK(velo_port_close(port));
}
