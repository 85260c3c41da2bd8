/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a connection, by number. */
#include "card.h"

#include <stdlib.h>

/* Room for the number of a line. */
static bool grow(struct lines *lines, uint32_t number)
{
    uint32_t len = lines->len ? lines->len : 8;
    while (len <= number)
        len *= 2;
    if (len == lines->len)
        return true;
    struct line **at = realloc(lines->at, len * sizeof *at);
    if (at)
        lines->at = at;
    uint16_t *uses = at ? realloc(lines->uses, len * sizeof *uses) : NULL;
    if (!uses)
        return false;
    lines->uses = uses;
    for (uint32_t i = lines->len; i < len; i++) {
        at[i] = NULL;
        uses[i] = 0;
    }
    lines->len = len;
    return true;
}

static struct line *line_new(struct conn *conn, uint16_t number, bool is_dialed)
{
    struct lines *lines = &conn->lines[is_dialed];
    struct line *line = calloc(1, sizeof *line);
    if (!line)
        return NULL;
    line->conn = conn;
    line->number = number;
    line->is_dialed = is_dialed;
    lines->at[number] = line;
    return line;
}

int line_dial(struct conn *conn, struct velo_link *link, struct line **out)
{
    struct lines *lines = &conn->lines[true];
    const struct velo_transport_calls *calls = conn->endpoint->calls;
    uint32_t number = 0;
    while (number < lines->len && lines->at[number])
        number++;
    if (number == LINES_MAX)
        return calls->fail(VELO_ERR_FULL, "%u connections to port %u.%u are open; close some",
                           LINES_MAX, VELO_ID_NODE(conn->peer), VELO_ID_VPID(conn->peer));
    struct line *line = grow(lines, number) ? line_new(conn, (uint16_t)number, true) : NULL;
    if (!line)
        return calls->fail(VELO_ERR_NO_MEMORY, "no memory for a line");
    line->link = link;
    line->use = ++lines->uses[number];
    *out = line;
    return VELO_OK;
}

static void line_free(struct line *line)
{
    line->conn->lines[line->is_dialed].at[line->number] = NULL;
    free(line);
}

/* Tell the other side that this one has hung up. False: there is no room for that. */
static bool send_gone(struct line *line)
{
    const struct velo_frame gone = {.kind = WIRE_GONE};
    if (line->conn->state == CONN_OPEN && !line->is_gone && frame_send(line, &gone) != VELO_OK)
        return false;
    if (line->owes_gone)
        line->conn->owed_gone--;
    line_free(line);
    return true;
}

void line_hang_up(struct line *line)
{
    line->link = NULL;
    if (line->conn->owed_gone == 0 && send_gone(line))
        return;
    line->owes_gone = line->conn->endpoint->is_owing = true;
    line->conn->owed_gone++;
}

void lines_push(struct conn *conn)
{
    for (int i = 0; i < 2; i++)
        for (uint32_t n = 0; n < conn->lines[i].len && conn->owed_gone > 0; n++) {
            struct line *line = conn->lines[i].at[n];
            if (line && line->owes_gone && !send_gone(line)) {
                conn->endpoint->is_owing = true;
                return;
            }
        }
}

/* Also one that this side has hung up. */
static struct line *line_of(const struct conn *conn, const struct wire_envelope *envelope)
{
    const struct lines *lines = &conn->lines[!envelope->from_dialer];
    struct line *line = envelope->line < lines->len ? lines->at[envelope->line] : NULL;
    return line && line->use == envelope->use ? line : NULL;
}

void line_gone(struct conn *conn, const struct wire_envelope *envelope)
{
    struct line *line = line_of(conn, envelope);
    if (!line)
        return;
    line->is_gone = true;
    if (line->link)
        conn->endpoint->calls->lost(line->link, VELO_ERR_PEER_DEAD);
    else
        (void)send_gone(line);
}

struct line *line_find(const struct conn *conn, const struct wire_envelope *envelope)
{
    struct line *line = line_of(conn, envelope);
    return line && line->link ? line : NULL;
}

struct line *line_ring(struct conn *conn, const struct wire_envelope *envelope)
{
    struct endpoint *endpoint = conn->endpoint;
    struct lines *lines = &conn->lines[false];
    if (envelope->line >= LINES_MAX || !grow(lines, envelope->line))
        return NULL;
    if (lines->at[envelope->line])
        return NULL; /* The dialer hangs a line up before it uses the number again. */
    struct line *line = line_new(conn, envelope->line, false);
    if (!line)
        return NULL;
    line->use = envelope->use;
    line->link = endpoint->calls->rang(endpoint->attr.owner, line);
    if (line->link)
        return line;
    line_hang_up(line);
    return NULL;
}

void lines_lose(struct conn *conn, int status)
{
    for (int i = 0; i < 2; i++)
        for (uint32_t n = 0; n < conn->lines[i].len; n++) {
            struct line *line = conn->lines[i].at[n];
            if (line && line->link)
                conn->endpoint->calls->lost(line->link, status);
        }
}

void lines_free(struct conn *conn)
{
    for (int i = 0; i < 2; i++) {
        for (uint32_t n = 0; n < conn->lines[i].len; n++)
            free(conn->lines[i].at[n]);
        free(conn->lines[i].at);
        free(conn->lines[i].uses);
        conn->lines[i] = (struct lines){0};
    }
    conn->owed_gone = 0;
}
