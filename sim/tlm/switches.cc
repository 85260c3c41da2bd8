// SPDX-License-Identifier: Apache-2.0
//
// The switches: queues, arbitration, the crossbar. rtl/switch.
#include <bit>

#include "network.h"

namespace tlm
{

namespace
{

// Round robin: the first of the set, counted from the turn.
unsigned first_from(uint64_t set, unsigned turn)
{
    uint64_t above = turn < 64 ? set >> turn << turn : 0;
    return static_cast<unsigned>(std::countr_zero(above ? above : set));
}

template <typename Do> void for_each(uint64_t set, Do action)
{
    for (; set; set &= set - 1)
        action(static_cast<unsigned>(std::countr_zero(set)));
}

} // namespace

// A packet can be granted from this cycle on.
template <unsigned Classes> void Network<Classes>::arrive(uint32_t in, uint32_t packet)
{
    unsigned node = in / ports_;
    Packet &added = packets_[packet];
    unsigned out = added.out, channel = added.out_channel;
    Queue &queue = queues_[size_t{in} * ports_ + out];
    added.next = kNone;
    bool was_empty = queue.head[channel] == kNone;
    if (was_empty)
        queue.head[channel] = packet;
    else
        packets_[queue.tail[channel]].next = packet;
    queue.tail[channel] = packet;
    if (was_empty)
        new_head(in, out, channel, now() + params_.size_late);
    outputs_[port(node, out)].waiting[channel] |= uint64_t{1} << (in % ports_);
    outputs_wanted_[node] |= uint64_t{1} << out;
    if (congestion_)
        press(node, out);
    arbitrate_soon(node);
}

// Another packet is the first of its queue, or there is none.
template <unsigned Classes>
void Network<Classes>::new_head(uint32_t in, unsigned out, unsigned channel, Cycle size_known)
{
    Queue &queue = queues_[size_t{in} * ports_ + out];
    uint32_t head = queue.head[channel];
    unsigned size = head == kNone ? 0 : params_.size_of(packets_[head].words);
    queue.size[channel] = static_cast<uint8_t>(size);
    queue.size_known[channel] = static_cast<uint32_t>(size_known);
    if (is_local(out) && !ends_)
        return;

    Output &output = outputs_[port(in / ports_, out)];
    uint64_t &is_long = output.is_long[channel];
    is_long = (is_long & ~(uint64_t{1} << (in % ports_))) | uint64_t{size > 0} << (in % ports_);
    auto bit = static_cast<uint8_t>(1U << channel);
    if (!is_long) {
        output.waits &= static_cast<uint8_t>(~bit);
        output.strict &= static_cast<uint8_t>(~bit);
        if (std::all_of(output.is_long.begin(), output.is_long.end(),
                        [](uint64_t inputs) { return inputs == 0; }))
            output.tick_due = 0;
    } else if (!output.tick_due && !(output.strict & bit)) {
        plan_tick(port(in / ports_, out));
    }
}

// Ticks are counted from the cycle on in which a long packet is the first of its queue.
template <unsigned Classes> void Network<Classes>::plan_tick(uint32_t out)
{
    Cycle due = now() + params_.patience_cycles;
    outputs_[out].tick_due = static_cast<uint32_t>(due) | 1U << 31;
    put(due, kTick, out, outputs_[out].tick_due);
}

// A long packet that has waited through two ticks without credits makes all ask for its own.
template <unsigned Classes> void Network<Classes>::tick(uint32_t out)
{
    Output &output = outputs_[out];
    bool again = false;
    for (unsigned c = 0; c < kChannels; c++) {
        auto bit = static_cast<uint8_t>(1U << c);
        if (output.is_long[c] && seen_credits(output, c) < need_units_.back()) {
            output.strict |= static_cast<uint8_t>(output.waits & bit);
            output.waits |= bit;
        }
        again = again || (output.is_long[c] && !(output.strict & bit));
    }
    output.tick_due = 0;
    if (again)
        plan_tick(out);
}

// In this cycle, after its events.
template <unsigned Classes> void Network<Classes>::arbitrate_soon(unsigned node)
{
    if (to_arbitrate_[node] == now())
        return;
    to_arbitrate_[node] = now();
    wheel_.put_switch(now(), node);
}

template <unsigned Classes> uint64_t Network<Classes>::idle_inputs(unsigned node) const
{
    uint64_t idle = 0;
    for (unsigned i = 0; i < ports_; i++)
        idle |= uint64_t{inputs_[port(node, i)].free <= now()} << i;
    return idle;
}

// The units that the last packet takes are seen late.
template <unsigned Classes>
int Network<Classes>::seen_credits(const Output &output, unsigned channel) const
{
    int seen = output.credits[channel];
    if (output.granted_channel == channel && output.granted_units) {
        Cycle first = output.granted + params_.take_seen;
        Cycle taken = now() < first ? 0 : 1 + (now() - first) / params_.unit_words;
        if (taken < output.granted_units)
            seen += static_cast<int>(output.granted_units - taken);
    }
    return seen;
}

// With that many credits, the first packet of the queue.
template <unsigned Classes>
bool Network<Classes>::may_send(const Queue &queue, unsigned channel, int seen, bool strict) const
{
    if (seen >= need_units_.back())
        return true;
    bool known =
        static_cast<int32_t>(static_cast<uint32_t>(now()) - queue.size_known[channel]) >= 0;
    return known && !strict && seen >= need_units_[queue.size[channel]];
}

// The inputs that ask for the output.
template <unsigned Classes> uint64_t Network<Classes>::asking(unsigned node, unsigned out)
{
    const Output &output = outputs_[port(node, out)];
    if (is_local(out) && node == slow_.node)
        return asking_slow_host(output);
    uint64_t inputs = 0;
    if (is_local(out) && !ends_) { // The unit takes a word a cycle; see README.md.
        for (uint64_t waiting : output.waiting)
            inputs |= waiting;
        return inputs;
    }
    bool again = false;
    for (unsigned c = 0; c < kChannels; c++) {
        if (!output.waiting[c])
            continue;
        int seen = seen_credits(output, c);
        bool strict = output.strict >> c & 1;
        if (seen >= need_units_.back())
            inputs |= output.waiting[c];
        else if (seen >= need_units_[0] && !strict)
            for_each(output.waiting[c], [&](unsigned i) {
                const Queue &queue = queues_[size_t{port(node, i)} * ports_ + out];
                if (may_send(queue, c, seen, strict))
                    inputs |= uint64_t{1} << i;
                else
                    again = again || seen >= need_units_[queue.size[c]];
            });
    }
    if (again) // Its size is known soon.
        wheel_.put_switch(now() + 1, node);
    return inputs;
}

// The buffer in front of the host has credits as each has.
template <unsigned Classes> uint64_t Network<Classes>::asking_slow_host(const Output &output)
{
    constexpr Cycle kLook = 16;
    while (!at_slow_.empty() && at_slow_.front().until <= now()) {
        units_at_slow_ -= at_slow_.front().units;
        at_slow_.pop_front();
    }
    uint64_t inputs = asking_buffer(slow_.node, output, units_at_slow_);
    if (!inputs && !at_slow_.empty())
        wheel_.put_switch(std::min(at_slow_.front().until, now() + kLook), slow_.node);
    return inputs;
}

// The inputs whose first packet fits into that buffer, of which so many units are taken.
template <unsigned Classes>
uint64_t Network<Classes>::asking_buffer(unsigned node, const Output &output, unsigned units) const
{
    int free = static_cast<int>(params_.buffer_units) - static_cast<int>(units);
    uint64_t inputs = 0;
    for (unsigned c = 0; c < kChannels; c++)
        for_each(output.waiting[c], [&](unsigned i) {
            const Queue &queue = queues_[size_t{port(node, i)} * ports_ + links_];
            if (free >= need_units_[queue.size[c]])
                inputs |= uint64_t{1} << i;
        });
    return inputs;
}

// The channels whose first packets may go from the queue to the output.
template <unsigned Classes>
uint64_t Network<Classes>::ready_channels(const Output &output, const Queue &queue,
                                          bool local) const
{
    uint64_t ready = 0;
    for (unsigned c = 0; c < kChannels; c++)
        if (queue.head[c] != kNone &&
            (local || may_send(queue, c, seen_credits(output, c), output.strict >> c & 1)))
            ready |= uint64_t{1} << c;
    return ready;
}

// One round of iSLIP: each free output grants, each input accepts, and turns move on only where a
// grant was accepted. A pair that a second round would match is matched in the next cycle.
template <unsigned Classes> void Network<Classes>::arbitrate(unsigned node)
{
    if (arbitrated_[node] == now())
        return;
    arbitrated_[node] = now();
    uint64_t idle = idle_inputs(node), inputs = 0, outputs = 0;
    std::array<uint64_t, kLinksMax + Classes> asks, grants;
    for_each(outputs_wanted_[node], [&](unsigned o) {
        if (outputs_[port(node, o)].free > now() || !(asks[o] = asking(node, o) & idle))
            return;
        unsigned i = first_from(asks[o], outputs_[port(node, o)].turn);
        grants[i] = (inputs >> i & 1 ? grants[i] : 0) | uint64_t{1} << o;
        inputs |= uint64_t{1} << i;
        outputs |= uint64_t{1} << o;
    });
    uint64_t left = outputs;
    for_each(inputs, [&](unsigned i) {
        unsigned o = first_from(grants[i], inputs_[port(node, i)].turn);
        left &= ~(uint64_t{1} << o);
        outputs_[port(node, o)].turn = static_cast<uint8_t>(i + 1);
        inputs_[port(node, i)].turn = o + 1;
        grant(node, i, o);
    });
    bool again = false;
    for_each(left, [&](unsigned o) { again = again || (asks[o] & ~inputs); });
    if (again)
        wheel_.put_switch(now() + 1, node);
}

// The first packet of the channel whose turn it is.
template <unsigned Classes>
uint32_t Network<Classes>::take_packet(unsigned node, unsigned in, unsigned out, unsigned &channel)
{
    Output &output = outputs_[port(node, out)];
    Queue &queue = queues_[size_t{port(node, in)} * ports_ + out];
    channel = first_from(ready_channels(output, queue, is_local(out) && !ends_), queue.served + 1U);
    queue.served = static_cast<uint8_t>(channel);
    uint32_t packet = queue.head[channel];
    queue.head[channel] = packets_[packet].next;
    if (queue.head[channel] == kNone) {
        output.waiting[channel] &= ~(uint64_t{1} << in);
        if (std::all_of(output.waiting.begin(), output.waiting.end(),
                        [](uint64_t waiting) { return waiting == 0; }))
            outputs_wanted_[node] &= ~(uint64_t{1} << out);
    }
    new_head(port(node, in), out, channel, now() + params_.next_size_known);
    return packet;
}

template <unsigned Classes> void Network<Classes>::grant(unsigned node, unsigned in, unsigned out)
{
    unsigned channel = 0;
    uint32_t index = take_packet(node, in, out, channel);
    Packet &packet = packets_[index];
    // Words are read from the next cycle on; the last one not before it is there.
    Cycle last_read = std::max(now() + packet.words, packet.tail + params_.to_request);
    Cycle free = std::max(last_read, now() + params_.least_switch);
    inputs_[port(node, in)].free = free;
    outputs_[port(node, out)].free = free;
    wheel_.put_switch(free, node);
    give_back(node, in, packet, last_read);
    if (congestion_)
        packet.is_marked = packet.is_marked || congestion_->marks(port(node, out), now());
    if (is_local(out))
        deliver(node, out, index, last_read);
    else
        transmit(port(node, out), index, channel, last_read);
    if (congestion_)
        press(node, out);
}

// A node's own port is under pressure while two packets and more wait for it, of one input or of
// several. So is a link, if it is to be, while packets of two inputs and more wait for it in
// channels with credits: where those are missing, the pressure is further down the way.
template <unsigned Classes> void Network<Classes>::press(unsigned node, unsigned out)
{
    if (out != links_ && !congestion_->marks_links())
        return;
    const Output &output = outputs_[port(node, out)];
    uint64_t inputs = 0;
    for (unsigned c = 0; c < kChannels; c++)
        if (output.waiting[c] && (out == links_ || seen_credits(output, c) >= need_units_[0]))
            inputs |= output.waiting[c];
    bool is_pressed = std::popcount(inputs) >= 2;
    if (!is_pressed && out == links_)
        for_each(inputs, [&](unsigned i) {
            const Queue &queue = queues_[size_t{port(node, i)} * ports_ + out];
            for (unsigned c = 0; c < kChannels; c++)
                is_pressed = is_pressed || queue.head[c] != queue.tail[c];
        });
    congestion_->press(port(node, out), is_pressed, now());
}

// The packet's units in this input's buffer, each when its last word has been read.
template <unsigned Classes>
void Network<Classes>::give_back(unsigned node, unsigned in, const Packet &packet, Cycle last_read)
{
    unsigned units = params_.units(packet.words);
    for (unsigned u = 1; u <= units; u++) {
        Cycle left = packet.words - std::min<unsigned>(u * params_.unit_words, packet.words);
        // Words with gaps in front of them count as coming together at the end.
        Cycle freed = std::max(now() + u * params_.unit_words, last_read - left);
        freed = std::min(freed, last_read) + params_.freed;
        if (is_local(in))
            put(freed + params_.inject_credit, kInjectCredit, node * Classes + in - links_, 0);
        else
            put(freed, kFreed, port(node, in), packet.channel);
    }
}

template class Network<1>;
template class Network<3>;

} // namespace tlm
