// SPDX-License-Identifier: Apache-2.0
//
// The hardware as transactions: the network that velo-tlm is made of too, with hosts and processes
// at its ends. Events are the cycles in which a host's access is taken and in which a message is in
// the host's memory; between them nothing is evaluated. scope.h says what is modelled.

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <queue>
#include <vector>

#include "../hardware.h"
#include "../tlm/network.h"
#include "../topology.h"
#include "host_port.h"
#include "registers.h"
#include "rings.h"

namespace sim
{

class FastHardware final : public Hardware, private tlm::Traffic, private tlm::Ends
{
  public:
    // Throws std::runtime_error if the model does not have what is asked for.
    FastHardware(const ClusterOptions &options, const Topology &topology, uint8_t *memory);

    void boot() override;
    void step(uint64_t end_cycle) override;
    bool is_quiet() const override;
    bool is_barren(uint64_t since_cycle) const override;
    uint64_t bad_words() const override { return 0; }
    // In the others nothing was under way.
    uint64_t evaluated_node_cycles() const override { return evaluated_; }

  private:
    // A line on its way to a slot.
    struct Line {
        tlm::Message message;
        uint64_t header; // of the slot, all but its `seq`
        uint8_t context;
        std::array<uint64_t, 7> payload;
    };
    struct Node {
        Node() = default;
        Node(const Node &) = delete;
        Node &operator=(const Node &) = delete;

        HostPort port;
        FastRings rings;
        FastRegisters registers{rings};
        std::deque<Line> lines;    // that the switch has not taken yet
        bool stores_busy = false;  // the front of the host's stores has an event, or waits for room
        bool stores_wait = false;  // for room
        bool control_busy = false; // the front of its register accesses has an event
    };
    // In one cycle those of a node come in the order in which they were put in.
    enum class Kind : uint8_t { kBegin, kTaken, kControl, kArrival };
    struct Event {
        uint64_t cycle, order;
        Kind kind;
        unsigned node;
        uint32_t arrival; // of arrivals_
        bool operator>(const Event &other) const
        {
            return cycle != other.cycle ? cycle > other.cycle : order > other.order;
        }
    };
    struct Arrived {
        Line line;
        uint64_t slot;
    };

    tlm::Params params_;
    tlm::Topology topology_;
    std::vector<Node> nodes_;
    tlm::Network network_;
    unsigned plugs_ = 0; // of all nodes
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    uint64_t orders_ = 0;
    std::vector<Line> under_way_;   // by packet
    std::vector<Arrived> arrivals_; // of events to come
    std::vector<uint32_t> free_arrivals_;
    unsigned waiting_ports_ = 0;
    uint64_t evaluated_ = 0;

    void accessed(unsigned node) override;
    void put(uint64_t cycle, Kind kind, unsigned node, uint32_t arrival = 0);
    bool handle_until(uint64_t cycle);
    void plan_stores(unsigned node, uint64_t from_cycle);
    void begin_line(unsigned node, uint64_t cycle);
    void take_line(unsigned node, uint64_t cycle);
    void plan_control(unsigned node);
    bool take_control(unsigned node, uint64_t cycle);
    void arrive(unsigned node, uint64_t cycle, uint32_t arrival);
    Line line_of(unsigned node, uint64_t cycle, const HostAccess &access) const;

    // --- Traffic ---
    tlm::Cycle next_born(unsigned node) const override;
    tlm::Message take(unsigned node, tlm::Cycle now) override;

    // --- Ends ---
    void launched(unsigned node, uint32_t packet, tlm::Cycle last) override;
    bool has_room(unsigned node, uint32_t packet) override;
    void arrived(unsigned node, uint32_t packet, tlm::Cycle done) override;
};

} // namespace sim
