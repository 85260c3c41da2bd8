// SPDX-License-Identifier: Apache-2.0
//
// The links: frames, and the status words that bring credits back. rtl/link.
//
// A transmitter gives each cycle to one word. `Frame` is a stretch of such turns: start word, data,
// end word; a long frame is several, which begin with an idle word. A slot is a turn in which a
// status of credits goes out: that of every second start word, or every second idle one.
#include "network.h"

#include <cassert>

namespace tlm
{

template <unsigned Classes>
void Network<Classes>::take_credits(Output &output, unsigned channel, unsigned units)
{
    output.credits[channel] =
        static_cast<int16_t>(output.credits[channel] - static_cast<int>(units));
    output.granted = now();
    output.granted_units = static_cast<uint16_t>(units);
    output.granted_channel = static_cast<uint8_t>(channel);
}

template <unsigned Classes>
void Network<Classes>::transmit(uint32_t out, uint32_t index, unsigned channel, Cycle last_read)
{
    Packet &packet = packets_[index];
    take_credits(outputs_[out], channel, params_.units(packet.words));

    Sender &sender = senders_[out];
    settle(out, now());
    Cycle start = std::max(now() + params_.to_output + params_.to_frame, sender.free);
    unsigned inner = params_.inner_idles(packet.words);
    unsigned wire_words = packet.words + params_.frame_extra + inner * params_.idle_words;
    // The end word's turn is three after its frame's last word came.
    Cycle end = std::max(start + wire_words, last_read + params_.to_output + 3);
    push_packet(out, start, end, inner);
    sender.free = end;

    // Words go on as they come; the last one goes when the end word has come.
    Cycle head = start + params_.frame_through + params_.cable;
    packet.tail = end - params_.frame_extra + params_.frame_through - 1 + params_.cable;
    packet.channel = static_cast<uint8_t>(channel);
    set_route(far_[out] / ports_, packet);
    put(head + params_.to_request, kArrive, far_[out], index);
    all_hops_++;
    if (measuring(now())) {
        counters_.hops++;
        counters_.link_words[out] += wire_words;
    }
}

// Start words have the two halves of the status in turn. What one says of credits counts only when
// no idle word inside its frame has said something newer.
template <unsigned Classes>
void Network<Classes>::push_packet(uint32_t out, Cycle start, Cycle end, unsigned inner)
{
    Sender &sender = senders_[out];
    FrameKind kind = !sender.tells_credits ? kNoCredits : inner ? kStaleCredits : kCredits;
    sender.tells_credits = !sender.tells_credits;
    for (unsigned i = 0; i < inner; i++) {
        unsigned length = params_.status_words + (i ? params_.idle_words : 1);
        push_frame(out, start, start + length, kind);
        start += length;
        kind = kIdleInside;
    }
    push_frame(out, start, end, kind);
}

template <unsigned Classes>
void Network<Classes>::push_frame(uint32_t out, Cycle start, Cycle end, FrameKind kind)
{
    assert(senders_[out].frames < frame_slots_); // credits see to it
    Frame &added = frame(out, senders_[out].frames++);
    added.start = start & ((Cycle{1} << 48) - 1);
    added.length = (end - start) & 0x3FFF;
    added.kind = kind & 3;
}

// Forget frames that are over.
template <unsigned Classes> void Network<Classes>::settle(uint32_t out, Cycle cycle)
{
    Sender &sender = senders_[out];
    while (sender.frames && frame(out, 0).end() <= cycle) {
        sender.idle_from = frame(out, 0).end();
        sender.frames--;
        sender.first = static_cast<uint16_t>((sender.first + 1) & (frame_slots_ - 1));
    }
    if (!sender.frames)
        sender.first = 0; // The cache has this place.
}

// Frames are known some cycles before they start, so the answer is certain if the slot is near; a
// frame without credits in its start word may still take the place of an idle word.
template <unsigned Classes> Cycle Network<Classes>::next_slot(uint32_t out, Cycle from)
{
    settle(out, from);
    Sender &sender = senders_[out];
    Cycle idle_from = sender.idle_from;
    auto idle = [&] {
        Cycle past = (from - idle_from) % params_.idle_words;
        return past ? from + params_.idle_words - past : from;
    };
    for (unsigned f = 0; f < sender.frames; f++) {
        const Frame &next = frame(out, f);
        if (next.start > from && idle() < next.start)
            return idle();
        if (next.start >= from && next.kind != kNoCredits)
            return next.start;
        idle_from = from = next.end();
    }
    return idle();
}

// At the input beside this transmitter.
template <unsigned Classes> void Network<Classes>::unit_freed(uint32_t out, unsigned channel)
{
    Sender &sender = senders_[out];
    sender.freed[channel]++;
    sender.freed_at[channel] = now();
    if (sender.active)
        return;
    sender.active = true;
    Cycle next = next_slot(out, now() + params_.changed);
    // Meanwhile all channels have had their turns.
    sender.channel = static_cast<uint8_t>(
        (sender.channel + (next - sender.last_slot) / params_.idle_words) % params_.status_vcs);
    sender.turn = static_cast<uint8_t>((sender.channel + 1) % params_.status_vcs);
    put(next, kSlot, out, 0);
}

template <unsigned Classes> void Network<Classes>::slot(uint32_t out)
{
    Sender &sender = senders_[out];
    settle(out, now());
    bool at_frame = sender.frames && frame(out, 0).start == now();
    FrameKind kind = at_frame ? static_cast<FrameKind>(frame(out, 0).kind) : kIdleInside;
    if (kind == kNoCredits)
        return put(next_slot(out, now() + 1), kSlot, out, 0);
    // An idle word counts when it comes twice running.
    bool lost =
        kind == kStaleCredits || (!at_frame && sender.frames && frame(out, 0).start == now() + 1);
    unsigned channel = sender.channel;
    if (channel < kChannels) {
        sender.told[channel] = sender.freed[channel];
        uint8_t units = sender.freed[channel] - sender.heard[channel];
        if (units && !lost) {
            sender.heard[channel] = sender.freed[channel];
            Cycle heard = kind == kCredits ? frame(out, 0).end() + params_.frame_told
                                           : now() + params_.idle_told;
            put(heard + params_.cable, kCredit, far_[out], channel << 16 | units);
        }
    }
    choose_channel(sender, now());
    sender.last_slot = now();
    sender.active = sender.heard != sender.freed;
    if (sender.active)
        put(next_slot(out, now() + 1), kSlot, out, 0);
}

// Channels with something new first, round robin; else all take their turns.
template <unsigned Classes> void Network<Classes>::choose_channel(Sender &sender, Cycle now)
{
    auto changed = [&](unsigned c) {
        return c < kChannels && c != sender.channel && sender.told[c] != sender.freed[c] &&
               sender.freed_at[c] + params_.changed <= now;
    };
    bool any = false;
    for (unsigned c = 0; c < kChannels; c++)
        any = any || changed(c);
    unsigned c = sender.turn;
    while (any && !changed(c))
        c = (c + 1) % params_.status_vcs;
    sender.channel = static_cast<uint8_t>(c);
    sender.turn = static_cast<uint8_t>((c + 1) % params_.status_vcs);
}

template <unsigned Classes>
void Network<Classes>::credit(uint32_t out, unsigned channel, unsigned units)
{
    outputs_[out].credits[channel] =
        static_cast<int16_t>(outputs_[out].credits[channel] + static_cast<int>(units));
    if (!outputs_[out].waiting[channel])
        return;
    if (congestion_)
        press(out / ports_, out % ports_);
    arbitrate_soon(out / ports_);
}

template class Network<1>;
template class Network<3>;

} // namespace tlm
