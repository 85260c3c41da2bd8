/* SPDX-License-Identifier: Apache-2.0 */
/* A program that asks whether something has come, and goes on, is not kept until something comes.
 */
#include <stdio.h>

#include <velo/mq.h>
#include <velo/rma.h>
#include <velo/velo.h>

#include "test.h"

#define LOOKS 100
/* A look is a poll of 30 ns and a call; 100 µs is what who waits may be kept at a time. */
#define LOOKS_MAX_NS (20 * TEST_MS / 1000)

static struct velo_port *port;
static struct velo_rma *rma;
static struct velo_mq *mq;

static void look_try_recv(void)
{
    CHECK_STATUS(velo_try_recv(port, &(char){0}, 1, NULL), VELO_AGAIN);
}

static void look_peek(void)
{
    CHECK_STATUS(velo_try_peek(port, &(struct velo_msg){0}), VELO_AGAIN);
}
static void look_mq_progress(void) { CHECK_EQ(velo_mq_progress(mq), 0); }

static void look_rma_progress(void) { CHECK_EQ(velo_rma_progress(rma), 0); }

static void look_notification(void)
{
    CHECK_EQ(velo_rma_try_poll(rma, &(struct velo_rma_notification){0}, 1), 0);
}

static void look(const char *name, void (*once)(void))
{
    int64_t begin_ns = test_now_ns();
    for (int i = 0; i < LOOKS; i++)
        once();
    int64_t took_ns = test_now_ns() - begin_ns;
    if (took_ns > LOOKS_MAX_NS)
        (void)fprintf(stderr, "%s: %d looks took %lld ns\n", name, LOOKS, (long long)took_ns);
    CHECK(took_ns <= LOOKS_MAX_NS);
}

TEST(who_looks_in_vain_goes_on)
{
    port = port_open(0);
    CHECK_OK(velo_rma_open(port, NULL, &rma));
    look("velo_try_recv", look_try_recv);
    look("velo_try_peek", look_peek);
    look("velo_rma_progress", look_rma_progress);
    look("velo_rma_try_poll", look_notification);
    CHECK_OK(velo_mq_open(port, NULL, NULL, &mq));
    look("velo_mq_progress", look_mq_progress);
    CHECK_OK(velo_mq_close(mq));
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
}
