// SPDX-License-Identifier: Apache-2.0
//
// The Verilated model of SIM_LINKS links and SIM_WIDTH bits. This file is compiled once for each
// model, and once without these macros, for the choice between the models. All of this is compiled
// again with SIM_WAVES, for models that show their signals.
#include "model.h"

#include <stdexcept>
#include <string>
#include <type_traits>

#ifdef SIM_WAVES
#include <verilated_vcd_c.h>
#endif

#ifndef SIM_LINKS

namespace sim
{

// SIM_MODELS: an X(links, width) for each model that there is, in ascending order.
#define X(l, w) std::unique_ptr<Model> make_model_##l##x##w(const std::string &name, bool is_shown);
SIM_MODELS
#undef X

std::unique_ptr<Model> make_model(const Shape &shape, const std::string &name, bool is_shown)
{
#define X(l, w)                                                                                    \
    if (shape.links <= (l) && shape.width_bits == (w))                                             \
        return make_model_##l##x##w(name, is_shown);
    SIM_MODELS
#undef X
    throw std::runtime_error(
        "there is no model of a node with " + std::to_string(shape.links) + " links of " +
        std::to_string(shape.width_bits) +
        " bits in this build; `make paper` builds those of 3 links of 64 and 128 bits");
}

#ifdef SIM_WAVES

namespace
{

class Vcd final : public Wave
{
  public:
    void open(const std::string &path, AnyModel &model) override
    {
        model.show(file_);
        file_.set_time_unit("1ps");
        file_.set_time_resolution("1ps");
        file_.open(path.c_str());
        if (!file_.isOpen())
            throw std::runtime_error(path + ": cannot be written");
    }
    void dump(uint64_t time_ps) override { file_.dump(time_ps); }

  private:
    VerilatedVcdC file_;
};

} // namespace

std::unique_ptr<Wave> make_wave() { return std::make_unique<Vcd>(); }

#else

std::unique_ptr<Wave> make_wave()
{
    throw std::runtime_error("the models of this program show no signals; build velo-sim-wave, "
                             "and run that");
}

#endif

} // namespace sim

#else

#define SIM_PASTE_(a, b) a##b
#define SIM_PASTE(a, b) SIM_PASTE_(a, b)
#define SIM_STRING_(a) #a
#define SIM_STRING(a) SIM_STRING_(a)
#define SIM_NAME SIM_PASTE(SIM_PASTE(SIM_LINKS, x), SIM_WIDTH)
#define SIM_TOP SIM_PASTE(Vnode, SIM_NAME)

// clang-format off
#include SIM_STRING(SIM_TOP.h)
#include SIM_STRING(SIM_PASTE(SIM_TOP, ___024root).h)
// clang-format on

#include "shown.h"

namespace sim
{

namespace
{

class VerilatedModel final : public Model
{
  public:
    VerilatedModel(const std::string &name, bool is_shown)
        : top_(is_shown ? &shown_context() : &context_, name.c_str())
    {
        top_.host_answer_ready_i = 1;
        top_.control_answer_ready_i = 1;
        top_.dma_write_ready_i = 1; // memory always takes what is written
        top_.host_read_valid_i = 0;
        top_.control_read_len_bytes_i = 8;
        top_.control_read_tag_i = 0;
        drive(inputs_);
        top_.clk_i = 0;
        top_.eval();
    }

    ~VerilatedModel() override { top_.final(); }

    void settle(const ModelInputs &inputs, const PhyWords &in, ModelOutputs &outputs) override
    {
        listen(in);
        if (inputs != inputs_) {
            drive(inputs);
            inputs_ = inputs;
        }
        top_.clk_i = 0;
        top_.eval();
        answer(outputs);
    }

    void edge(PhyWords &out) override
    {
        top_.clk_i = 1;
        top_.eval();
        speak(out);
    }

    const void *state() const override { return top_.rootp; }
    size_t state_bytes() const override { return sizeof *top_.rootp; }

    void show([[maybe_unused]] VerilatedVcdC &file) override
    {
#ifdef SIM_WAVES
        constexpr int kAllLevels = 99;
        top_.trace(&file, kAllLevels);
#endif
    }

  private:
    VerilatedContext context_;

    static constexpr unsigned kPieces = SIM_WIDTH / 32;

    SIM_TOP top_;
    ModelInputs inputs_;

