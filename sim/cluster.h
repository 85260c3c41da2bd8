// SPDX-License-Identifier: Apache-2.0
//
// The hardware: nodes, the cables between them and their common clock. Knows no processes.
//
// Stretches in which a node repeats itself are not evaluated; rest.h says which ones, and why
// nothing changes by it.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "cable.h"
#include "card/function.h"
#include "clock.h"
#include "host_model.h"
#include "node.h"
#include "record.h"
#include "rest.h"
#include "topology.h"

namespace sim
{

struct ClusterOptions {
    uint64_t clock_khz = 100000;
    // The shape of each node. No links: each has as many as the topology needs.
    Shape shape;
    unsigned cable_cycles = 0;
    double error_rate = 0;
    uint64_t seed = 1;
    // One in so many lines comes to its node in parts, as a host's write buffers may send it; 0:
    // none.
    unsigned split_one_in = 0;
    bool skip = true;
    std::set<unsigned> shown; // nodes that a waveform may show
    std::set<unsigned> cards; // nodes that are cards of guests
    HostModel host;
};

class Cluster
{
  public:
    // `memory`: that of all nodes, one after the other.
    Cluster(const ClusterOptions &options, const Topology &topology, uint8_t *memory);

    // Reset, registers, routes, links up. Throws std::runtime_error if a link stays down. A card is
    // set up by its driver, and so are the links to it.
    void boot();

    // Show the signals of some nodes in a time that is yet to come.
    void show(std::unique_ptr<Wave> wave, uint64_t from_ps, uint64_t end_ps);
    // Cycles that were shown.
    uint64_t shown() const { return shown_; }

    // nullptr: nothing is recorded any more.
    void set_recorder(Recorder *recorder) { recorder_ = recorder; }

    const Clock &clock() const { return clock_; }
    unsigned size() const { return static_cast<unsigned>(nodes_.size()); }
    // Is there such a node, with a host of this simulator's?
    bool hosts(uint64_t number) const { return number < nodes_.size() && hosted_[number]; }
    Node &node(unsigned number) { return *hosted_[number]; }
    card::Function &card(unsigned number) { return *cards_.at(number); }
    AnyModel &model(unsigned number) { return nodes_[number]->model(); }
    // The number of the next cycle.
    uint64_t cycle() const { return cycle_; }
    // Step one cycle, or a stretch of cycles in which nothing happens, but not beyond `end_cycle`.
    void step(uint64_t end_cycle);
    // Every node repeats itself, nothing is on its way to a node, and all that nodes wrote can be
    // seen.
    bool is_quiet() const;
    // For long no node has used memory: nothing comes any more, though nodes may not rest (because
    // a cable has errors, for example).
    bool is_barren(uint64_t since_cycle) const;
    // Put into memory what nodes wrote, as far as it has reached memory by that time.
    void publish_until(uint64_t time_ps);
    // Nothing that nodes write can be seen before this time, but what is published.
    uint64_t next_visible_ps() const;

    // --- accesses of the host, at a time not before the last cycle's end ---
    void store(unsigned node, uint64_t time_ps, HostAccess access);
    void write_register(unsigned node, uint64_t time_ps, uint64_t offset, uint64_t value);
    void read_register(unsigned node, uint64_t time_ps, uint64_t offset, uint64_t reader);

    // The time at which memory shows a node's writes of a cycle.
    uint64_t visible_ps(uint64_t cycle) const;
    // The time at which a processor has the answer that a register gave in a cycle.
    uint64_t answered_ps(uint64_t cycle) const;
    uint64_t bad_words() const;
    uint64_t node_cycles() const { return cycle_ * nodes_.size(); }
    uint64_t evaluated_node_cycles() const { return evaluated_; }

  private:
    ClusterOptions options_;
    Topology topology_;
    Clock clock_;
    std::vector<std::unique_ptr<AnyNode>> nodes_;
    std::vector<Node *> hosted_;                 // of nodes_; nullptr: a card
    std::map<unsigned, card::Function *> cards_; // of nodes_
    std::vector<std::vector<Cable>> cables_;     // by the node and link at which a cable ends
    std::vector<Rest> rests_;
    std::vector<Random> splits_; // of each node
    struct Words {
        PhyWords at{};
    };
    std::vector<Words> out_; // of each node, in the next cycle
    Recorder *recorder_ = nullptr;
    std::unique_ptr<Wave> wave_;
    uint64_t wave_from_ = UINT64_MAX, wave_end_ = UINT64_MAX, shown_ = 0; // cycles
    uint64_t cycle_ = 0, evaluated_ = 0;

    unsigned links_of(unsigned node) const;
    uint64_t taken_cycle(uint64_t time_ps) const;
    void pass(unsigned node, uint64_t time_ps, const HostAccess &access);
    void add_node(unsigned number, const Shape &shape, uint8_t *memory);
    void set_up(unsigned node);
    void check_links();
    void step_one();
    void step_node(unsigned number);
    void step_shown();
    void send();
    void hear(unsigned number, PhyWords &in);
    void edge(unsigned number);
    void watch(unsigned number, const PhyWords &in);
    void wake(unsigned number);
    void check_rest(unsigned number);
    uint64_t seen_cycle() const;
    uint64_t cycles_to_skip(uint64_t end_cycle) const;
    void skip(uint64_t cycles);
};

} // namespace sim
