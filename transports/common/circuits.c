/* SPDX-License-Identifier: Apache-2.0 */
#include "circuits.h"

#include <stdlib.h>

void circuits_init(struct circuits *circuits, struct endpoint_base *endpoint, velo_id_t peer)
{
    *circuits = (struct circuits){.endpoint = endpoint, .peer = peer};
}

/* Room for the number of a circuit. */
static bool grow_table(struct circuit_table *table, uint32_t number)
{
    uint32_t len = table->len ? table->len : 8;
    while (len <= number)
        len *= 2;
    if (len == table->len)
        return true;
    struct circuit **at = realloc(table->at, len * sizeof *at);
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

static struct circuit *circuit_new(struct circuits *circuits, uint16_t number, bool is_dialed)
{
    struct circuit *circuit = calloc(1, circuits->endpoint->circuit_use->circuit_bytes);
    if (!circuit)
        return NULL;
    circuit->circuits = circuits;
    circuit->number = number;
    circuit->is_dialed = is_dialed;
    circuits->tables[is_dialed].at[number] = circuit;
    return circuit;
}

int circuit_dial(struct circuits *circuits, struct velo_link *link, void **out)
{
    struct circuit_table *table = &circuits->tables[true];
    uint32_t number = 0;
    while (number < table->len && table->at[number])
        number++;
    if (number == CIRCUITS_MAX)
        return circuits->endpoint->calls->fail(
            VELO_ERR_FULL, "%u connections to port %u.%u are open; close some", CIRCUITS_MAX,
            VELO_ID_NODE(circuits->peer), VELO_ID_VPID(circuits->peer));
    struct circuit *circuit =
        grow_table(table, number) ? circuit_new(circuits, (uint16_t)number, true) : NULL;
    if (!circuit)
        return circuits->endpoint->calls->fail(VELO_ERR_NO_MEMORY, "no memory for a circuit");
    circuit->link = link;
    circuit->use = ++table->uses[number];
    *out = circuit;
    return VELO_OK;
}

static void set_full(struct circuit *circuit, bool is_full)
{
    circuit->circuits->full += (uint32_t)is_full - (uint32_t)circuit->is_full;
    circuit->is_full = is_full;
}

static void circuit_free(struct circuit *circuit)
{
    set_full(circuit, false);
    if (circuit->circuits->endpoint->circuit_use->forget)
        circuit->circuits->endpoint->circuit_use->forget(circuit);
    circuit->circuits->tables[circuit->is_dialed].at[circuit->number] = NULL;
    free(circuit);
}

/* Tell the other side that this one has hung up. False: there is no room for that. */
static bool send_gone(struct circuit *circuit)
{
    struct circuits *circuits = circuit->circuits;
    const struct velo_frame gone = {.kind = WIRE_GONE};
    if (circuits->endpoint->circuit_use->is_open(circuits) && !circuit->is_gone &&
        circuits->endpoint->circuit_use->send(circuit, &gone) != VELO_OK)
        return false;
    if (circuit->owes_gone)
        circuits->owed_gone--;
    circuit_free(circuit);
    return true;
}

void circuit_hang_up(void *self)
{
    struct circuit *circuit = self;
    struct circuits *circuits = circuit->circuits;
    circuit->link = NULL;
    if (circuits->owed_gone == 0 && send_gone(circuit))
        return;
    circuit->owes_gone = true;
    circuits->owed_gone++;
    circuits->endpoint->is_owing = true;
}

uint32_t circuit_put_frame(const struct circuit *circuit, const struct velo_frame *frame, char *out)
{
    const struct wire_envelope envelope = {.circuit = circuit->number,
                                           .use = circuit->use,
                                           .payload_bytes = (uint16_t)frame->payload_bytes,
                                           .kind = (uint8_t)frame->kind,
                                           .from_dialer = circuit->is_dialed};
    uint32_t len_bytes = wire_frame_bytes(frame->kind, frame->payload_bytes);
    uint32_t words_bytes = 8 * velo_frame_words(frame->kind);
    memset(out + len_bytes - 8, 0, 8); /* The padding. */
    memcpy(out, &envelope, sizeof envelope);
    memcpy(out + sizeof envelope, frame->word, words_bytes);
    if (frame->payload_bytes)
        memcpy(out + sizeof envelope + words_bytes, frame->payload, frame->payload_bytes);
    return len_bytes;
}

int circuit_send(void *self, const struct velo_frame *frame)
{
    struct circuit *circuit = self;
    int status = circuit->circuits->endpoint->circuit_use->send(circuit, frame);
    if (status == VELO_AGAIN)
        set_full(circuit, true);
    return status;
}

void circuits_tell_room(struct circuits *circuits)
{
    for (int i = 0; i < 2; i++)
        for (uint32_t n = 0; n < circuits->tables[i].len && circuits->full > 0; n++) {
            struct circuit *circuit = circuits->tables[i].at[n];
            if (!circuit || !circuit->is_full)
                continue;
            set_full(circuit, false);
            if (circuit->link)
                circuits->endpoint->calls->room_came(circuit->link);
        }
}

void circuits_push(struct circuits *circuits)
{
    for (int i = 0; i < 2; i++)
        for (uint32_t n = 0; n < circuits->tables[i].len && circuits->owed_gone > 0; n++) {
            struct circuit *circuit = circuits->tables[i].at[n];
            if (circuit && circuit->owes_gone && !send_gone(circuit)) {
                circuits->endpoint->is_owing = true;
                return;
            }
        }
}

/* Also one that this side has hung up. */
static struct circuit *circuit_of(const struct circuits *circuits,
                                  const struct wire_envelope *envelope)
{
    const struct circuit_table *table = &circuits->tables[!envelope->from_dialer];
    struct circuit *circuit = envelope->circuit < table->len ? table->at[envelope->circuit] : NULL;
    return circuit && circuit->use == envelope->use ? circuit : NULL;
}

/* The other side has hung up. */
static void circuit_gone(struct circuits *circuits, const struct wire_envelope *envelope)
{
    struct circuit *circuit = circuit_of(circuits, envelope);
    if (!circuit)
        return;
    circuit->is_gone = true;
    if (circuit->link)
        circuits->endpoint->calls->circuit_lost(circuit->link, VELO_ERR_PEER_DEAD);
    else
        (void)send_gone(circuit);
}

/* The circuit that a frame is for; NULL: it is hung up, or was never there. */
static struct circuit *circuit_find(const struct circuits *circuits,
                                    const struct wire_envelope *envelope)
{
    struct circuit *circuit = circuit_of(circuits, envelope);
    return circuit && circuit->link ? circuit : NULL;
}

/* The other side has dialed. NULL: the library does not want the circuit. */
static struct circuit *circuit_ring(struct circuits *circuits, const struct wire_envelope *envelope)
{
    struct circuit_table *table = &circuits->tables[false];
    if (envelope->circuit >= CIRCUITS_MAX || !grow_table(table, envelope->circuit))
        return NULL;
    if (table->at[envelope->circuit])
        return NULL; /* The dialer hangs a circuit up before it uses the number again. */
    struct circuit *circuit = circuit_new(circuits, envelope->circuit, false);
    if (!circuit)
        return NULL;
    circuit->use = envelope->use;
    circuit->link =
        circuits->endpoint->calls->circuit_rang(circuits->endpoint->attr.owner, circuit);
    if (circuit->link)
        return circuit;
    circuit_hang_up(circuit);
    return NULL;
}

/* The transport vouches for the sender of a connection. */
static bool is_its_own(const struct circuits *circuits, uint32_t generation,
                       const struct velo_frame *frame)
{
    struct velo_frame_open open;
    if (frame->payload_bytes != sizeof open)
        return false;
    memcpy(&open, frame->payload, sizeof open);
    return open.source == circuits->peer && open.generation == generation;
}

bool circuits_take(struct circuits *circuits, uint32_t generation,
                   const struct wire_envelope *envelope, const struct velo_frame *frame)
{
    struct circuit *circuit;
    if (frame->kind == WIRE_GONE) {
        circuit_gone(circuits, envelope);
        return true;
    }
    if (frame->kind == VELO_FRAME_OPEN && envelope->from_dialer) {
        if (!is_its_own(circuits, generation, frame))
            return false;
        circuit = circuit_ring(circuits, envelope);
    } else {
        circuit = circuit_find(circuits, envelope);
    }
    if (circuit)
        circuits->endpoint->calls->frame_came(circuit->link, frame);
    return true;
}

void circuits_lose(struct circuits *circuits, int status)
{
    for (int i = 0; i < 2; i++)
        for (uint32_t n = 0; n < circuits->tables[i].len; n++) {
            struct circuit *circuit = circuits->tables[i].at[n];
            if (circuit && circuit->link)
                circuits->endpoint->calls->circuit_lost(circuit->link, status);
        }
}

void circuits_move(struct circuits *from, struct circuits *to)
{
    for (int i = 0; i < 2; i++) {
        to->tables[i] = from->tables[i];
        from->tables[i] = (struct circuit_table){0};
        for (uint32_t n = 0; n < to->tables[i].len; n++)
            if (to->tables[i].at[n])
                to->tables[i].at[n]->circuits = to;
    }
    to->owed_gone = from->owed_gone;
    to->full = from->full;
    from->owed_gone = from->full = 0;
}

void circuits_free(struct circuits *circuits)
{
    for (int i = 0; i < 2; i++) {
        for (uint32_t n = 0; n < circuits->tables[i].len; n++)
            free(circuits->tables[i].at[n]);
        free(circuits->tables[i].at);
        free(circuits->tables[i].uses);
        circuits->tables[i] = (struct circuit_table){0};
    }
    circuits->owed_gone = circuits->full = 0;
}
