// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include <type_traits>

#ifdef SIM_WAVES
#include <verilated_vcd_c.h>
#endif

#include "../rtl/shown.h"
#include "Vcard3.h"
#include "Vcard3___024root.h"

namespace sim::card
{

namespace
{

static_assert(kCardLinks == 3);

class VerilatedCard final : public CardModel
{
  public:
    VerilatedCard(const std::string &name, bool is_shown)
        : top_(is_shown ? &shown_context() : &context_, name.c_str())
    {
        top_.tx_nonposted_ok_i = 1;
        top_.config_id_i = kFunctionId;
        top_.phy_pause_i = 0;
        drive(inputs_);
        top_.clk_i = 0;
        top_.eval();
    }

    ~VerilatedCard() override { top_.final(); }

    void settle(const CardInputs &inputs, const PhyWords &in, CardOutputs &outputs) override
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
        for (unsigned l = 0; l < kCardLinks; l++) {
            const auto *words = &top_.phy_data_o[2 * l];
            out[l] = {uint64_t{words[1]} << 32 | words[0], (top_.phy_kind_o >> (2 * l)) & 3U};
        }
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
    Vcard3 top_;
    CardInputs inputs_;

    void drive(const CardInputs &inputs)
    {
        top_.rst_ni = !inputs.reset;
        top_.flr_i = inputs.function_reset;
        top_.phy_up_i = inputs.phy_up & ((1U << kCardLinks) - 1);
        top_.rx_valid_i = inputs.rx.valid;
        top_.rx_last_i = inputs.rx.last;
        top_.rx_keep_i = inputs.rx.dwords == 2 ? 3 : 1;
        top_.rx_data_i = inputs.rx.data;
        top_.rx_bar0_i = inputs.rx.bar == 0;
        top_.rx_bar2_i = inputs.rx.bar == 2;
        top_.rx_bar4_i = inputs.rx.bar == 4;
        top_.tx_ready_i = inputs.tx_ready;
        top_.config_bus_master_i = inputs.config.bus_master;
        top_.config_relaxed_i = inputs.config.relaxed;
        top_.config_max_payload_i = inputs.config.max_payload;
        top_.config_max_read_i = inputs.config.max_read;
        top_.config_msix_enable_i = inputs.config.msix_enable;
        top_.config_msix_mask_i = inputs.config.msix_mask;
    }

    void answer(CardOutputs &outputs) const
    {
        outputs.rx_ready = top_.rx_ready_o;
        outputs.rx_hold = top_.rx_hold_o;
        outputs.reset_done = top_.flr_done_o;
        outputs.tx = {top_.tx_valid_o != 0, top_.tx_last_o != 0, top_.tx_keep_o == 3 ? 2U : 1U,
                      top_.tx_data_o};
        outputs.poisoned = top_.event_poisoned_o;
        outputs.unsupported = top_.event_unsupported_o;
        outputs.malformed = top_.event_malformed_o;
        outputs.unexpected = top_.event_unexpected_o;
        outputs.timeout = top_.event_timeout_o;
    }

    void listen(const PhyWords &in)
    {
        uint32_t kinds = 0;
        for (unsigned l = 0; l < kCardLinks; l++) {
            kinds |= static_cast<uint32_t>(in[l].kind) << (2 * l);
            top_.phy_data_i[2 * l] = static_cast<uint32_t>(in[l].data);
            top_.phy_data_i[2 * l + 1] = static_cast<uint32_t>(in[l].data >> 32);
        }
        top_.phy_kind_i = static_cast<std::remove_reference_t<decltype(top_.phy_kind_i)>>(kinds);
    }
};

} // namespace

std::unique_ptr<CardModel> make_card_model(const std::string &name, bool is_shown)
{
    return std::make_unique<VerilatedCard>(name, is_shown);
}

} // namespace sim::card
