// SPDX-License-Identifier: Apache-2.0
//
// One Verilated velo_pcie_node_flat: a node as a PCI Express function.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "../rtl/model.h"
#include "config_space.h"

namespace sim::card
{

// A beat of a packet: up to two dwords, the first one lowest.
struct TlpBeat {
    bool valid = false, last = false;
    unsigned dwords = 0;
    uint64_t data = 0;
    int bar = -1; // that a request to the function came by

    bool operator==(const TlpBeat &) const = default;
};

struct CardInputs {
    bool reset = false, function_reset = false, tx_ready = true;
    uint8_t phy_up = 0; // one bit a link
    TlpBeat rx;
    FunctionConfig config;

    bool operator==(const CardInputs &) const = default;
};

struct CardOutputs {
    bool rx_ready = false, rx_hold = false, reset_done = false;
    TlpBeat tx;
    bool poisoned = false, unsupported = false, malformed = false, unexpected = false,
         timeout = false;
};

constexpr unsigned kCardLinks = 3, kCardWidthBits = 64;
// Bus, device and function: a client does not tell them, and nothing depends on them.
constexpr uint16_t kFunctionId = 0x0100;

class CardModel : public AnyModel
{
  public:
    // As Model's.
    virtual void settle(const CardInputs &inputs, const PhyWords &in, CardOutputs &outputs) = 0;
    virtual void edge(PhyWords &out) = 0;
};

std::unique_ptr<CardModel> make_card_model(const std::string &name, bool is_shown);

} // namespace sim::card
