// SPDX-License-Identifier: Apache-2.0
//
// One node and its host's side: the ways of posted writes to it, register reads, its memory, and
// the messages and notifications that arrive there.
//
// A node knows cycles; its caller turns them into times. A write of the node is seen in memory only
// when publish_before() is called for a later cycle, or when the node itself reads memory later.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "../spec/sim_channel.h"
#include "any_node.h"
#include "pages.h"

namespace sim
{

// A posted write, or a read of a register, on its way to the node.
struct HostAccess {
    uint64_t from_cycle = 0; // when it comes to the node
    uint64_t addr = 0;
    bool read = false;
    uint8_t words = 0;
    uint64_t reader = 0; // channel that waits for the answer
    uint64_t line[8] = {};
};

// A word that makes a message in a ring valid, or a notification in a queue, as it leaves the node.
struct Arrival {
    unsigned node, context;
    uint64_t cycle;
    uint64_t header;
    uint64_t payload; // its first word, if it has one
    bool is_notification;
};

struct RegisterAnswer {
    uint64_t reader;
    uint64_t cycle, value;
};

class Node : public AnyNode
{
  public:
    Node(unsigned number, const Shape &shape, uint8_t *memory, uint64_t dma_cycles, bool is_shown);

    AnyModel &model() override { return *model_; }

    // --- the host's side ---
    bool store_fits() const;
    size_t stores_waiting() const { return stores_.size(); }
    void store(const HostAccess &access) { stores_.push_back(access); }
    void control(const HostAccess &access) { controls_.push_back(access); }
    // Nothing is on its way to the registers.
    bool control_is_empty() const { return controls_.empty(); }
    uint64_t next_access_cycle() const override;

    // --- the cycle ---
    void set_reset(bool reset) override { inputs_.reset = reset; }
    void set_phy_up(uint8_t links) override { inputs_.phy_up = links; }
    void settle(uint64_t cycle, const PhyWords &in) override;
    void edge(uint64_t cycle, PhyWords &out) override;
    bool host_side_is_idle() const override { return idle_; }

    // --- memory ---
    // Put the writes that left the node in cycles before `cycle` into memory.
    void publish_before(uint64_t cycle);
    uint64_t next_publish_cycle() const
    {
        return writes_.empty() ? UINT64_MAX : writes_.front().cycle;
    }
    uint64_t last_publish_cycle() const { return writes_.empty() ? 0 : writes_.back().cycle; }
    uint64_t last_dma_cycle() const override { return last_dma_cycle_; }
    void empty_ring(unsigned context);
    void empty_queue(unsigned context);
    Pages &pages() { return pages_; }
    // Accesses of the node to memory that is not there, or not any more.
    uint64_t lost_accesses() const { return lost_; }

    // Brought by the last cycles. The caller that looks at them removes them.
    std::vector<Arrival> arrivals;
    std::vector<RegisterAnswer> register_answers;

  private:
    struct Write {
        uint64_t cycle, addr;
        unsigned bytes;
        uint64_t data;
    };
    // Memory is looked at halfway between question and answer.
    struct Read {
        uint64_t asked_cycle, addr;
        uint16_t len_bytes, tag;
        bool looked = false, refused = false;
        std::vector<uint8_t> bytes{};
    };

    unsigned beat_bytes_;
    uint8_t *memory_;
    uint64_t dma_cycles_;
    std::unique_ptr<Model> model_;
    ModelInputs inputs_;
    ModelOutputs outputs_;
    std::deque<HostAccess> stores_, controls_;
    unsigned store_beat_ = 0, control_beat_ = 0;
    bool reading_ = false; // the read at the head was taken, its answer is to come
    unsigned answer_beats_ = 0;
    uint64_t answer_ = 0;
    std::deque<Write> writes_;
    unsigned dma_beat_ = 0;
    std::vector<uint8_t> dma_bytes_; // of a word that is not whole yet
    std::deque<Read> reads_;         // of memory, by DMA
    unsigned read_offset_ = 0;
    Pages pages_;
    uint64_t lost_ = 0, last_dma_cycle_ = 0;
    bool idle_ = false;

    void drive(uint64_t cycle);
    void drive_dma_answer(uint64_t cycle);
    void collect(uint64_t cycle);
    void take_dma_write(uint64_t cycle);
    void take_register_answer(uint64_t cycle);
    void flush_dma(uint64_t cycle, uint64_t addr);
    void note_arrival(uint64_t cycle, uint64_t addr, uint64_t word);
    uint64_t written_word(uint64_t addr) const;
    void put_word(const Write &write);
    void put_run(uint64_t cycle);
    void look(Read &read);
};

} // namespace sim
