// SPDX-License-Identifier: Apache-2.0
//
// A card: a function of the cluster, and the guest at its socket.

#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "../random.h"
#include "config_space.h"
#include "function.h"
#include "vfio_user.h"

namespace sim
{
class Hardware;
}

namespace sim::card
{

struct CardTotals {
    uint64_t stores = 0, packets = 0; // to the window: of the guest, and packets of them
    uint64_t loads = 0, interrupts = 0, resets = 0;
    uint64_t lost = 0; // accesses to memory that is not the guest's, or not the card's
};

class Card final : private Device, private Host
{
  public:
    // `split_one_in`: one in so many lines goes to the function in parts, in any order; 0: none.
    // `hardware`: the cluster, whose cycle the card shows.
    Card(const std::string &path, const Hardware &hardware, Function &function,
         unsigned split_one_in, Random random);
    ~Card() override;
    Card(const Card &) = delete;
    Card &operator=(const Card &) = delete;

    pollfd waits_for() const { return server_.waits_for(); }
    bool has_work() const { return server_.has_work(); }
    // Part of a line has come, and waits a while for the rest.
    bool holds_line() const { return !line_.empty(); }
    void serve() { server_.serve(); }
    const CardTotals &totals() const { return totals_; }

  private:
    // What the function wants of the guest's memory, in its order.
    struct Effect {
        enum class Kind { kWrite, kRead } kind;
        uint64_t address;
        std::vector<uint8_t> bytes; // of a write
        MemoryRead read{};
    };

    static constexpr size_t kPacketsMax = 64; // then commands wait

    const Hardware &hardware_;
    Function &function_;
    unsigned split_one_in_;
    Random random_;
    ConfigSpace config_;
    VfioUser server_;
    CardTotals totals_;
    std::vector<uint8_t> line_; // stores to the window that follow each other, not sent yet
    uint64_t line_offset_ = 0;
    std::chrono::steady_clock::time_point line_since_; // its last store
    unsigned load_bytes_ = 0;
    std::deque<Effect> effects_;
    bool writing_ = false; // the client carries out a write; what comes after it waits
    std::map<uint64_t, MemoryRead> reading_; // by the client, by ticket
    uint64_t tickets_ = 0;

    // --- Device ---
    bool takes_commands() const override;
    void pause() override;
    void store(unsigned bar, uint64_t offset, std::span<const uint8_t> bytes) override;
    void load(unsigned bar, uint64_t offset, unsigned len_bytes) override;
    void write_config(uint64_t offset, std::span<const uint8_t> bytes) override;
    void read_config(uint64_t offset, std::span<uint8_t> bytes) const override;
    void reset() override;
    void connect_vector(unsigned vector, bool connected) override;
    void answered(uint64_t ticket, bool done, std::span<const uint8_t> bytes) override;
    void gone() override;

    // --- Host ---
    void write(uint64_t address, std::span<const uint8_t> bytes) override;
    void read(const MemoryRead &read) override;
    void loaded(std::span<const uint8_t> bytes) override;
    void reset_done() override;
    void note(Error error) override { config_.note(error); }

    bool line_is_whole() const;
    void flush();
    void store_line(std::span<const uint8_t> bytes);
    void set_vector(unsigned vector);
    void carry_out_effects();
    void carry_out(Effect &effect);
};

} // namespace sim::card
