// SPDX-License-Identifier: Apache-2.0
//
// Hosts, units and network ports; the set-up of the network, and the dispatch of events.
#include "network.h"

#include <bit>

namespace tlm
{

namespace
{

// No event causes another one that is further away: the words that may wait at a link are the
// limit.
constexpr Cycle kReach = 2000;

} // namespace

Network::Network(const Params &params, const Topology &topology, Traffic &traffic,
                 const CongestionParams &congestion)
    : params_(params), topology_(topology), traffic_(traffic), nodes_(topology.nodes()),
      links_(topology.links()), ports_(links_ + 1),
      frame_slots_(std::bit_ceil(kChannels * params.buffer_units)),
      wheel_(kReach + 2 * params.cable)
{
    for (unsigned size = 0; size < kSizes; size++)
        need_units_[size] = static_cast<int16_t>(params.need_units(size));
    size_t ports = size_t{nodes_} * ports_;
    Output output;
    output.credits.fill(static_cast<int16_t>(params.buffer_units));
    inputs_.resize(ports);
    outputs_.resize(ports, output);
    senders_.resize(ports);
    far_.resize(ports, kNone);
    frames_.resize(ports * frame_slots_);
    queues_.resize(ports * ports_);
    outputs_wanted_.resize(nodes_);
    arbitrated_.resize(nodes_, kNever);
    to_arbitrate_.resize(nodes_, kNever);
    completer_free_.resize(nodes_);
    sources_.resize(nodes_);
    if (congestion.enable)
        congestion_ = std::make_unique<Congestion>(congestion, nodes_, ports);
    for (unsigned n = 0; n < nodes_; n++) {
        for (unsigned l = 0; l < links_; l++)
            if (topology.neighbour(n, l) != kNoNode)
                far_[port(n, l)] = port(topology.neighbour(n, l), topology.far_link(n, l));
        sources_[n].credits = static_cast<int16_t>(params.buffer_units);
        offer(n);
    }
    measure(0, kNever);
}

void Network::set_ends(Ends &ends)
{
    ends_ = &ends;
    held_.resize(nodes_);
    units_held_.resize(nodes_);
}

void Network::offer(unsigned node)
{
    Source &source = sources_[node];
    Cycle born = traffic_.next_born(node);
    if (!source.is_idle || born == kNever)
        return;
    source.is_idle = false;
    source.behind = source.behind && born + params_.inject <= source.free;
    put(std::max(born + params_.inject, source.free), kInject, node, 0);
}

void Network::measure(Cycle from, Cycle end)
{
    from_ = from;
    end_ = end;
    counters_ = Counters();
    counters_.link_words.resize(size_t{nodes_} * ports_);
    counters_.node_words.resize(nodes_);
}

void Network::run(Cycle end) { wheel_.run(end, *this); }

// Set the packet's next output for when it is at that node.
void Network::set_route(unsigned node, Packet &packet) const
{
    Hop hop = topology_.hop(node, packet.to);
    packet.out = static_cast<uint8_t>(hop.link == kLocal ? links_ : hop.link);
    packet.out_channel = static_cast<uint8_t>(hop.dateline);
}

void Network::handle(Event event)
{
    uint32_t place = event.kind_and_place & kPlaceMask;
    switch (static_cast<Kind>(event.kind_and_place >> kPlaceBits)) {
    case kArrive:
        return arrive(place, event.value);
    case kFreed:
        return unit_freed(place, event.value);
    case kSlot:
        return slot(place);
    case kCredit:
        return credit(place, event.value >> 16, event.value & 0xFFFF);
    case kInject:
        return inject(place);
    case kInjectCredit:
        return inject_credit(place);
    case kTick:
        return tick(place);
    case kNotice:
        return congestion_->take_notice(place, event.value, now());
    }
}

uint32_t Network::new_packet()
{
    if (free_packet_ == kNone) {
        packets_.emplace_back();
        return static_cast<uint32_t>(packets_.size() - 1);
    }
    uint32_t packet = free_packet_;
    free_packet_ = packets_[packet].next;
    return packet;
}

void Network::drop_packet(uint32_t packet)
{
    packets_[packet].next = free_packet_;
    free_packet_ = packet;
}

// Of the message that is at hand, or is left of it.
unsigned Network::next_words(const Source &source) const
{
    if (source.message.bytes <= params_.line_bytes)
        return params_.packet_words(source.bytes_left);
    return params_.packet_words(std::min(source.bytes_left, params_.put_bytes)) + params_.put_words;
}

// The next packet's first word comes to the switch, if there are credits for its size. Such an
// event is always under way, but for a node that waits for credits or has no message.
void Network::inject(unsigned node)
{
    Source &source = sources_[node];
    if (!source.has_message) {
        if (traffic_.next_born(node) == kNever) { // It was stopped.
            source.is_idle = true;
            return;
        }
        source.message = traffic_.take(node, now());
        source.bytes_left = source.message.bytes;
        source.has_message = true;
        sent_++;
    }
    if (congestion_ && is_held(node))
        return;
    unsigned words = next_words(source);
    source.blocked = source.credits < need_units_[params_.size_of(words)];
    if (source.blocked || (source.credits < need_units_.back() && !source.behind)) {
        source.behind = true;
        if (!source.blocked)
            put(now() + params_.inject_size_late, kInject, node, 0);
        return;
    }
    bool is_line = source.message.bytes <= params_.line_bytes;
    unsigned bytes = is_line ? source.bytes_left : std::min(source.bytes_left, params_.put_bytes);
    source.bytes_left -= bytes;
    source.has_message = source.bytes_left > 0;
    source.credits = static_cast<int16_t>(source.credits - params_.units(words));
    put(now() + params_.to_request, kArrive, port(node, links_), launch(node, words, bytes));
    Cycle next = now() + words;
    if (source.level)
        congestion_->passed(node, source.message.to, source.level, params_.units(words), next - 1);
    source.is_passed = false;
    if (!source.has_message) {
        source.free = next;
        source.is_idle = true;
        offer(node);
        return;
    }
    put(next, kInject, node, 0);
}

// Does the throttle hold the packet back? All behind it wait, too.
bool Network::is_held(unsigned node)
{
    Source &source = sources_[node];
    if (source.is_passed)
        return false;
    auto [when, level] = congestion_->pass(node, source.message.to, now());
    source.is_passed = true;
    source.level = static_cast<uint8_t>(level);
    if (when == now())
        return false;
    if (measuring(now()))
        counters_.held += when - now();
    source.behind = false;
    put(when, kInject, node, 0);
    return true;
}

// A marked packet's sender is told, in the class of completions, which has channels of its own: it
// takes the time of a way without load.
void Network::notice(unsigned node, const Packet &packet, Cycle first_word)
{
    if (measuring(now()))
        counters_.marked++;
    if (!congestion_->gives_notice(node, first_word))
        return;
    if (measuring(now()))
        counters_.notices++;
    unsigned words = params_.header_words;
    unsigned hop = params_.to_frame + params_.frame_through + params_.cable + params_.to_request +
                   params_.to_output;
    // The network port passes it on when it is whole.
    Cycle way = words + 1 + params_.to_request + params_.to_output +
                Cycle{hop} * topology_.distance(node, packet.from) + params_.to_unit + words;
    put(first_word + way, kNotice, packet.from, node);
}

uint32_t Network::launch(unsigned node, unsigned words, unsigned bytes)
{
    const Source &source = sources_[node];
    uint32_t packet = new_packet();
    packets_[packet] = {.born = source.message.born,
                        .tail = now() + words - 1,
                        .next = kNone,
                        .from = static_cast<uint16_t>(node),
                        .to = static_cast<uint16_t>(source.message.to),
                        .bytes = static_cast<uint16_t>(bytes),
                        .words = static_cast<uint16_t>(words),
                        .channel = 0,
                        .out = 0,
                        .out_channel = 0,
                        .ends_message = !source.has_message,
                        .is_put = source.message.bytes > params_.line_bytes,
                        .is_marked = false};
    set_route(node, packets_[packet]);
    if (ends_)
        ends_->launched(node, packet, packets_[packet].tail);
    return packet;
}

void Network::inject_credit(unsigned node)
{
    Source &source = sources_[node];
    source.credits++;
    if (source.blocked && source.credits >= need_units_[params_.size_of(next_words(source))])
        inject(node);
}

// The cycle behind that in which the host takes the last word.
Cycle Network::taken(unsigned node, Cycle begin, Cycle words)
{
    if (node != slow_.node)
        return begin + words;
    Cycle end = begin + words * slow_.pace;
    if (begin < slow_.go && end > slow_.stop)
        end += slow_.go - std::max(begin, slow_.stop);
    return end;
}

bool Network::deliver(unsigned node, uint32_t index, Cycle first_word, Cycle last_read)
{
    Packet &packet = packets_[index];
    if (packet.is_marked)
        notice(node, packet, first_word);
    // A word leaves `to_output` - 1 cycles after its read: the first read is a cycle after the
    // grant.
    Cycle last_word = last_read + params_.to_output - 1 + params_.to_unit;
    if (ends_ && (!held_[node].empty() || !ends_->has_room(node, index))) {
        held_[node].push_back({index, first_word, last_word});
        units_held_[node] += params_.units(packet.words);
        return false;
    }
    complete(node, index, first_word, last_word);
    return true;
}

// The header word goes last, so with it the message is there.
void Network::complete(unsigned node, uint32_t index, Cycle first_word, Cycle last_word)
{
    const Packet &packet = packets_[index];
    Cycle words = std::max<Cycle>(packet.words, params_.least_complete);
    // The network port holds a put until it is whole (velo_netport_rx.sv, MessagesAtOnce).
    Cycle begin = std::max(packet.is_put ? last_word : first_word, completer_free_[node]);
    completer_free_[node] = taken(node, begin, words);
    if (node == slow_.node) {
        unsigned units = params_.units(packet.words);
        at_slow_.push_back({completer_free_[node], units});
        units_at_slow_ += units;
    }
    Cycle done = std::max(completer_free_[node] - 1, last_word) + params_.complete;
    received_ += packet.ends_message;
    if (ends_)
        ends_->arrived(node, index, done);
    if (!measuring(done))
        return;
    counters_.last_done = std::max(counters_.last_done, done);
    counters_.words += packet.words;
    counters_.node_words[node] += packet.words;
    counters_.bytes += packet.bytes;
    if (packet.ends_message)
        counters_.latency.add(done - packet.born);
}

void Network::make_room(unsigned node)
{
    auto &held = held_[node];
    while (!held.empty() && ends_->has_room(node, held.front().packet)) {
        const Held first = held.front();
        held.pop_front();
        units_held_[node] -= params_.units(packets_[first.packet].words);
        complete(node, first.packet, std::max(first.first_word, now()), first.last_word);
        drop_packet(first.packet);
        arbitrate_soon(node);
    }
}

} // namespace tlm
