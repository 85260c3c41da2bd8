// SPDX-License-Identifier: Apache-2.0
//
// One Verilated node and the ports between it and its host's side: posted writes and register reads
// go in beat by beat, and so does memory that the node reads; what it writes comes out.

#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "../host_side.h"
#include "any_node.h"

namespace sim
{

class Node : public AnyNode
{
  public:
    Node(unsigned number, const Shape &shape, HostSide &host, uint64_t dma_cycles, bool is_shown);

    HostSide &host() { return host_; }
    AnyModel &model() override { return *model_; }
    uint64_t next_access_cycle() const override { return host_.next_access_cycle(); }
    void set_reset(bool reset) override { inputs_.reset = reset; }
    void set_phy_up(uint8_t links) override { inputs_.phy_up = links; }
    void settle(uint64_t cycle, const PhyWords &in) override;
    void edge(uint64_t cycle, PhyWords &out) override;
    bool host_side_is_idle() const override { return idle_; }
    uint64_t last_dma_cycle() const override { return last_dma_cycle_; }

  private:
    // Memory is looked at halfway between question and answer.
    struct Read {
        uint64_t asked_cycle, addr;
        uint16_t len_bytes, tag;
        bool looked = false, refused = false;
        std::vector<uint8_t> bytes{};
    };

    HostSide &host_;
    unsigned beat_bytes_;
    uint64_t dma_cycles_;
    std::unique_ptr<Model> model_;
    ModelInputs inputs_;
    ModelOutputs outputs_;
    unsigned store_beat_ = 0, control_beat_ = 0;
    bool reading_ = false; // the read at the head was taken, its answer is to come
    unsigned answer_beats_ = 0;
    uint64_t answer_ = 0;
    unsigned dma_beat_ = 0;
    std::vector<uint8_t> dma_bytes_; // of a word that is not whole yet
    std::deque<Read> reads_;         // of memory, by DMA
    unsigned read_offset_ = 0;
    uint64_t last_dma_cycle_ = 0;
    bool idle_ = false;

    void drive(uint64_t cycle);
    void drive_dma_answer(uint64_t cycle);
    void collect(uint64_t cycle);
    void take_dma_write(uint64_t cycle);
    void take_register_answer(uint64_t cycle);
    void look(Read &read);
};

} // namespace sim
