// SPDX-License-Identifier: Apache-2.0
//
// A small process side of spec/sim_channel.h, for the simulator's own tests: one object a thread.

#pragma once

#include <cstdint>
#include <string>

#include "../client/client.h"

namespace client
{

[[noreturn]] void fail(const std::string &why);

class Channel
{
  public:
    // Claims a channel and attaches.
    explicit Channel(uint64_t rank, bool repeatable = true);
    ~Channel();
    Channel(const Channel &) = delete;
    Channel &operator=(const Channel &) = delete;

    // For the calls of client/client.h.
    sim_channel *get() { return channel_; }
    uint64_t now_ps() const { return channel_->call.time_ps; }
    void charge_ps(uint64_t time_ps) { channel_->call.time_ps += time_ps; }
    void sleep_until(uint64_t end_ps);
    static const sim_area &area();

    unsigned open(unsigned node, unsigned context);
    // A whole line of `words` words, the header's among them, from a context of a node.
    int try_send(unsigned node, unsigned context, unsigned to_node, unsigned to_context,
                 unsigned words, uint64_t value);
    void send(unsigned node, unsigned context, unsigned to_node, unsigned to_context,
              unsigned words, uint64_t value);
    void close(unsigned node, unsigned context);
    // Waits for the next message of a context; gives its slot back. Returns the second word.
    uint64_t receive(unsigned node, unsigned context);
    // Polls, or looks once, for arrivals for this process. Returns enum sim_status.
    int poll(uint64_t deadline_ps = SIM_NEVER);
    int look();
    uint64_t header(unsigned node, unsigned context) const;
    // --- remote memory ---
    // Whole pages for a context, with a notification queue; returns the first page. `rights` as in
    // layout registered_page.
    void open_queue(unsigned node, unsigned context);
    uint32_t enter(unsigned node, unsigned context, void *memory, uint64_t bytes, unsigned rights);
    // Store a descriptor, of five words if it is a fetch_compare_add.
    void post(unsigned node, unsigned context, uint64_t word0, uint64_t local, uint64_t remote,
              uint64_t compare = 0, uint64_t add = 0);
    // Waits for the next notification of a context, to the picosecond. Returns its first word.
    uint64_t notification(unsigned node, unsigned context);
    // Meet all others in real time, outside of the cluster: `path` is a file of their own.
    void barrier(const std::string &path, unsigned parties);

  private:
    sim_channel *channel_ = nullptr;
    uint64_t arrivals_ = 0, head_ = 0, queue_head_ = 0;
    unsigned barriers_ = 0;

    const uint64_t *slot(unsigned node, unsigned context) const;
};

} // namespace client
