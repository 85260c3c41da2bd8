/* SPDX-License-Identifier: Apache-2.0 */
/* A unit in a program with an event loop of its own. */
#include <poll.h>
#include <pthread.h>

#include "stage.h"

#define NOTES_MAX 8

TEST(the_descriptor_of_a_unit_tells_of_notifications)
{
    struct velo_rma_notification notes[NOTES_MAX];
    struct pollfd file = {.events = POLLIN};
    struct velo_port *port;
    struct velo_rma *rma;
    struct requester me;
    int status;

    if (is_simulated())
        test_skip("a node's host port has no descriptor");
    port = port_open(OWNER_VPID);
    rma = rma_open(port);
    requester_open(&me, OWNER_VPID + 1);
    CHECK_FAILS(velo_rma_arm(NULL), VELO_ERR_ARG, "rma is NULL");
    CHECK_STATUS(velo_rma_arm(rma), VELO_ERR_STATE); /* Nobody has its descriptor. */
    CHECK_STATUS(velo_rma_fd(NULL, &file.fd), VELO_ERR_ARG);
    CHECK_OK(velo_rma_fd(rma, &file.fd));
    for (uint64_t i = 0; i < 100; i++) {
        const int expected = 1 + (int)(i % NOTES_MAX);
        int taken = 0;

        while ((status = velo_rma_arm(rma)) == VELO_AGAIN)
            CHECK_EQ(velo_rma_try_poll(rma, notes, NOTES_MAX), 0);
        CHECK_OK(status);
        for (int n = 0; n < expected; n++)
            CHECK_OK(SOON(velo_rma_notify(me.peer, VELO_RMA_NOTIFY_COMPLETER, i + (uint64_t)n)));
        while (taken < expected) {
            if (status == VELO_OK)
                CHECK(poll(&file, 1, TEST_PATIENCE_NS / TEST_MS) == 1);
            (void)velo_rma_progress(me.rma);
            /* Fewer than there may be: the rest is told of without a wait. */
            int now = velo_rma_try_poll(rma, notes, 3);
            CHECK(now >= 0 && now <= 3);
            for (int n = 0; n < now; n++)
                CHECK_EQ(notes[n].cookie, i + (uint64_t)(taken + n));
            taken += now;
            /* The descriptor does not tell of what came since the poll: the unit is not armed. */
            status = velo_rma_arm(rma);
            CHECK(status == VELO_OK || status == VELO_AGAIN);
        }
    }
    requester_close(&me);
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
}

static void *interrupt_soon(void *port)
{
    test_sleep_ns(20 * TEST_MS);
    velo_port_interrupt(port);
    return NULL;
}

/* Each interrupt ends one wait of the port and one of its unit: the one that is under way, or the
 * next. */
TEST(a_wait_of_a_unit_can_be_interrupted_from_another_thread)
{
    struct velo_rma_notification note;
    struct velo_port *port = port_open(OWNER_VPID);
    struct velo_rma *rma;
    pthread_t thread;
    char byte;

    velo_port_interrupt(port); /* A unit that is opened later has not heard of it. */
    rma = rma_open(port);
    CHECK_STATUS(velo_rma_poll(rma, &note, 1, TEST_MS), VELO_TIMEOUT);
    CHECK_STATUS(velo_recv(port, &byte, 1, NULL, VELO_FOREVER), VELO_ERR_INTERRUPTED);
    velo_port_interrupt(port);
    CHECK_EQ(velo_rma_try_poll(rma, &note, 1), 0); /* Calls that do not wait take no notice. */
    CHECK_STATUS(velo_rma_poll(rma, &note, 1, VELO_FOREVER), VELO_ERR_INTERRUPTED);
    CHECK_STATUS(velo_recv(port, &byte, 1, NULL, VELO_FOREVER), VELO_ERR_INTERRUPTED);
    CHECK_EQ(pthread_create(&thread, NULL, interrupt_soon, port), 0);
    CHECK_STATUS(velo_rma_poll(rma, &note, 1, VELO_FOREVER), VELO_ERR_INTERRUPTED);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_STATUS(velo_rma_poll(rma, &note, 1, TEST_MS), VELO_TIMEOUT);
    CHECK_OK(velo_rma_close(rma));
    velo_port_interrupt(port);
    CHECK_OK(velo_port_close(port));
}

TEST(an_interrupt_ends_the_wait_for_the_descriptor_of_a_unit)
{
    struct pollfd file = {.events = POLLIN};
    struct velo_port *port;
    struct velo_rma *rma;
    pthread_t thread;

    if (is_simulated())
        test_skip("a node's host port has no descriptor");
    port = port_open(OWNER_VPID);
    rma = rma_open(port);
    CHECK_OK(velo_rma_fd(rma, &file.fd));
    CHECK_OK(velo_rma_arm(rma));
    CHECK_EQ(pthread_create(&thread, NULL, interrupt_soon, port), 0);
    CHECK(poll(&file, 1, TEST_PATIENCE_NS / TEST_MS) == 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_STATUS(velo_rma_arm(rma), VELO_ERR_INTERRUPTED);
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
}
