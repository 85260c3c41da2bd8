/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process makes of a driver that it was not built with: it goes on with no layout that it
 * does not know, and tells what is wrong. The driver's answers are made up here (--wrap=ioctl).
 */
#include "../../driver/include/uapi/linux/velo.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host_io.h"
#include "test.h"

/* Can be opened, and nothing of it can be mapped. */
#define CARD "/dev/null"

static struct velo_card_take answer;
static int answer_error;
static char told[256];

int __wrap_ioctl(int file, unsigned long call, ...); // NOLINT(bugprone-reserved-identifier)
int __wrap_ioctl(int file, unsigned long call, ...)
{
    va_list rest;
    va_start(rest, call);
    struct velo_card_take *take = va_arg(rest, struct velo_card_take *);
    va_end(rest);
    CHECK(file > 2);
    CHECK_EQ(call, VELO_CARD_TAKE);
    CHECK_EQ(take->size, sizeof *take);
    CHECK_EQ(take->flags, 0);
    if (answer_error) {
        errno = answer_error;
        return -1;
    }
    *take = answer;
    return 0;
}

static int keep(int status, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    (void)vsnprintf(told, sizeof told, format, rest);
    va_end(rest);
    return status;
}

static int count_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    CHECK(folder);
    while (readdir(folder))
        count++;
    (void)closedir(folder);
    return count;
}

/* Nothing of what fails stays open. */
static int open_context(void)
{
    struct host_context context;
    int before = count_files();
    CHECK(setenv("VELO_CARD", CARD, 1) == 0);
    host_fail = keep;
    told[0] = 0;
    int status = host_io_card.context_open(0, VELO_ID(0, 3), false, &context);
    CHECK_EQ(count_files(), before);
    CHECK(strstr(told, CARD));
    return status;
}

static void answer_well(void)
{
    answer_error = 0;
    answer = (struct velo_card_take){.size = sizeof answer,
                                     .number = 3,
                                     .opened = 1,
                                     .ring_slots = 64,
                                     .queue_entries = 256,
                                     .ring_layout = VELO_CARD_RING_LAYOUT,
                                     .queue_layout = VELO_CARD_QUEUE_LAYOUT,
                                     .descriptor_layout = VELO_CARD_DESCRIPTOR_LAYOUT,
                                     .stores_layout = VELO_CARD_STORES_LAYOUT};
}

TEST(a_layout_that_the_library_does_not_know_is_refused)
{
    uint32_t *const layouts[] = {&answer.ring_layout, &answer.queue_layout,
                                 &answer.descriptor_layout, &answer.stores_layout};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        answer_well();
        *layouts[i] += 76;
        CHECK_STATUS(open_context(), VELO_ERR_VERSION);
        CHECK(strstr(told, "layouts") && strstr(told, "77"));
        *layouts[i] = 0; /* As a driver leaves it whose struct is shorter. */
        CHECK_STATUS(open_context(), VELO_ERR_VERSION);
    }
    /* The one that it knows is none of the reasons. */
    answer_well();
    CHECK_STATUS(open_context(), VELO_ERR_SYSTEM);
    CHECK(strstr(told, "mapped"));
}

TEST(each_refusal_of_the_driver_says_why)
{
    const struct {
        int error, status;
        const char *why;
    } refusals[] = {
        {ENOTTY, VELO_ERR_VERSION, "older than this library"},
        {E2BIG, VELO_ERR_VERSION, "older than this library"},
        {ENOSPC, VELO_ERR_FULL, "all are in use"},
        {EBUSY, VELO_ERR_FULL, "busy"},
        {EDQUOT, VELO_ERR_FULL, "user_shares"},
        {EPERM, VELO_ERR_ACCESS, "not permitted"},
        {ENODEV, VELO_ERR_STATE, "No such device"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        answer_error = refusals[i].error;
        CHECK_STATUS(open_context(), refusals[i].status);
        CHECK(strstr(told, refusals[i].why));
    }
}
