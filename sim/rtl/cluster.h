// SPDX-License-Identifier: Apache-2.0
//
// The hardware as its RTL: Verilated nodes and the cables between them.
//
// Stretches in which a node repeats itself are not evaluated; rest.h says which ones, and why
// nothing changes by it.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "../capture.h"
#include "../card/function.h"
#include "../hardware.h"
#include "../topology.h"
#include "cable.h"
#include "node.h"
#include "rest.h"

namespace sim
{

class Cluster final : public Hardware
{
  public:
    Cluster(const ClusterOptions &options, const Topology &topology, uint8_t *memory);

    // Reset, registers, routes, links up. Throws std::runtime_error if a link stays down. A card is
    // set up by its driver, and so are the links to it.
    void boot() override;
    void step(uint64_t end_cycle) override;
    // Every node repeats itself.
    bool is_quiet() const override;
    bool is_barren(uint64_t since_cycle) const override;
    uint64_t bad_words() const override;
    uint64_t evaluated_node_cycles() const override { return evaluated_; }

    // See each word that a link sends; nullptr: none any more.
    void set_capture(Capture *capture) { capture_ = capture; }
    // Show the signals of some nodes in a time that is yet to come.
    void show(std::unique_ptr<Wave> wave, uint64_t from_ps, uint64_t end_ps);
    // Cycles that were shown.
    uint64_t shown() const { return shown_; }
    AnyModel &model(unsigned number) { return nodes_[number]->model(); }
    // By node.
    const std::map<unsigned, card::Function *> &cards() const { return cards_; }

  private:
    ClusterOptions options_;
    Topology topology_;
    std::vector<std::unique_ptr<AnyNode>> nodes_;
    std::map<unsigned, card::Function *> cards_; // of nodes_
    std::vector<std::vector<Cable>> cables_;     // by the node and link at which a cable ends
    std::vector<Rest> rests_;
    struct Words {
        PhyWords at{};
    };
    std::vector<Words> out_; // of each node, in the next cycle
    Capture *capture_ = nullptr;
    std::unique_ptr<Wave> wave_;
    uint64_t wave_from_ = UINT64_MAX, wave_end_ = UINT64_MAX, shown_ = 0; // cycles
    uint64_t evaluated_ = 0;

    unsigned links_of(unsigned node) const;
    void add_node(unsigned number, const Shape &shape);
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
    uint64_t cycles_to_skip(uint64_t end_cycle) const;
    void skip(uint64_t cycles);
};

} // namespace sim
