// SPDX-License-Identifier: Apache-2.0
//
// The address translation of the RMA unit, rtl/atu: a table of registered pages in memory, a cache
// of it, one request after the other.

#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "dma.h"
#include "rma_cycles.h"
#include "timer.h"

namespace sim
{

class Translation
{
  public:
    enum Client : unsigned { kSource, kServe, kAccept, kFinish, kClients };
    struct Request {
        uint64_t address;
        unsigned count;
        uint8_t context;
        uint16_t peer;
        bool is_own;
        uint8_t rights;
    };
    struct Answer {
        uint8_t error; // spec/velo.toml, enum error
        uint64_t address;
    };
    using Answered = std::function<void(uint64_t cycle, Answer answer)>;

    Translation(Dma &dma, Timer &timer) : dma_(dma), timer_(timer), lines_(1U << rma::kAtuLinesLog2)
    {
    }

    // The client, which waits for no other answer, asks in this cycle. An access that is granted is
    // given back by release().
    void ask(Client client, uint64_t cycle, const Request &request, Answered answered);
    void release(Client client, uint64_t cycle);

    // The register `pages`.
    void set_table(uint64_t value);
    // The register `invalidate`: the page is forgotten.
    void invalidate(uint64_t cycle, uint32_t page);
    bool is_invalidating() const { return dropping_; }

  private:
    struct Line {
        bool is_valid = false;
        uint32_t page = 0;
        uint64_t entry = 0;
    };
    struct Asked {
        Request request;
        Answered answered; // none: no client asks
    };

    Dma &dma_;
    Timer &timer_;
    std::vector<Line> lines_;
    uint64_t table_ = 0;
    std::array<Asked, kClients> asked_{};
    unsigned turn_ = 0;
    bool busy_ = false;
    std::array<unsigned, kClients> open_{}, waited_{};
    bool dropping_ = false, drop_due_ = false;
    uint32_t drop_page_ = 0;

    bool in_table(const Request &request) const;
    void take_turn(uint64_t cycle);
    void judge(uint64_t cycle, Client client, std::optional<uint64_t> entry);
    uint8_t verdict(const Request &request, std::optional<uint64_t> entry) const;
    void drop(uint64_t cycle);
    void end_drop(uint64_t cycle);
};

} // namespace sim
