// SPDX-License-Identifier: Apache-2.0
//
// One Verilated velo_node_flat behind an interface that does not depend on its shape: how many
// links it has, and how wide its path is.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "../cluster_options.h"
#include "../topology.h"
#include "cable.h"

class VerilatedVcdC;

namespace sim
{

// A beat of a posted write: into the host port, into the control port, or out by DMA.
struct Beat {
    bool valid = false, eop = false;
    uint16_t len_bytes = 0;
    PathWord data = 0;
    uint64_t addr = 0;

    bool operator==(const Beat &) const = default;
};

// The signals that the host drives in a cycle.
struct ModelInputs {
    bool reset = false;
    uint8_t phy_up = 0; // one bit a link
    Beat host, control;
    bool register_read = false;
    uint64_t register_addr = 0;
    bool dma_read_ready = false;
    bool answer = false, answer_eop = false, answer_error = false; // of a DMA read
    uint16_t answer_tag = 0;
    PathWord answer_data = 0;

    bool operator==(const ModelInputs &) const = default;
};

// The signals that the node drives in the same cycle.
struct ModelOutputs {
    bool host_ready = false, control_ready = false, register_ready = false;
    bool register_answer = false;
    uint64_t register_data = 0;
    Beat dma_write;
    bool dma_read = false, answer_ready = false;
    uint16_t dma_read_len_bytes = 0, dma_read_tag = 0;
    uint64_t dma_read_addr = 0;
};

using PhyWords = PhyWord[kLinksMax]; // by link

// What all models have.
class AnyModel
{
  public:
    virtual ~AnyModel() = default;

    // All that the model's next cycles depend on, besides its inputs.
    virtual const void *state() const = 0;
    virtual size_t state_bytes() const = 0;

    // Put all signals of all models that were made to be shown into a waveform. This model is one
    // of them.
    virtual void show(VerilatedVcdC &file) = 0;
};

class Model : public AnyModel
{
  public:
    // One cycle: settle() takes its inputs and gives the node's outputs, edge() ends it. `in`: the
    // words that come over the cables in this cycle. `out`: those that leave in the next one.
    virtual void settle(const ModelInputs &inputs, const PhyWords &in, ModelOutputs &outputs) = 0;
    virtual void edge(PhyWords &out) = 0;
};

// The smallest model of that width with at least that many links. `name`: of the scope of its
// signals. Throws std::runtime_error if there is no such model.
std::unique_ptr<Model> make_model(const Shape &shape, const std::string &name, bool is_shown);

// The signals of some models, in one VCD. Models that can show their signals are slower; so they
// are in a program of their own, velo-sim-wave.
class Wave
{
  public:
    virtual ~Wave() = default;
    // Any one of the models. Throws std::runtime_error if the file cannot be written.
    virtual void open(const std::string &path, AnyModel &model) = 0;
    // All signals, as they are now.
    virtual void dump(uint64_t time_ps) = 0;
};

// Throws std::runtime_error in velo-sim.
std::unique_ptr<Wave> make_wave();

} // namespace sim
