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

template <unsigned Classes>
Network<Classes>::Network(const Params &params, const Topology &topology, Traffic &traffic,
                          const CongestionParams &congestion)
    : params_(params), topology_(topology), traffic_(traffic), nodes_(topology.nodes()),
      links_(topology.links()), ports_(links_ + Classes),
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
    sources_.resize(size_t{nodes_} * Classes);
    unit_free_.resize(sources_.size());
    if (congestion.enable)
        congestion_ = std::make_unique<Congestion>(congestion, nodes_, ports);
    for (unsigned n = 0; n < nodes_; n++) {
        for (unsigned l = 0; l < links_; l++)
            if (topology.neighbour(n, l) != kNoNode)
                far_[port(n, l)] = port(topology.neighbour(n, l), topology.far_link(n, l));
    }
    for (unsigned source = 0; source < sources_.size(); source++) {
        sources_[source].credits = static_cast<int16_t>(params.buffer_units);
        offer(source);
    }
    measure(0, kNever);
}

template <unsigned Classes> void Network<Classes>::set_ends(Ends &ends)
{
    ends_ = &ends;
    at_ends_.resize(sources_.size());
}

template <unsigned Classes> void Network<Classes>::offer(unsigned number)
{
    Source &source = sources_[number];
    Cycle born = traffic_.next_born(number);
    if (!source.is_idle || born == kNever)
        return;
    source.is_idle = false;
    source.behind = source.behind && born + params_.inject <= source.free;
    put(std::max(born + params_.inject, source.free), kInject, number, 0);
}

template <unsigned Classes> void Network<Classes>::measure(Cycle from, Cycle end)
{
    from_ = from;
    end_ = end;
    counters_ = Counters();
    counters_.link_words.resize(size_t{nodes_} * ports_);
    counters_.node_words.resize(nodes_);
}

template <unsigned Classes> void Network<Classes>::run(Cycle end) { wheel_.run(end, *this); }

// Set the packet's next output for when it is at that node.
template <unsigned Classes> void Network<Classes>::set_route(unsigned node, Packet &packet) const
{
    Hop hop = topology_.hop(node, packet.to);
    unsigned packet_class = packet.channel / kClassChannels;
    packet.out = static_cast<uint8_t>(hop.link == kLocal ? links_ + packet_class : hop.link);
    packet.out_channel = static_cast<uint8_t>(packet_class * kClassChannels + hop.dateline);
}

template <unsigned Classes> void Network<Classes>::handle(Event event)
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
        if (event.value == outputs_[place].tick_due) // Else that packet has gone.
            tick(place);
        return;
    case kNotice:
        return congestion_->take_notice(place, event.value, now());
    }
}

template <unsigned Classes> uint32_t Network<Classes>::new_packet()
{
    if (free_packet_ == kNone) {
        packets_.emplace_back();
        return static_cast<uint32_t>(packets_.size() - 1);
    }
    uint32_t packet = free_packet_;
    free_packet_ = packets_[packet].next;
    return packet;
}

template <unsigned Classes> void Network<Classes>::drop_packet(uint32_t packet)
{
    packets_[packet].next = free_packet_;
    free_packet_ = packet;
}

// Of the message that is at hand, or is left of it.
template <unsigned Classes> unsigned Network<Classes>::next_words(const Source &source) const
{
    if (source.message.words)
        return source.message.words;
    if (source.message.bytes <= params_.line_bytes)
        return params_.packet_words(source.bytes_left);
    return params_.packet_words(std::min(source.bytes_left, params_.put_bytes)) + params_.put_words;
}

// The next packet's first word comes to the switch, if there are credits for its size. Such an
// event is always under way, but for a node that waits for credits or has no message.
template <unsigned Classes> void Network<Classes>::inject(unsigned number)
{
    Source &source = sources_[number];
    unsigned node = number / Classes;
    if (!source.has_message) {
        if (traffic_.next_born(number) == kNever) { // It was stopped.
            source.is_idle = true;
            return;
        }
        source.message = traffic_.take(number, now());
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
            put(now() + params_.inject_size_late, kInject, number, 0);
        return;
    }
    bool is_one = source.message.bytes <= params_.line_bytes || source.message.words;
    unsigned bytes = is_one ? source.bytes_left : std::min(source.bytes_left, params_.put_bytes);
    source.bytes_left -= bytes;
    source.has_message = source.bytes_left > 0;
    source.credits = static_cast<int16_t>(source.credits - static_cast<int>(params_.units(words)));
    put(now() + params_.to_request, kArrive, port(node, links_ + number % Classes),
        launch(number, words, bytes));
    Cycle next = now() + words;
    if (source.level)
        congestion_->passed(node, source.message.to, source.level, params_.units(words), next - 1);
    source.is_passed = false;
    if (!source.has_message) {
        source.free = next;
        source.is_idle = true;
        offer(number);
        return;
    }
    put(next, kInject, number, 0);
}

// Does the throttle hold the packet back? All behind it wait, too.
template <unsigned Classes> bool Network<Classes>::is_held(unsigned node)
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
template <unsigned Classes>
void Network<Classes>::notice(unsigned node, const Packet &packet, Cycle first_word)
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

