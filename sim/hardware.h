// SPDX-License-Identifier: Apache-2.0
//
// The hardware as all else sees it: nodes, the host's side of each, a common clock. It knows no
// processes. Two models implement it: rtl/cluster.h evaluates the RTL, fast/hardware.h follows
// transactions.
//
// A model has to keep this promise: after step() to a cycle the host's sides hold all that the
// nodes did before that cycle, and nothing of it changes later. So an answer to a thread never
// comes from a state that an earlier store of another thread would have changed.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "clock.h"
#include "cluster_options.h"
#include "host_side.h"
#include "random.h"
#include "record.h"

namespace sim
{

class Hardware
{
  public:
    // `memory`: that of all nodes, one after the other. A node of `options.cards` has no host of
    // this simulator's.
    Hardware(const ClusterOptions &options, unsigned nodes, uint8_t *memory);
    virtual ~Hardware() = default;
    Hardware(const Hardware &) = delete;
    Hardware &operator=(const Hardware &) = delete;

    // Until nodes can send and receive. Throws std::runtime_error if they cannot.
    virtual void boot() = 0;
    // Step one cycle, or a stretch of cycles in which nothing happens, but not beyond `end_cycle`.
    virtual void step(uint64_t end_cycle) = 0;
    // Nothing will happen without an access of a host, and all that nodes wrote can be seen.
    virtual bool is_quiet() const = 0;
    // For long no node has used memory: nothing comes any more, though it may not be quiet (because
    // a cable has errors, for example).
    virtual bool is_barren(uint64_t since_cycle) const = 0;
    // Words that cables disturbed.
    virtual uint64_t bad_words() const = 0;
    // Of node_cycles(), those that cost computing.
    virtual uint64_t evaluated_node_cycles() const = 0;

    const Clock &clock() const { return clock_; }
    unsigned size() const { return static_cast<unsigned>(hosts_.size()); }
    // Is there such a node, with a host of this simulator's?
    bool hosts(uint64_t number) const { return number < hosts_.size() && hosts_[number]; }
    HostSide &host(unsigned number) { return *hosts_[number]; }
    const HostSide &host(unsigned number) const { return *hosts_[number]; }
    // The number of the next cycle.
    uint64_t cycle() const { return cycle_; }
    uint64_t node_cycles() const { return cycle_ * hosts_.size(); }
    // nullptr: nothing is recorded any more.
    void set_recorder(Recorder *recorder) { recorder_ = recorder; }

    // --- memory ---
    // Put into memory what nodes wrote, as far as it has reached memory by that time.
    void publish_until(uint64_t time_ps);
    // Nothing that nodes write can be seen before this time, but what is published.
    uint64_t next_visible_ps() const;
    // The time at which memory shows a node's writes of a cycle.
    uint64_t visible_ps(uint64_t cycle) const;
    // The time at which a processor has the answer that a register gave in a cycle.
    uint64_t answered_ps(uint64_t cycle) const;

    // --- accesses of the host, at a time not before the last cycle's end ---
    void store(unsigned node, uint64_t time_ps, HostAccess access);
    void write_register(unsigned node, uint64_t time_ps, uint64_t offset, uint64_t value);
    void read_register(unsigned node, uint64_t time_ps, uint64_t offset, uint64_t reader);

  protected:
    // From this cycle on, a look at memory sees all that has left the nodes.
    uint64_t seen_cycle() const;

    // The cycle in which a write, or a read of a register, comes to its node.
    uint64_t write_cycle(uint64_t time_ps) const;
    uint64_t read_cycle(uint64_t time_ps) const;
    // An access has been added to those on the way to the node.
    virtual void accessed(unsigned /*node*/) {}

    Recorder *recorder_ = nullptr;
    uint64_t cycle_ = 0;

  private:
    Clock clock_;
    HostModel host_model_;
    unsigned split_one_in_;
    std::vector<std::unique_ptr<HostSide>> hosts_; // by node; nullptr: a card
    std::vector<Random> splits_;                   // by node

    uint64_t taken_cycle(uint64_t time_ps) const;
    void pass(unsigned node, uint64_t time_ps, const HostAccess &access);
};

} // namespace sim
