/* SPDX-License-Identifier: Apache-2.0 */
#include "lines.h"

#include <stdlib.h>

void lines_init(struct lines *lines, struct endpoint_base *endpoint, velo_id_t peer)
{
    *lines = (struct lines){.endpoint = endpoint, .peer = peer};
}

/* Room for the number of a line. */
static bool grow(struct line_table *table, uint32_t number)
{
    uint32_t len = table->len ? table->len : 8;
    while (len <= number)
        len *= 2;
    if (len == table->len)
        return true;
    struct line **at = realloc(table->at, len * sizeof *at);
    if (at)
        table->at = at;
    uint16_t *uses = at ? realloc(table->uses, len * sizeof *uses) : NULL;
    if (!uses)
        return false;
    table->uses = uses;
    for (uint32_t i = table->len; i < len; i++) {
        at[i] = NULL;
        uses[i] = 0;
    }
    table->len = len;
    return true;
}

static struct line *line_new(struct lines *lines, uint16_t number, bool is_dialed)
{
    struct line *line = calloc(1, lines->endpoint->line_use->line_bytes);
    if (!line)
        return NULL;
    line->lines = lines;
    line->number = number;
    line->is_dialed = is_dialed;
    lines->tables[is_dialed].at[number] = line;
    return line;
}

int line_dial(struct lines *lines, struct velo_link *link, void **out)
{
    struct line_table *table = &lines->tables[true];
    uint32_t number = 0;
    while (number < table->len && table->at[number])
        number++;
    if (number == LINES_MAX)
        return lines->endpoint->calls->fail(
            VELO_ERR_FULL, "%u connections to port %u.%u are open; close some", LINES_MAX,
            VELO_ID_NODE(lines->peer), VELO_ID_VPID(lines->peer));
    struct line *line = grow(table, number) ? line_new(lines, (uint16_t)number, true) : NULL;
    if (!line)
        return lines->endpoint->calls->fail(VELO_ERR_NO_MEMORY, "no memory for a line");
    line->link = link;
    line->use = ++table->uses[number];
    *out = line;
    return VELO_OK;
}

static void set_full(struct line *line, bool is_full)
{
    line->lines->full += (uint32_t)is_full - (uint32_t)line->is_full;
    line->is_full = is_full;
}

static void line_free(struct line *line)
{
    set_full(line, false);
    if (line->lines->endpoint->line_use->forget)
        line->lines->endpoint->line_use->forget(line);
    line->lines->tables[line->is_dialed].at[line->number] = NULL;
    free(line);
}

/* Tell the other side that this one has hung up. False: there is no room for that. */
static bool send_gone(struct line *line)
{
    struct lines *lines = line->lines;
    const struct velo_frame gone = {.kind = WIRE_GONE};
    if (lines->endpoint->line_use->is_open(lines) && !line->is_gone &&
        lines->endpoint->line_use->send(line, &gone) != VELO_OK)
        return false;
    if (line->owes_gone)
        lines->owed_gone--;
    line_free(line);
    return true;
}

void line_hang_up(struct line *line)
{
    struct lines *lines = line->lines;
    line->link = NULL;
    if (lines->owed_gone == 0 && send_gone(line))
        return;
    line->owes_gone = true;
    lines->owed_gone++;
    lines->endpoint->is_owing = true;
}

uint32_t line_put_frame(const struct line *line, const struct velo_frame *frame, char *out)
{
    const struct wire_envelope envelope = {.line = line->number,
                                           .use = line->use,
                                           .payload_bytes = (uint16_t)frame->payload_bytes,
                                           .kind = (uint8_t)frame->kind,
                                           .from_dialer = line->is_dialed};
    uint32_t len_bytes = wire_frame_bytes(frame->kind, frame->payload_bytes);
    uint32_t words_bytes = 8 * velo_frame_words(frame->kind);
    memset(out + len_bytes - 8, 0, 8); /* The padding. */
    memcpy(out, &envelope, sizeof envelope);
    memcpy(out + sizeof envelope, frame->word, words_bytes);
    if (frame->payload_bytes)
        memcpy(out + sizeof envelope + words_bytes, frame->payload, frame->payload_bytes);
    return len_bytes;
}

int line_send(struct line *line, const struct velo_frame *frame)
{
    int status = line->lines->endpoint->line_use->send(line, frame);
    if (status == VELO_AGAIN)
        set_full(line, true);
    return status;
}