    // A port of one word of the path is a number or, of 128 bits, an array of pieces of 32.
    template <typename Port> static void put(Port &port, PathWord word)
    {
        if constexpr (std::is_integral_v<Port>)
            port = static_cast<Port>(word);
        else
            for (unsigned piece = 0; piece < kPieces; piece++)
                port[piece] = static_cast<uint32_t>(word >> (32 * piece));
    }
    template <typename Port> static PathWord get(const Port &port)
    {
        if constexpr (std::is_integral_v<Port>) {
            return port;
        } else {
            PathWord word = 0;
            for (unsigned piece = 0; piece < kPieces; piece++)
                word |= PathWord{port[piece]} << (32 * piece);
            return word;
        }
    }

    void drive(const ModelInputs &inputs)
    {
        top_.rst_ni = !inputs.reset;
        top_.phy_up_i = inputs.phy_up;
        top_.host_write_valid_i = inputs.host.valid;
        top_.host_write_eop_i = inputs.host.eop;
        top_.host_write_addr_i = inputs.host.addr;
        top_.host_write_len_bytes_i = inputs.host.len_bytes;
        put(top_.host_write_data_i, inputs.host.data);
        top_.control_write_valid_i = inputs.control.valid;
        top_.control_write_eop_i = inputs.control.eop;
        top_.control_write_addr_i = inputs.control.addr;
        top_.control_write_len_bytes_i = inputs.control.len_bytes;
        put(top_.control_write_data_i, inputs.control.data);
        top_.control_read_valid_i = inputs.register_read;
        top_.control_read_addr_i = inputs.register_addr;
        top_.dma_read_ready_i = inputs.dma_read_ready;
        top_.dma_answer_valid_i = inputs.answer;
        top_.dma_answer_eop_i = inputs.answer_eop;
        top_.dma_answer_error_i = inputs.answer_error;
        top_.dma_answer_tag_i = inputs.answer_tag;
        put(top_.dma_answer_data_i, inputs.answer_data);
    }

    void answer(ModelOutputs &outputs) const
    {
        outputs.host_ready = top_.host_write_ready_o;
        outputs.control_ready = top_.control_write_ready_o;
        outputs.register_ready = top_.control_read_ready_o;
        outputs.register_answer = top_.control_answer_valid_o;
        outputs.register_data = static_cast<uint64_t>(get(top_.control_answer_data_o));
        outputs.answer_ready = top_.dma_answer_ready_o;
        outputs.dma_write.valid = top_.dma_write_valid_o;
        if (top_.dma_write_valid_o)
            outputs.dma_write = {true, top_.dma_write_eop_o != 0, top_.dma_write_len_bytes_o,
                                 get(top_.dma_write_data_o), top_.dma_write_addr_o};
        outputs.dma_read = top_.dma_read_valid_o;
        outputs.dma_read_addr = top_.dma_read_addr_o;
        outputs.dma_read_len_bytes = top_.dma_read_len_bytes_o;
        outputs.dma_read_tag = top_.dma_read_tag_o;
    }

    // The words of all links are side by side, in a port of 32-bit pieces unless one is enough.
#if SIM_LINKS * SIM_WIDTH == 32
    static uint32_t *pieces(uint32_t &port) { return &port; }
#else
    template <typename Port> static uint32_t *pieces(Port &port) { return port.data(); }
#endif

    void listen(const PhyWords &in)
    {
        uint32_t kinds = 0, *data = pieces(top_.phy_data_i);
        for (unsigned l = 0; l < SIM_LINKS; l++) {
            kinds |= static_cast<uint32_t>(in[l].kind) << (2 * l);
            for (unsigned piece = 0; piece < kPieces; piece++)
                *data++ = static_cast<uint32_t>(in[l].data >> (32 * piece));
        }
        top_.phy_kind_i = static_cast<std::remove_reference_t<decltype(top_.phy_kind_i)>>(kinds);
    }

    void speak(PhyWords &out)
    {
        const uint32_t *data = pieces(top_.phy_data_o);
        for (unsigned l = 0; l < SIM_LINKS; l++) {
            out[l] = {0, (top_.phy_kind_o >> (2 * l)) & 3U};
            for (unsigned piece = 0; piece < kPieces; piece++)
                out[l].data |= PathWord{*data++} << (32 * piece);
        }
    }
};

} // namespace

std::unique_ptr<Model> SIM_PASTE(make_model_, SIM_NAME)(const std::string &name, bool is_shown)
{
    return std::make_unique<VerilatedModel>(name, is_shown);
}

} // namespace sim

#endif
