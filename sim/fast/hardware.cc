// SPDX-License-Identifier: Apache-2.0
#include "hardware.h"

#include <algorithm>
#include <stdexcept>
#include <string>

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
    : Hardware(options, static_cast<unsigned>(topology.nodes.size()), memory),
      params_(params_of(options)), topology_(tables_of(topology)), nodes_(topology.nodes.size()),
      network_(params_, topology_, *this)
{
    network_.set_ends(*this);
    network_.measure(tlm::kNever, tlm::kNever);
    for (const TopologyNode &node : topology.nodes)
        for (const Plug &plug : node.links)
            plugs_ += plug.plugged;
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
        case Kind::kArrival:
            arrive(event.node, event.cycle, event.arrival);
            came = true;
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

void FastHardware::put(uint64_t cycle, Kind kind, unsigned node, uint32_t arrival)
{
    events_.push({cycle, orders_++, kind, node, arrival});
}

void FastHardware::accessed(unsigned node)
{
    if (!nodes_[node].stores_busy)
        plan_stores(node, cycle_);
    if (!nodes_[node].control_busy)
        plan_control(node);
}

// ----- lines

// The host's next store begins when it comes, but not before that cycle.
void FastHardware::plan_stores(unsigned node, uint64_t from_cycle)
{
    const auto &stores = host(node).stores;
    nodes_[node].stores_busy = !stores.empty();
    if (!stores.empty())
        put(std::max(stores.front().from_cycle, from_cycle), Kind::kBegin, node);
}

void FastHardware::begin_line(unsigned node, uint64_t cycle)
{
    Node &at = nodes_[node];
    if (!at.port.has_room(cycle)) {
        waiting_ports_ += !at.stores_wait;
        at.stores_wait = true;
        return;
    }
    const HostAccess &access = host(node).stores.front();
    at.lines.push_back(line_of(node, cycle, access));
    at.port.begin(access.words * kBeatsAWord);
    network_.offer(node);
    put(cycle + access.words * kBeatsAWord - 1, Kind::kTaken, node);
}

void FastHardware::take_line(unsigned node, uint64_t cycle)
{
    host(node).stores.pop_front();
    plan_stores(node, cycle + 1);
}

// What velo_requester.sv makes of a store. The library stores nothing that it refuses.
FastHardware::Line FastHardware::line_of(unsigned node, uint64_t cycle,
                                         const HostAccess &access) const
{
    unsigned unit = velo_window_unit(access.addr);
    if (unit == VELO_UNIT_RMA)
        throw JobError(why_refused(Part::kRemoteMemory));
    if (unit != VELO_UNIT_VELO)
        throw JobError(why_refused(Part::kCustomUnit));
    uint64_t address = velo_window_target(access.addr), header = access.line[0];
    unsigned to = velo_address_node(address), words = velo_address_words(address) + 1U;
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
    line.header = velo_header_pack(
        0, static_cast<uint8_t>(velo_header_tag(header)), static_cast<uint16_t>(len),
        static_cast<uint16_t>(node << 8 | velo_window_source(access.addr)), 0);
    line.context = static_cast<uint8_t>(velo_address_vpid(address));
    std::copy_n(access.line + 1, line.payload.size(), line.payload.begin());
    return line;
}

tlm::Cycle FastHardware::next_born(unsigned node) const
{
    return nodes_[node].lines.empty() ? tlm::kNever : nodes_[node].lines.front().message.born;
}

// The line itself goes with its packet, which is launched later.
tlm::Message FastHardware::take(unsigned node, tlm::Cycle /*now*/)
{
    return nodes_[node].lines.front().message;
}

void FastHardware::launched(unsigned node, uint32_t packet, tlm::Cycle last)
{
    Node &from = nodes_[node];
    if (under_way_.size() <= packet)
        under_way_.resize(packet + 1);
    under_way_[packet] = from.lines.front();
    from.lines.pop_front();
    from.port.launched(last);
    if (!from.stores_wait)
        return;
    from.stores_wait = false;
    waiting_ports_--;
    put(last + 2, Kind::kBegin, node);
}

// ----- arrivals

// Also if there is no ring: then the packet is dropped.
bool FastHardware::has_room(unsigned node, uint32_t packet)
{
    const FastRings &rings = nodes_[node].rings;
    unsigned context = under_way_[packet].context;
    return !rings.is_open(context) || !rings.is_full(context);
}

void FastHardware::arrived(unsigned node, uint32_t packet, tlm::Cycle done)
{
    const Line &line = under_way_[packet];
    FastRings &rings = nodes_[node].rings;
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
    put(done, Kind::kArrival, node, place);
}

// The payload goes before the header word.
void FastHardware::arrive(unsigned node, uint64_t cycle, uint32_t arrival)
{
    const Arrived &came = arrivals_[arrival];
    size_t bytes = (came.line.message.bytes + 7U) / 8 * 8;
    const auto *payload = reinterpret_cast<const uint8_t *>(came.line.payload.data());
    const auto *header = reinterpret_cast<const uint8_t *>(&came.line.header);
    if (bytes > 0)
        host(node).write(cycle, came.slot + VELO_LINE_HEADER_BYTES, payload, bytes);
    host(node).write(cycle, came.slot, header, sizeof came.line.header);
    free_arrivals_.push_back(arrival);
}

// ----- registers

void FastHardware::plan_control(unsigned node)
{
    const auto &controls = host(node).controls;
    nodes_[node].control_busy = !controls.empty();
    if (!controls.empty())
        put(nodes_[node].registers.done_cycle(controls.front()), Kind::kControl, node);
}

// True: it was a read, and is answered.
bool FastHardware::take_control(unsigned node, uint64_t cycle)
{
    HostSide &side = host(node);
    const HostAccess access = side.controls.front();
    side.controls.pop_front();
    bool has_room = false;
    uint64_t value = nodes_[node].registers.carry_out(access, cycle, has_room);
    if (access.read)
        side.register_answers.push_back({access.reader, cycle, value});
    if (has_room)
        network_.make_room(node);
    plan_control(node);
    return access.read;
}

} // namespace sim
