// SPDX-License-Identifier: Apache-2.0
//
// A card as a node of the cluster: its host's side are transaction-layer packets to and from the
// function (rtl/pcie). What they mean to a guest is the matter of a Host.

#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "../rtl/any_node.h"
#include "model.h"

namespace sim::card
{

// A read of the guest's memory that the function has asked for.
struct MemoryRead {
    uint64_t address;
    unsigned len_bytes;
    uint16_t requester;
    uint8_t tag;
};

// The function's other side. Called in a cycle; may call the function in turn.
class Host
{
  public:
    virtual ~Host() = default;

    virtual void write(uint64_t address, std::span<const uint8_t> bytes) = 0;
    // Answered by Function::complete(), now or later.
    virtual void read(const MemoryRead &read) = 0;
    // What Function::load() was for: the bytes, or none if the function refused it.
    virtual void loaded(std::span<const uint8_t> bytes) = 0;
    virtual void reset_done() = 0;
    virtual void note(Error error) = 0;
};

class Function : public AnyNode
{
  public:
    Function(unsigned number, bool is_shown);

    void set_host(Host *host) { host_ = host; }

    // --- the guest's accesses ---
    // Packets that the function has not taken yet.
    size_t packets_waiting() const { return in_.size(); }
    // Bytes within one line of 64.
    void store(unsigned bar, uint64_t offset, std::span<const uint8_t> bytes);
    // Bytes of one aligned word of 8; one load at a time.
    void load(unsigned bar, uint64_t offset, unsigned len_bytes);
    // `bytes`: as many as were asked for, or none: refused.
    void complete(const MemoryRead &read, std::span<const uint8_t> bytes);
    void set_config(const FunctionConfig &config);
    // Function-level reset. Stores that the node has not taken are gone; a load has no
    // answer.
    void reset();
    bool resetting() const { return inputs_.function_reset || reset_ends_; }

    // --- the cluster's side ---
    AnyModel &model() override { return *model_; }
    uint64_t next_access_cycle() const override
    {
        return in_.empty() && !touched_ ? UINT64_MAX : 0;
    }
    bool host_side_is_idle() const override { return idle_; }
    uint64_t last_dma_cycle() const override { return last_packet_cycle_; }
    void set_reset(bool reset) override { inputs_.reset = reset; }
    void set_phy_up(uint8_t links) override { inputs_.phy_up = links; }
    void settle(uint64_t cycle, const PhyWords &in) override;
    void edge(uint64_t cycle, PhyWords &out) override;

  private:
    // The header's dwords are numbers, those of data as in memory.
    struct Packet {
        std::vector<uint32_t> dwords;
        int bar = -1; // -1: a completion
    };

    std::unique_ptr<CardModel> model_;
    CardInputs inputs_;
    CardOutputs outputs_;
    Host *host_ = nullptr;
    std::deque<Packet> in_;
    size_t in_dword_ = 0; // of the first packet, those that were taken
    std::vector<uint32_t> out_;
    bool touched_ = true; // an input changes in the next cycle
    bool idle_ = false;
    bool reset_ends_ = false; // the function is reset, and is to see that its host knows
    bool loading_ = false;
    uint64_t load_offset_ = 0;
    unsigned load_bytes_ = 0;
    uint8_t load_tag_ = 0;
    unsigned reads_ = 0; // of memory, that are under way
    uint64_t last_packet_cycle_ = 0;

    void request(uint8_t tlp, unsigned bar, uint64_t offset, size_t len_bytes, uint8_t tag,
                 std::span<const uint8_t> bytes);
    void take_packet();
    void take_write(std::span<const uint32_t> dwords);
    void take_read(std::span<const uint32_t> dwords);
    void take_completion(std::span<const uint32_t> dwords);
    void note_errors();
};

} // namespace sim::card
