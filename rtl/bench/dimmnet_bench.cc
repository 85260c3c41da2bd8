// SPDX-License-Identifier: Apache-2.0
//
// Cycles of DIMMnet-2's CoreLogic, 16 bytes by BOTF as in the paper: from the command's write at
// the host port to the last line out, and from a packet's first line in to the write pointer that
// tells of its status. Prints JSON.

#include <verilated.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "Vdimmnet_core.h"

namespace
{

constexpr std::uint32_t kPrivileged = 1u << 20;
constexpr std::uint32_t kRegisters = 2u << 12;
constexpr std::uint64_t kLid = 0x1234;
constexpr std::uint64_t kPgid = 0x77;

class Core
{
  public:
    Core()
    {
        top_->rst_ni = 0;
        tick();
        top_->rst_ni = 1;
        top_->tx_ready_i = 1;
        top_->sodimm_ready_i = 1;
    }

    std::uint64_t cycle() const { return cycle_; }
    Vdimmnet_core &top() { return *top_; }

    void tick()
    {
        top_->clk_i = 0;
        top_->eval();
        top_->clk_i = 1;
        top_->eval();
        ++cycle_;
        top_->clk_i = 0;
        top_->eval();
    }

    // One word; returns the cycle in which it was taken.
    std::uint64_t write(std::uint32_t address, std::uint64_t word)
    {
        const std::uint32_t half = address >> 3 & 1;
        top_->write_valid_i = 1;
        top_->write_address_i = address & ~15u;
        top_->write_be_i = 0xff << 8 * half;
        top_->write_data_i[2 * half] = static_cast<std::uint32_t>(word);
        top_->write_data_i[2 * half + 1] = static_cast<std::uint32_t>(word >> 32);
        top_->eval();
        while (!top_->write_ready_o)
            tick();
        const std::uint64_t taken = cycle_;
        tick();
        top_->write_valid_i = 0;
        top_->eval();
        return taken;
    }

    std::uint64_t read(std::uint32_t address)
    {
        top_->read_valid_i = 1;
        top_->read_address_i = address & ~15u;
        tick();
        top_->read_valid_i = 0;
        tick();
        const std::uint32_t at = 2 * (address >> 3 & 1);
        return top_->response_data_o[at] | std::uint64_t{top_->response_data_o[at + 1]} << 32;
    }

  private:
    std::unique_ptr<Vdimmnet_core> top_ = std::make_unique<Vdimmnet_core>();
    std::uint64_t cycle_ = 0;
};

void set_up(Core &core)
{
    core.write(kPrivileged, kLid);
    core.write(kPrivileged + 8, 100);
    for (std::uint32_t wid = 0; wid < 2; ++wid) {
        core.write(kPrivileged + 8 * (128 + 8 * wid), kPgid | 1u << 20);
    }
}

// Kind write, Prefetch Windows, a status, two words.
std::uint64_t header(std::uint64_t wid)
{
    return 1 | 1 << 4 | 1 << 8 | 2 << 10 | wid << 17 | kLid << 32 | kLid << 48;
}

std::uint64_t measure_send(Core &core)
{
    const std::uint64_t words[] = {header(1), kPgid, 0x1111, 0x2222};
    for (std::uint32_t i = 0; i < 4; ++i)
        core.write(8 * i, words[i]);
    const std::uint64_t began = core.write(kRegisters, 1 | 4 << 16);
    for (int limit = 0; limit < 100; ++limit) {
        if (core.top().tx_valid_o && core.top().tx_ident_o == 3)
            return core.cycle() - began;
        core.tick();
    }
    std::exit(1);
}

// The cycle in which the pointer has its new value is found by asking in every cycle.
std::uint64_t measure_receive(Core &core)
{
    const std::uint64_t words[] = {header(1), kPgid, 0x1111, 0x2222};
    const std::uint32_t pointer = 1u << 16 | kRegisters | 64;
    std::uint64_t began = 0;
    core.top().read_valid_i = 1;
    core.top().read_address_i = pointer;
    for (std::uint32_t i = 0; i < 100; ++i) {
        core.top().rx_valid_i = i < 4;
        if (i < 4) {
            core.top().rx_ident_i = i == 0 ? 1 : i == 3 ? 3 : 2;
            core.top().rx_line_i = words[i];
            core.top().eval();
            if (!core.top().rx_ready_o)
                std::exit(1);
        }
        if (i == 0)
            began = core.cycle();
        core.tick();
        // What is read now was there two cycles ago.
        if (core.top().response_valid_o && core.top().response_data_o[0] == 1) {
            return core.cycle() - 2 - began;
        }
    }
    std::exit(1);
}

} // namespace

int main(int argc, char **argv)
{
    Verilated::commandArgs(argc, argv);
    Core core;
    set_up(core);
    const std::uint64_t send = measure_send(core);
    for (int i = 0; i < 10; ++i)
        core.tick();
    const std::uint64_t receive = measure_receive(core);
    // The packet's words are in the Prefetch Window.
    core.top().read_valid_i = 0;
    core.tick();
    core.tick();
    if (core.read(1u << 16 | 1u << 12) != 0x1111)
        return 1;
    std::printf("{\"dimmnet_core_send_cycles\": %llu, \"dimmnet_core_receive_cycles\": %llu}\n",
                static_cast<unsigned long long>(send), static_cast<unsigned long long>(receive));
    return 0;
}
