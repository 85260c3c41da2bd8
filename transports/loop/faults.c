/* SPDX-License-Identifier: Apache-2.0 */
#include "faults.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The settings of $VELO_LOOP; 0: this one is not set. */
static struct {
    uint32_t payload, delay_us, partial, full, reorder, die, seed;
} bad;

static const char *no_setting;

extern struct velo_transport velo_transport;

/* ---- settings -------------------------------------------------------------------------------- */

static uint32_t *find_setting(const char *name, size_t len)
{
    static const struct {
        const char *name;
        uint32_t *value;
    } settings[] = {{"payload", &bad.payload}, {"delay_us", &bad.delay_us},
                    {"partial", &bad.partial}, {"full", &bad.full},
                    {"reorder", &bad.reorder}, {"die", &bad.die},
                    {"seed", &bad.seed}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (strlen(settings[i].name) == len && strncmp(settings[i].name, name, len) == 0)
            return settings[i].value;
    return NULL;
}

/* Runs when the plug-in is loaded, before any thread can look at the settings. */
__attribute__((constructor)) static void read_settings(void)
{
    const char *text = getenv("VELO_LOOP");
    while (text && *text) {
        size_t len = strcspn(text, "=");
        uint32_t *setting = find_setting(text, len);
        char *end = NULL;
        unsigned long value = text[len] ? strtoul(text + len + 1, &end, 10) : 0;
        if (!setting || !end || end == text + len + 1 || (*end && *end != ',') ||
            value > 1000000000) {
            no_setting = text;
            return;
        }
        *setting = (uint32_t)value;
        text = *end ? end + 1 : end;
    }
    if (bad.payload && bad.payload < VELO_FRAME_BYTES_MIN)
        bad.payload = VELO_FRAME_BYTES_MIN;
    if (bad.payload && bad.payload < VELO_FRAME_BYTES_MAX)
        velo_transport.payload_bytes_max = bad.payload;
    if (bad.reorder > FAULTS_QUEUE_MAX)
        bad.reorder = FAULTS_QUEUE_MAX;
}

const char *faults_no_setting(void) { return no_setting; }

bool faults_may_delay(void) { return bad.delay_us || bad.reorder; }

uint32_t faults_frames_per_look(uint32_t usual) { return bad.partial ? bad.partial : usual; }

/* ---- sending --------------------------------------------------------------------------------- */

bool faults_no_room(struct faults *faults)
{
    uint32_t sends = ++faults->sends;
    return sends <= bad.full || (bad.partial && sends % bad.partial == 0);
}

/* ---- the queue of a line --------------------------------------------------------------------- */

static uint32_t draw(struct faults *faults, uint32_t below)
{
    if (faults->random == 0)
        faults->random = bad.seed + 1;
    faults->random = faults->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(faults->random >> 33) % below;
}

static int64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

bool faults_has_room(const struct faults *faults)
{
    return faults->queue_len < (faults_may_delay() ? FAULTS_QUEUE_MAX : 1);
}

void faults_put(struct faults *faults, struct packet *packet)
{
    faults->queue[faults->queue_len].due_us = bad.delay_us ? now_us() + bad.delay_us : 0;
    faults->queue[faults->queue_len++].packet = packet;
}

/* May the packet at a place go before all that came before it? DATA may pass DATA and SLOT. A SLOT
 * must not pass the DATA of its own message; to be safe it passes no DATA at all. */
static bool may_overtake(const struct faults *faults, uint32_t at)
{
    uint32_t kind = faults->queue[at].packet->kind;
    if (kind != VELO_FRAME_DATA && kind != VELO_FRAME_SLOT)
        return at == 0;
    for (uint32_t i = 0; i < at; i++) {
        uint32_t before = faults->queue[i].packet->kind;
        bool is_slot_past_slot = kind == VELO_FRAME_SLOT && before == VELO_FRAME_SLOT;
        if (kind == VELO_FRAME_DATA ? before != VELO_FRAME_DATA && before != VELO_FRAME_SLOT
                                    : !is_slot_past_slot)
            return false;
    }
    return true;
}

struct packet *faults_take(struct faults *faults)
{
    if (faults->queue_len == 0 || (bad.delay_us && faults->queue[0].due_us > now_us()))
        return NULL;
    uint32_t at = bad.reorder ? draw(faults, bad.reorder) : 0;
    if (at >= faults->queue_len || !may_overtake(faults, at))
        at = 0;
    struct packet *packet = faults->queue[at].packet;
    faults->queue_len--;
    faults->frames++;
    memmove(faults->queue + at, faults->queue + at + 1,
            (faults->queue_len - at) * sizeof *faults->queue);
    return packet;
}

bool faults_is_cut(const struct faults *faults) { return bad.die && faults->frames >= bad.die; }

void faults_free(struct faults *faults)
{
    for (uint32_t i = 0; i < faults->queue_len; i++)
        free(faults->queue[i].packet);
    faults->queue_len = 0;
}
