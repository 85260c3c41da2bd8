// SPDX-License-Identifier: Apache-2.0
#include "hardware.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "../process.h"
#include "scope.h"
#include "velo/spec.h"

namespace sim
{

namespace
{

constexpr unsigned kDateline = 8, kHopLocal = 15; // spec/velo_regs.rdl, `routes`
constexpr unsigned kBeatsAWord = 2;               // of 64 bits, on a path of 32

// As long as the RTL takes with cables of up to 44 cycles (a test compares the two): reset and
// tables that clear themselves; then registers, a route after the other in all nodes side by side;
// links come up; the state of each is read, one after the other.
constexpr uint64_t kBootResetCycles = 304, kBootRouteCycles = 4, kBootLinksCycles = 199,
                   kBootReadCycles = 6;

// What the network does in a cycle reaches a host no sooner than this later: nine cycles of the
// completer's way for a message, one for a port that waits for room.
constexpr uint64_t kLookAheadCycles = 9, kLookAheadWaitingCycles = 2;

// A line's first word at the host port to its first word at the network port: crossbar, requester.
constexpr unsigned kLineToPort = 2;
// A store to the RMA unit keeps the host port for a cycle more than its beats (velo_rma_intake.sv).
constexpr unsigned kNameBeats = 1;

tlm::Params params_of(const ClusterOptions &options)
{
    if (!options.cards.empty())
        throw std::runtime_error(why_refused(Part::kCards));
    if (options.shape.width_bits != 32)
        throw std::runtime_error(why_refused(Part::kWidths));
    if (options.error_rate > 0)
        throw std::runtime_error(why_refused(Part::kBitErrors));
    if (options.split_one_in != 0)
        throw std::runtime_error(why_refused(Part::kSplitLines));
    tlm::Params params;
    params.cable = options.cable_cycles;
    return params;
}

tlm::Topology tables_of(const Topology &topology)
{
    tlm::Topology::Tables tables;
    auto nodes = static_cast<unsigned>(topology.nodes.size());
    tables.nodes = nodes;
    tables.links = topology.links_used();
    for (unsigned n = 0; n < nodes; n++) {
        for (unsigned l = 0; l < tables.links; l++) {
            const Plug &plug = topology.nodes[n].links[l];
            tables.neighbours.push_back(plug.plugged ? plug.to_node : tlm::kNoNode);
            tables.far_links.push_back(static_cast<uint8_t>(plug.to_link));
        }
        const auto &hops = topology.nodes[n].hops;
        for (unsigned d = 0; d < nodes; d++) {
            unsigned hop = d < hops.size() ? hops[d] : kHopNone;
            if (hop == kHopNone || (hop == kHopLocal && d != n))
                throw std::runtime_error("the fast model needs a route from every node to every "
                                         "other, and node " +
                                         std::to_string(n) + " has none to " + std::to_string(d));
            tables.hops.push_back({hop % kDateline, hop / kDateline});
        }
    }
    return tlm::Topology(std::move(tables));
}

} // namespace

FastHardware::FastHardware(const ClusterOptions &options, const Topology &topology, uint8_t *memory)
    : Hardware(options, static_cast<unsigned>(topology.nodes.size()), memory), names_(size()),
      params_(params_of(options)), topology_(tables_of(topology)),
      nodes_(make_nodes(options, topology)), network_(params_, topology_, *this)
{
    network_.set_ends(*this);
    network_.measure(tlm::kNever, tlm::kNever);
    for (const TopologyNode &node : topology.nodes)
        for (const Plug &plug : node.links)
            plugs_ += plug.plugged;
}

std::vector<std::unique_ptr<FastHardware::Node>>
FastHardware::make_nodes(const ClusterOptions &options, const Topology &topology)
{
    uint64_t dma_cycles = clock().cycle_from(options.host.dma_ns * kPsPerNs);
    std::vector<std::unique_ptr<Node>> nodes;
    nodes.reserve(topology.nodes.size());
    for (unsigned n = 0; n < topology.nodes.size(); n++)
        nodes.push_back(std::make_unique<Node>(*this, n, host(n), dma_cycles));
    return nodes;
}

void FastHardware::boot()
{
    cycle_ = kBootResetCycles;
    cycle_ = write_cycle(clock().start_ps(cycle_)) + kBootRouteCycles * nodes_.size() +
             kBootLinksCycles + params_.cable;
    for (unsigned plug = 0; plug < plugs_; plug++)
        cycle_ = read_cycle(clock().start_ps(cycle_)) + kBootReadCycles;
    network_.run(cycle_);
}

// ----- cycles

void FastHardware::step(uint64_t end_cycle)
{
    while (cycle_ < end_cycle) {
        bool is_idle = network_.is_finished();
        uint64_t end = end_cycle;
        if (!events_.empty())
            end = std::min(end, events_.top().cycle + 1);
        else if (is_idle) {
            uint64_t seen = seen_cycle(); // A rank that waits only for this goes on then.
            cycle_ = seen > cycle_ ? std::min(end, seen) : end == UINT64_MAX ? cycle_ + 1 : end;
            network_.run(cycle_);
            return;
        }
        if (!is_idle) {
            end = std::min(end,
                           cycle_ + (waiting_ports_ ? kLookAheadWaitingCycles : kLookAheadCycles));
            evaluated_ += (end - cycle_) * nodes_.size();
        }
        network_.run(end);
        cycle_ = end;
        if (handle_until(end))
            return;
    }
}

// What happens in cycles before that one. True: something has come to a host.
bool FastHardware::handle_until(uint64_t cycle)
{
    bool came = false;
    while (!events_.empty() && events_.top().cycle < cycle) {
        const Event event = events_.top();
        events_.pop();
        switch (event.kind) {
        case Kind::kBegin:
            begin_line(event.node, event.cycle);
            break;
        case Kind::kTaken:
            take_line(event.node, event.cycle);
            break;
        case Kind::kControl:
            came |= take_control(event.node, event.cycle);
            break;
        case Kind::kDma:
            begin_dma(event.node, event.cycle, event.place);
            break;
        case Kind::kArrival:
            arrive(event.node, event.cycle, event.place);
            came = true;
            break;
        case Kind::kAction:
            act(event.cycle, event.place);
            came |= !host(event.node).arrivals.empty();
        }
    }
    return came;
}

bool FastHardware::is_quiet() const
{
    return events_.empty() && network_.is_finished() && cycle_ >= seen_cycle();
}

// It is quiet as soon as nothing is under way.
bool FastHardware::is_barren(uint64_t /*since_cycle*/) const { return false; }

void FastHardware::put(uint64_t cycle, Kind kind, unsigned node, uint32_t place)
{
    events_.push({cycle, orders_++, kind, node, place});
}

void FastHardware::act(uint64_t cycle, uint32_t place)
{
    Timer::Action action = std::move(actions_[place]);
    free_actions_.push_back(place);
    action(cycle);
}

void FastHardware::accessed(unsigned node)
{
    if (!nodes_[node]->stores_busy)
        plan_stores(node, cycle_);
    if (!nodes_[node]->control_busy)
        plan_control(node);
}

// ----- lines

// The host's next store begins when it comes, but not before that cycle.
void FastHardware::plan_stores(unsigned node, uint64_t from_cycle)
{
    const auto &stores = host(node).stores;
    nodes_[node]->stores_busy = !stores.empty();
    if (!stores.empty())
        put(std::max(stores.front().from_cycle, from_cycle), Kind::kBegin, node);
}

void FastHardware::begin_line(unsigned node, uint64_t cycle)
{
    Node &at = *nodes_[node];
    const HostAccess &access = host(node).stores.front();
    if (velo_window_unit(access.addr) == VELO_UNIT_RMA) {
        post_descriptor(node, cycle, access);
        return;
    }
    Port &port = at.ports[kRequests];
    uint64_t begin = room_cycle(node, kRequests, cycle + kLineToPort);
    if (begin == UINT64_MAX) {
        waiting_ports_ += !at.stores_wait;
        at.stores_wait = true;
        return;
    }
    if (begin > cycle + kLineToPort) {
        put(begin - kLineToPort, Kind::kBegin, node);
        return;
    }
    unsigned words = access.words * kBeatsAWord;
    port.sent.push_back({line_of(node, cycle, access), nullptr});
    port.fifo.begin(words);
    port.free_cycle = begin + words;
    network_.offer(node * kClasses + kRequests);
    put(cycle + words - 1, Kind::kTaken, node);
}

// From that cycle on the first word of a packet can go into the network port; UINT64_MAX: not
// before another packet has left it.
uint64_t FastHardware::room_cycle(unsigned node, unsigned which, uint64_t cycle)
{
    Port &port = nodes_[node]->ports[which];
    return port.fifo.room_cycle(std::max(cycle, port.free_cycle));
}

void FastHardware::take_line(unsigned node, uint64_t cycle)
{
    host(node).stores.pop_front();
    plan_stores(node, cycle + 1);
}

// ----- the RMA units

// A store that the unit has no room for waits, and all behind it.
void FastHardware::post_descriptor(unsigned node, uint64_t cycle, const HostAccess &access)
{
    Node &at = *nodes_[node];
    if (!at.rma.has_room()) {
        at.stores_wait = true;
        waiting_ports_++;
        return;
    }
    check_descriptor(node, access);
    at.rma.post(cycle, velo_window_source(access.addr), access.line, access.words);
    put(cycle + access.words * kBeatsAWord - 1 + kNameBeats, Kind::kTaken, node);
}

// What velo_rma_requester.sv refuses, the library never posts.
void FastHardware::check_descriptor(unsigned node, const HostAccess &access) const
{
    uint8_t op = velo_rma_descriptor_op(access.line[0]);
    uint8_t notify = velo_rma_descriptor_notify(access.line[0]);
    uint32_t len = velo_rma_descriptor_len(access.line[0]);
    unsigned to = names_.node(Names::of_fields(velo_rma_descriptor_dst_node(access.line[0]),
                                               velo_rma_descriptor_dst_ctx(access.line[0])));
    bool is_put = op == VELO_RMA_OP_PUT, is_notify = op == VELO_RMA_OP_NOTIFY;
    bool is_immediate = op == VELO_RMA_OP_PUT_IMMEDIATE, is_get = op == VELO_RMA_OP_GET;
    bool is_update = op == VELO_RMA_OP_FETCH_COMPARE_ADD;
    uint8_t allowed = VELO_RMA_PLACE_REQUESTER |
                      (is_get || is_update ? VELO_RMA_PLACE_RESPONDER : VELO_RMA_PLACE_COMPLETER);
    bool is_sized = is_update
                        ? len == 8 && velo_rma_descriptor_local_address(access.line[1]) % 8 == 0 &&
                              velo_rma_descriptor_remote_address(access.line[2]) % 8 == 0
                    : is_immediate ? len >= 1 && len <= 8
                    : is_notify    ? len == 0 && (notify & VELO_RMA_PLACE_COMPLETER)
                                   : is_put || is_get;
    bool is_right = access.addr % (1u << VELO_ADDRESS_PAGE_BITS) == 0 && is_sized &&
                    access.words == (is_update ? 5 : 3) && !(notify & ~allowed) &&
                    (is_update || !velo_rma_descriptor_add_always(access.line[0])) &&
                    to < nodes_.size();
    if (!is_right)
        throw JobError("the fast model carries out no malformed descriptor; node " +
                       std::to_string(node) + " was given one, use --model rtl");
}

void FastHardware::Node::at(uint64_t cycle, Action action)
{
    auto place = static_cast<uint32_t>(hardware.actions_.size());
    if (hardware.free_actions_.empty()) {
        hardware.actions_.push_back(std::move(action));
    } else {
        place = hardware.free_actions_.back();
        hardware.free_actions_.pop_back();
        hardware.actions_[place] = std::move(action);
    }
    hardware.put(cycle, Kind::kAction, number, place);
}

void FastHardware::Node::send(RmaClass which, uint64_t cycle, std::unique_ptr<RmaPacket> packet,
                              Begun begun)
{
    ports[which].waiting = std::move(packet);
    ports[which].begun = std::move(begun);
    at(cycle, [this, which](uint64_t now) { hardware.try_send(number, which, now); });
}

// Of requests the network port passes on words as they come, of others whole packets.
void FastHardware::try_send(unsigned node, RmaClass which, uint64_t cycle)
{
    Node &at = *nodes_[node];
    Port &port = at.ports[which];
    uint64_t begin = room_cycle(node, which, cycle);
    if (begin == UINT64_MAX) {
        port.waits = true;
        waiting_ports_++;
        return;
    }
    if (begin > cycle) {
        at.at(begin, [this, node, which](uint64_t now) { try_send(node, which, now); });
        return;
    }
    const RmaPacket &packet = *port.waiting;
    unsigned words = packet.words();
    uint64_t passed = which == kRequests ? begin : begin + words - 1;
    Sent sent;
    sent.line.message = {.born = passed + 1 - params_.inject,
                         .to = names_.node(packet.to),
                         .bytes = static_cast<uint32_t>(packet.data.size()),
                         .words = static_cast<uint16_t>(words)};
    sent.rma = std::move(port.waiting);
    port.sent.push_back(std::move(sent));
    port.fifo.begin(words);
    port.free_cycle = begin + words;
    network_.offer(node * kClasses + which);
    std::exchange(port.begun, nullptr)(begin);
}

void FastHardware::Node::read(RmaClass which, uint64_t first, unsigned words, bool ends)
{
    hardware.network_.read(number * kClasses + which, first, words, ends);
}

void FastHardware::Node::took(RmaClass which, uint64_t free)
{
    hardware.network_.took(number * kClasses + which, free);
}

void FastHardware::Node::room_for_descriptors(uint64_t cycle)
{
    const auto &stores = hardware.host(number).stores;
    if (!stores_wait || velo_window_unit(stores.front().addr) != VELO_UNIT_RMA)
        return;
    stores_wait = false;
    hardware.waiting_ports_--;
    hardware.put(cycle + 1, Kind::kBegin, number);
}

void FastHardware::came(unsigned port, uint32_t packet, tlm::Cycle begin)
{
    nodes_[port / kClasses]->rma.came(static_cast<RmaClass>(port % kClasses),
                                      std::move(under_way_[packet].rma), begin);
}

// ----- lines on their way

// What velo_requester.sv makes of a store. The library stores nothing that it refuses.
FastHardware::Line FastHardware::line_of(unsigned node, uint64_t cycle,
                                         const HostAccess &access) const
{
    unsigned unit = velo_window_unit(access.addr);
    if (unit != VELO_UNIT_VELO)
        throw JobError(why_refused(Part::kCustomUnit));
    uint64_t address = velo_window_target(access.addr), header = access.line[0];
    uint16_t name = Names::of_fields(velo_address_node(address), velo_address_vpid(address));
    unsigned to = names_.node(name), words = velo_address_words(address) + 1U;
    unsigned len = velo_header_len(header);
    if (to >= VELO_GROUP_NODE_MIN && to >= nodes_.size())
        throw JobError(why_refused(Part::kGroups));
    bool is_whole = velo_address_offset(address) == 0 && words == access.words;
    if (!is_whole)
        throw JobError(why_refused(Part::kSplitLines));
    if (to >= nodes_.size() || velo_header_valid(header) != 1 || (len + 7) / 8 + 1 != words)
        throw JobError("the fast model carries no malformed line; node " + std::to_string(node) +
                       " was given one, use --model rtl");
    Line line;
    line.message = {.born = cycle, .to = to, .bytes = len};
    line.header = velo_header_pack(0, velo_header_tag(header), static_cast<uint16_t>(len),
                                   names_.name(node, velo_window_source(access.addr)), 0);
    line.context = names_.context(name);
    std::copy_n(access.line + 1, line.payload.size(), line.payload.begin());
    return line;
}

tlm::Cycle FastHardware::next_born(unsigned source) const
{
    const auto &sent = nodes_[source / kClasses]->ports[source % kClasses].sent;
    return sent.empty() ? tlm::kNever : sent.front().line.message.born;
}

// The packet itself goes when it is launched.
tlm::Message FastHardware::take(unsigned source, tlm::Cycle /*now*/)
{
    return nodes_[source / kClasses]->ports[source % kClasses].sent.front().line.message;
}

void FastHardware::launched(unsigned source, uint32_t packet, tlm::Cycle last)
{
    unsigned node = source / kClasses;
    auto which = static_cast<RmaClass>(source % kClasses);
    Node &from = *nodes_[node];
    Port &port = from.ports[which];
    if (under_way_.size() <= packet)
        under_way_.resize(packet + 1);
    under_way_[packet] = std::move(port.sent.front());
    port.sent.pop_front();
    port.fifo.launched(last);
    uint64_t next = network_.now() + kLookAheadWaitingCycles;
    const auto &stores = host(node).stores;
    if (which == kRequests && from.stores_wait &&
        velo_window_unit(stores.front().addr) != VELO_UNIT_RMA) {
        from.stores_wait = false;
        waiting_ports_--;
        put(next, Kind::kBegin, node);
    }
    if (port.waits) {
        port.waits = false;
        waiting_ports_--;
        from.at(next, [this, node, which](uint64_t now) { try_send(node, which, now); });
    }
}

// ----- arrivals

// Also if there is no ring: then the packet is dropped.
bool FastHardware::has_room(unsigned node, uint32_t packet)
{
    const FastRings &rings = nodes_[node]->rings;
    unsigned context = under_way_[packet].line.context;
    return !rings.is_open(context) || !rings.is_full(context);
}

void FastHardware::arrived(unsigned node, uint32_t packet, tlm::Cycle done)
{
    const Line &line = under_way_[packet].line;
    FastRings &rings = nodes_[node]->rings;
    if (!rings.is_open(line.context))
        return;
    FastRings::Slot slot = rings.take(line.context);
    uint32_t place = static_cast<uint32_t>(arrivals_.size());
    if (free_arrivals_.empty()) {
        arrivals_.emplace_back();
    } else {
        place = free_arrivals_.back();
        free_arrivals_.pop_back();
    }
    arrivals_[place] = {line, slot.addr};
    arrivals_[place].line.header |= uint64_t{slot.seq} << VELO_HEADER_SEQ_LSB;
    put(done - (beats_of(line) - 1), Kind::kDma, node, place);
}

unsigned FastHardware::beats_of(const Line &line)
{
    return ((line.message.bytes + 7U) / 8 + 1) * kBeatsAWord;
}

// Writes of the RMA unit may hold up the message.
void FastHardware::begin_dma(unsigned node, uint64_t cycle, uint32_t place)
{
    unsigned beats = beats_of(arrivals_[place].line);
    put(nodes_[node]->rma.pass_message(cycle, beats), Kind::kArrival, node, place);
}

// The payload goes before the header word.
void FastHardware::arrive(unsigned node, uint64_t cycle, uint32_t place)
{
    const Arrived &came = arrivals_[place];
    size_t bytes = (came.line.message.bytes + 7U) / 8 * 8;
    const auto *payload = reinterpret_cast<const uint8_t *>(came.line.payload.data());
    const auto *header = reinterpret_cast<const uint8_t *>(&came.line.header);
    if (bytes > 0)
        host(node).write(cycle, came.slot + VELO_LINE_HEADER_BYTES, payload, bytes);
    host(node).write(cycle, came.slot, header, sizeof came.line.header);
    free_arrivals_.push_back(place);
}

// ----- registers

void FastHardware::plan_control(unsigned node)
{
    const auto &controls = host(node).controls;
    nodes_[node]->control_busy = !controls.empty();
    if (!controls.empty())
        put(nodes_[node]->registers.done_cycle(controls.front()), Kind::kControl, node);
}

// True: it was a read, and is answered.
bool FastHardware::take_control(unsigned node, uint64_t cycle)
{
    HostSide &side = host(node);
    const HostAccess access = side.controls.front();
    side.controls.pop_front();
    bool has_room = false;
    uint64_t value = nodes_[node]->registers.carry_out(access, cycle, has_room);
    if (access.read)
        side.register_answers.push_back({access.reader, cycle, value});
    if (has_room)
        network_.make_room(node);
    plan_control(node);
    return access.read;
}

} // namespace sim