void lines_tell_room(struct lines *lines)
{
    for (int i = 0; i < 2; i++)
        for (uint32_t n = 0; n < lines->tables[i].len && lines->full > 0; n++) {
            struct line *line = lines->tables[i].at[n];
            if (!line || !line->is_full)
                continue;
            set_full(line, false);
            if (line->link)
                lines->endpoint->calls->room_came(line->link);
        }
}

void lines_push(struct lines *lines)
{
    for (int i = 0; i < 2; i++)
        for (uint32_t n = 0; n < lines->tables[i].len && lines->owed_gone > 0; n++) {
            struct line *line = lines->tables[i].at[n];
            if (line && line->owes_gone && !send_gone(line)) {
                lines->endpoint->is_owing = true;
                return;
            }
        }
}

/* Also one that this side has hung up. */
static struct line *line_of(const struct lines *lines, const struct wire_envelope *envelope)
{
    const struct line_table *table = &lines->tables[!envelope->from_dialer];
    struct line *line = envelope->line < table->len ? table->at[envelope->line] : NULL;
    return line && line->use == envelope->use ? line : NULL;
}

/* The other side has hung up. */
static void line_gone(struct lines *lines, const struct wire_envelope *envelope)
{
    struct line *line = line_of(lines, envelope);
    if (!line)
        return;
    line->is_gone = true;
    if (line->link)
        lines->endpoint->calls->line_lost(line->link, VELO_ERR_PEER_DEAD);
    else
        (void)send_gone(line);
}

/* The line that a frame is for; NULL: it is hung up, or was never there. */
static struct line *line_find(const struct lines *lines, const struct wire_envelope *envelope)
{
    struct line *line = line_of(lines, envelope);
    return line && line->link ? line : NULL;
}

/* The other side has dialed. NULL: the library does not want the line. */
static struct line *line_ring(struct lines *lines, const struct wire_envelope *envelope)
{
    struct line_table *table = &lines->tables[false];
    if (envelope->line >= LINES_MAX || !grow(table, envelope->line))
        return NULL;
    if (table->at[envelope->line])
        return NULL; /* The dialer hangs a line up before it uses the number again. */
    struct line *line = line_new(lines, envelope->line, false);
    if (!line)
        return NULL;
    line->use = envelope->use;
    line->link = lines->endpoint->calls->line_rang(lines->endpoint->attr.owner, line);
    if (line->link)
        return line;
    line_hang_up(line);
    return NULL;
}

/* The transport vouches for the sender of a connection. */
static bool is_its_own(const struct lines *lines, uint32_t generation,
                       const struct velo_frame *frame)
{
    struct velo_frame_open open;
    if (frame->payload_bytes != sizeof open)
        return false;
    memcpy(&open, frame->payload, sizeof open);
    return open.source == lines->peer && open.generation == generation;
}

bool lines_take(struct lines *lines, uint32_t generation, const struct wire_envelope *envelope,
                const struct velo_frame *frame)
{
    struct line *line;
    if (frame->kind == WIRE_GONE) {
        line_gone(lines, envelope);
        return true;
    }
    if (frame->kind == VELO_FRAME_OPEN && envelope->from_dialer) {
        if (!is_its_own(lines, generation, frame))
            return false;
        line = line_ring(lines, envelope);
    } else {
        line = line_find(lines, envelope);
    }
    if (line)
        lines->endpoint->calls->frame_came(line->link, frame);
    return true;
}

void lines_lose(struct lines *lines, int status)
{
    for (int i = 0; i < 2; i++)
        for (uint32_t n = 0; n < lines->tables[i].len; n++) {
            struct line *line = lines->tables[i].at[n];
            if (line && line->link)
                lines->endpoint->calls->line_lost(line->link, status);
        }
}

void lines_move(struct lines *from, struct lines *to)
{
    for (int i = 0; i < 2; i++) {
        to->tables[i] = from->tables[i];
        from->tables[i] = (struct line_table){0};
        for (uint32_t n = 0; n < to->tables[i].len; n++)
            if (to->tables[i].at[n])
                to->tables[i].at[n]->lines = to;
    }
    to->owed_gone = from->owed_gone;
    to->full = from->full;
    from->owed_gone = from->full = 0;
}

void lines_free(struct lines *lines)
{
    for (int i = 0; i < 2; i++) {
        for (uint32_t n = 0; n < lines->tables[i].len; n++)
            free(lines->tables[i].at[n]);
        free(lines->tables[i].at);
        free(lines->tables[i].uses);
        lines->tables[i] = (struct line_table){0};
    }
    lines->owed_gone = lines->full = 0;
}
