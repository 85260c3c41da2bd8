/* SPDX-License-Identifier: Apache-2.0 */
#include "wanted.h"

#include "spin.h"
#include "stream.h"

/* Is a message of these data the wanted one? The word is read once: its sender can still write to
 * it, and the checked value must be the one that is used. */
hot_inline bool is_wanted(const struct wanted_message *wanted, const struct ring_rx *rx,
                          const char *data, uint32_t len_bytes, size_t others_bytes,
                          struct wanted_found *found)
{
    if (unlikely(len_bytes < sizeof found->word + others_bytes))
        return false;
    found->len_bytes = len_bytes - sizeof found->word - others_bytes;
    memcpy(&found->word, data + found->len_bytes + others_bytes, sizeof found->word);
    found->source = rx->from.id;
    return likely(((found->word ^ wanted->word) & ~wanted->ignore) == 0) &&
           likely(wanted->source == rx->from.id || wanted->source == UINT32_MAX) &&
           likely(found->len_bytes <= wanted->cap_bytes);
}

/* The same for a message whose word is in its slot. */
static bool is_wanted_apart(const struct wanted_message *wanted, const struct ring_rx *rx,
                            const struct ring_message *message, struct wanted_found *found)
{
    found->len_bytes = message->len_bytes;
    found->word = message->word;
    found->source = rx->from.id;
    return message->is_external && ((found->word ^ wanted->word) & ~wanted->ignore) == 0 &&
           (wanted->source == rx->from.id || wanted->source == UINT32_MAX) &&
           found->len_bytes <= wanted->cap_bytes;
}

/* The same for a message that is long, or behind which the ring comes to its pause. */
static __attribute__((noinline)) bool take_slowly(struct velo_port *port, uint64_t header,
                                                  const struct wanted_message *wanted,
                                                  struct wanted_found *found)
{
    struct ring_rx *rx = port->current;
    struct ring_message *message = &port->message;
    if (!ring_rx_locate(rx, header, port->shape.data_bytes, message))
        return false;
    if (message->tag == wanted->tag
            ? !is_wanted(wanted, rx, message->data, message->len_bytes, 0, found)
            : !is_wanted_apart(wanted, rx, message, found))
        return false;
    copy_out(wanted->buf, message->data, found->len_bytes);
    port->held = rx;
    (void)velo_release(port);
    return true;
}

/* The same for a message of another tag. */
static __attribute__((noinline)) uint32_t take_unlike(struct velo_port *port, uint64_t header,
                                                      const struct wanted_message *wanted,
                                                      struct wanted_found *found)
{
    struct ring_rx *rx = port->current;
    struct short_message message;
    if (ring_tag(header) == (wanted->tag | CONN_WORD_APART))
        return take_slowly(port, header, wanted, found);
    if (ring_tag(header) != wanted->tag_of_two || !short_message_read(rx, header, &message) ||
        !is_wanted(wanted, rx, message.data, message.len_bytes, sizeof found->other, found))
        return 0;
    memcpy(&found->other, message.data + found->len_bytes, sizeof found->other);
    copy_small(wanted->buf, message.data, found->len_bytes);
    port_step_short(port, &message);
    return 2;
}

uint32_t port_take_wanted(struct velo_port *port, const struct wanted_message *wanted,
                          struct wanted_found *found, uint32_t polls)
{
    GUARD_UNUSED(port, "port");
    struct ring_rx *rx = port->current;
    uint64_t header = ring_rx_look(rx);
    if (!ring_rx_match(rx, header)) {
        port->messages_before = port->messages;
        if (unlikely(!spin_may(port, rx)))
            return 0;
        header = spin_ring(port, rx, port->look, polls);
        if (header == 0)
            return 0;
    } else {
        port_fetch_in_stream(port, rx);
    }
    if (unlikely(ring_tag(header) != wanted->tag))
        return take_unlike(port, header, wanted, found);
    struct short_message message;
    if (!short_message_read(rx, header, &message))
        return take_slowly(port, header, wanted, found);
    if (!is_wanted(wanted, rx, message.data, message.len_bytes, 0, found))
        return 0;
    copy_small(wanted->buf, message.data, found->len_bytes);
    port_step_short(port, &message);
    return 1;
}