template <unsigned Classes>
uint32_t Network<Classes>::launch(unsigned number, unsigned words, unsigned bytes)
{
    const Source &source = sources_[number];
    unsigned node = number / Classes;
    uint32_t packet = new_packet();
    packets_[packet] = {.born = source.message.born,
                        .tail = now() + words - 1,
                        .next = kNone,
                        .from = static_cast<uint16_t>(node),
                        .to = static_cast<uint16_t>(source.message.to),
                        .bytes = static_cast<uint16_t>(bytes),
                        .words = static_cast<uint16_t>(words),
                        .channel = static_cast<uint8_t>(number % Classes * kClassChannels),
                        .out = 0,
                        .out_channel = 0,
                        .ends_message = !source.has_message,
                        .is_put = source.message.words || source.message.bytes > params_.line_bytes,
                        .is_marked = false};
    set_route(node, packets_[packet]);
    if (ends_)
        ends_->launched(number, packet, packets_[packet].tail);
    return packet;
}

template <unsigned Classes> void Network<Classes>::inject_credit(unsigned number)
{
    Source &source = sources_[number];
    source.credits++;
    if (source.blocked && source.credits >= need_units_[params_.size_of(next_words(source))])
        inject(number);
}

// The cycle behind that in which the host takes the last word.
template <unsigned Classes> Cycle Network<Classes>::taken(unsigned node, Cycle begin, Cycle words)
{
    if (node != slow_.node)
        return begin + words;
    Cycle end = begin + words * slow_.pace;
    if (begin < slow_.go && end > slow_.stop)
        end += slow_.go - std::max(begin, slow_.stop);
    return end;
}

template <unsigned Classes>
void Network<Classes>::deliver(unsigned node, unsigned out, uint32_t index, Cycle last_read)
{
    Packet &packet = packets_[index];
    // A word leaves `to_output` - 1 cycles after its read: the first read is a cycle after the
    // grant.
    Cycle first_word = now() + params_.to_output + params_.to_unit;
    Cycle last_word = last_read + params_.to_output - 1 + params_.to_unit;
    if (packet.is_marked)
        notice(node, packet, first_word);
    if (ends_) {
        take_credits(outputs_[port(node, out)], packet.out_channel, params_.units(packet.words));
        unsigned at = node * Classes + out - links_;
        at_ends_[at].held.push_back({index, first_word, last_word});
        serve(at);
    } else {
        complete(node, index, first_word, last_word);
        drop_packet(index);
    }
}

// What the units at the port can take goes in, in order.
template <unsigned Classes> void Network<Classes>::serve(unsigned at)
{
    End &end = at_ends_[at];
    unsigned node = at / Classes;
    while (!end.held.empty() && !end.is_busy) {
        const Held first = end.held.front();
        Cycle first_word = std::max(first.first_word, now());
        if (packets_[first.packet].is_put) { // The network port holds it until it is whole.
            end.is_busy = true;
            ends_->came(at, first.packet, std::max({first.last_word, first_word, unit_free_[at]}));
        } else if (ends_->has_room(node, first.packet)) {
            complete(node, first.packet, first_word, first.last_word);
        } else {
            return;
        }
        end.held.pop_front();
        drop_packet(first.packet);
    }
}

// The header word goes last, so with it the message is there.
template <unsigned Classes>
void Network<Classes>::complete(unsigned node, uint32_t index, Cycle first_word, Cycle last_word)
{
    const Packet &packet = packets_[index];
    Cycle words = std::max<Cycle>(packet.words, params_.least_complete);
    // The network port holds a put until it is whole (velo_netport_rx.sv, MessagesAtOnce).
    Cycle &free = unit_free_[node * Classes];
    Cycle begin = std::max(packet.is_put ? last_word : first_word, free);
    free = taken(node, begin, words);
    if (node == slow_.node) {
        unsigned units = params_.units(packet.words);
        at_slow_.push_back({free, units});
        units_at_slow_ += units;
    }
    Cycle done = std::max(free - 1, last_word) + params_.complete;
    received_ += packet.ends_message;
    if (ends_) {
        read(node * Classes, begin, packet.words, true);
        ends_->arrived(node, index, done);
    }
    if (!measuring(done))
        return;
    counters_.last_done = std::max(counters_.last_done, done);
    counters_.words += packet.words;
    counters_.node_words[node] += packet.words;
    counters_.bytes += packet.bytes;
    if (packet.ends_message)
        counters_.latency.add(done - packet.born);
}

template <unsigned Classes> void Network<Classes>::make_room(unsigned node)
{
    serve(node * Classes);
}

// Units of the buffer in the network port, each free with its last word.
template <unsigned Classes>
void Network<Classes>::read(unsigned at, Cycle first, unsigned words, bool ends)
{
    unsigned &read_words = at_ends_[at].read_words;
    uint32_t out = port(at / Classes, links_ + at % Classes);
    uint32_t channel = at % Classes * kClassChannels;
    while (words > 0) {
        unsigned part = std::min(words, params_.unit_words - read_words);
        first += part;
        words -= part;
        read_words = (read_words + part) % params_.unit_words;
        if (read_words == 0 || (words == 0 && ends))
            put(std::max(first - 1, now()) + params_.read_seen, kCredit, out, channel << 16 | 1);
    }
    if (ends)
        read_words = 0;
}

template <unsigned Classes> void Network<Classes>::took(unsigned at, Cycle free)
{
    at_ends_[at].is_busy = false;
    unit_free_[at] = free;
    serve(at);
}

template class Network<1>;
template class Network<3>;

} // namespace tlm
