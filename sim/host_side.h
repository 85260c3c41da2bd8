// SPDX-License-Identifier: Apache-2.0
//
// The host's side of a node, the same for every model of the hardware: the ways of posted writes to
// the node and of register reads, its memory, and the messages and notifications that arrive there.
//
// It knows cycles; its caller turns them into times. A write of the node is seen in memory only
// when publish_before() is called for a later cycle. A model calls it before the node reads memory.

#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "../spec/sim_channel.h"
#include "host_model.h"
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

class HostSide
{
  public:
    // `memory`: SIM_MEMORY_BYTES of it, all zero.
    HostSide(unsigned node, uint8_t *memory);

    // --- the processors' end ---
    bool store_fits() const { return stores.size() < kStoreQueueLines; }
    // Nothing is on its way to the registers.
    bool control_is_empty() const { return controls.empty(); }
    // The first cycle that may have an access for the node; UINT64_MAX: none is open.
    uint64_t next_access_cycle() const;

    // --- the node's end ---
    // What comes to the node next is at the front. The model takes it and removes it.
    std::deque<HostAccess> stores, controls;
    // The node writes memory in this cycle. A reader never sees half of an aligned word that is
    // written in one call.
    void write(uint64_t cycle, uint64_t addr, const uint8_t *bytes, size_t count);
    // The node reads memory. False: there is none.
    bool read(uint64_t addr, uint8_t *bytes, size_t count);
    // The node has asked for memory there. That may be an entry of its table of pages.
    void asked(uint64_t addr);

    // --- memory ---
    // Put the writes that left the node in cycles before `cycle` into memory.
    void publish_before(uint64_t cycle);
    uint64_t next_publish_cycle() const
    {
        return writes_.empty() ? UINT64_MAX : writes_.front().cycle;
    }
    uint64_t last_publish_cycle() const { return writes_.empty() ? 0 : writes_.back().cycle; }
    // For a context that is opened. Throws JobError if there is no memory for it.
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

    unsigned node_;
    uint8_t *memory_;
    std::deque<Write> writes_;
    Pages pages_;
    uint64_t lost_ = 0;

    void empty(uint64_t addr, size_t bytes);
    void note_arrival(uint64_t cycle, uint64_t addr, uint64_t word);
    uint64_t written_word(uint64_t addr) const;
    void put_word(const Write &write);
    void put_run(uint64_t cycle);
};

} // namespace sim
