// SPDX-License-Identifier: Apache-2.0
//
// The hardware as transactions: the network that velo-tlm is made of too, with hosts and processes
// at its ends. Events are the cycles in which a host's access is taken and in which a message is in
// the host's memory, and those of the RMA units; between them nothing is evaluated. scope.h says
// what is modelled.

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <queue>
#include <vector>

#include "../hardware.h"
#include "../names.h"
#include "../tlm/network.h"
#include "../topology.h"
#include "host_port.h"
#include "registers.h"
#include "rings.h"
#include "rma.h"
#include "velo/spec.h"

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
    // On its way through the network: a line, or a packet of the RMA unit.
    struct Sent {
        Line line;
        std::unique_ptr<RmaPacket> rma;
    };
    // A network port of a node, from its units to the switch. Its units take turns, whole packets.
    struct Port {
        HostPort fifo;
        std::deque<Sent> sent;   // that the switch has not taken yet
        uint64_t free_cycle = 0; // the first word of another packet goes in
        // That cannot go yet.
        std::unique_ptr<RmaPacket> waiting;
        RmaNode::Begun begun;
        bool waits = false; // for room
    };
    class Node final : public RmaNode
    {
      public:
        Node(FastHardware &model, unsigned node, HostSide &host, uint64_t dma_cycles)
            : hardware(model), number(node), rma(node, model.names_, host, dma_cycles, *this)
        {
        }

        FastHardware &hardware;
        unsigned number;
        std::array<Port, kClasses> ports;
        FastRings rings{VELO_LINE_BYTES};
        FastRma rma;
        FastRegisters registers{rings, rma};
        bool stores_busy = false;  // the front of the host's stores has an event, or waits for room
        bool stores_wait = false;  // for room
        bool control_busy = false; // the front of its register accesses has an event

        // --- RmaNode ---
        void at(uint64_t cycle, Action action) override;
        void send(RmaClass which, uint64_t cycle, std::unique_ptr<RmaPacket> packet,
                  Begun begun) override;
        void read(RmaClass which, uint64_t first, unsigned words, bool ends) override;
        void took(RmaClass which, uint64_t free) override;
        void room_for_descriptors(uint64_t cycle) override;
    };
    // In one cycle those of a node come in the order in which they were put in.
    enum class Kind : uint8_t { kBegin, kTaken, kControl, kDma, kArrival, kAction };
    struct Event {
        uint64_t cycle, order;
        Kind kind;
        unsigned node;
        uint32_t place; // of arrivals_ or actions_
        bool operator>(const Event &other) const
        {
            return cycle != other.cycle ? cycle > other.cycle : order > other.order;
        }
    };
    struct Arrived {
        Line line;
        uint64_t slot;
    };

    Names names_;
    tlm::Params params_;
    tlm::Topology topology_;
    std::vector<std::unique_ptr<Node>> nodes_;
    tlm::Network<kClasses> network_;
    unsigned plugs_ = 0; // of all nodes
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    uint64_t orders_ = 0;
    std::vector<Sent> under_way_;   // by packet
    std::vector<Arrived> arrivals_; // of events to come
    std::vector<uint32_t> free_arrivals_;
    std::vector<Timer::Action> actions_; // of events to come
    std::vector<uint32_t> free_actions_;
    unsigned waiting_ports_ = 0;
    uint64_t evaluated_ = 0;

    void accessed(unsigned node) override;
    void put(uint64_t cycle, Kind kind, unsigned node, uint32_t place = 0);
    bool handle_until(uint64_t cycle);
    void plan_stores(unsigned node, uint64_t from_cycle);
    void begin_line(unsigned node, uint64_t cycle);
    void post_descriptor(unsigned node, uint64_t cycle, const HostAccess &access);
    void take_line(unsigned node, uint64_t cycle);
    uint64_t room_cycle(unsigned node, unsigned which, uint64_t cycle);
    void try_send(unsigned node, RmaClass which, uint64_t cycle);
    void plan_control(unsigned node);
    bool take_control(unsigned node, uint64_t cycle);
    void begin_dma(unsigned node, uint64_t cycle, uint32_t place);
    void arrive(unsigned node, uint64_t cycle, uint32_t place);
    void act(uint64_t cycle, uint32_t place);
    std::vector<std::unique_ptr<Node>> make_nodes(const ClusterOptions &options,
                                                  const Topology &topology);
    void check_descriptor(unsigned node, const HostAccess &access) const;
    static unsigned beats_of(const Line &line);
    Line line_of(unsigned node, uint64_t cycle, const HostAccess &access) const;

    // --- Traffic ---
    tlm::Cycle next_born(unsigned source) const override;
    tlm::Message take(unsigned source, tlm::Cycle now) override;

    // --- Ends ---
    void launched(unsigned source, uint32_t packet, tlm::Cycle last) override;
    bool has_room(unsigned node, uint32_t packet) override;
    void arrived(unsigned node, uint32_t packet, tlm::Cycle done) override;
    void came(unsigned port, uint32_t packet, tlm::Cycle begin) override;
};

} // namespace sim
