/* SPDX-License-Identifier: Apache-2.0 */
#include "queue.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

bool queue_add(struct queue *queue, const struct settings *settings, const struct velo_frame *frame)
{
    struct kept *kept = malloc(sizeof *kept + frame->payload_bytes);
    if (!kept)
        return false;
    *kept = (struct kept){.due_us = settings->delay_us ? now_us() + settings->delay_us : 0,
                          .frame = *frame};
    if (frame->payload_bytes)
        memcpy(kept->payload, frame->payload, frame->payload_bytes);
    kept->frame.payload = kept->payload;
    struct kept **at = &queue->first;
    while (*at)
        at = &(*at)->next;
    *at = kept;
    queue->len++;
    return true;
}

static uint32_t draw_number(struct queue *queue, const struct settings *settings, uint32_t below)
{
    if (queue->random == 0)
        queue->random = settings->seed + UINT64_C(1);
    queue->random = queue->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(queue->random >> 33) % below;
}

/* May a frame go before all that came before it? DATA may pass DATA and SLOT. A SLOT must not pass
 * the DATA of its own message; to be safe it passes no DATA at all. */
static bool may_overtake(const struct queue *queue, const struct kept *kept)
{
    uint32_t kind = kept->frame.kind;
    if (kind != VELO_FRAME_DATA && kind != VELO_FRAME_SLOT)
        return kept == queue->first;
    for (const struct kept *before = queue->first; before != kept; before = before->next) {
        bool is_slot = before->frame.kind == VELO_FRAME_SLOT;
        bool is_data = before->frame.kind == VELO_FRAME_DATA;
        if (!is_slot && (kind == VELO_FRAME_SLOT || !is_data))
            return false;
    }
    return true;
}

struct kept *queue_take(struct queue *queue, const struct settings *settings)
{
    struct kept **at = &queue->first;
    if (!*at || (settings->delay_us && queue->first->due_us > now_us()))
        return NULL;
    for (uint32_t skip = settings->reorder ? draw_number(queue, settings, settings->reorder) : 0;
         skip > 0 && *at; skip--)
        at = &(*at)->next;
    if (!*at || !may_overtake(queue, *at))
        at = &queue->first;
    struct kept *kept = *at;
    *at = kept->next;
    queue->len--;
    return kept;
}

void queue_clear(struct queue *queue)
{
    while (queue->first) {
        struct kept *kept = queue->first;
        queue->first = kept->next;
        free(kept);
    }
    queue->len = 0;
}
