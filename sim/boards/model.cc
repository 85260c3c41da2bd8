// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include "Vboard.h"

namespace sim
{

namespace
{

class VerilatedBoard final : public BoardModel
{
  public:
    VerilatedBoard() : top_(&context_, "board")
    {
        top_.clk_i = 0;
        top_.rst_ni = 0;
        top_.eval();
    }

    ~VerilatedBoard() override { top_.final(); }

    void set_reset(bool reset) override { top_.rst_ni = !reset; }

    void step(const Pins &pins, const NetWord &in, BoardOutputs &outputs) override
    {
        drive(pins, in);
        top_.clk_i = 0;
        top_.eval();
        answer(outputs);
        top_.clk_i = 1;
        top_.eval();
    }

  private:
    VerilatedContext context_;
    Vboard top_;

    void drive(const Pins &pins, const NetWord &in)
    {
        top_.cs_n_i = !pins.selected;
        top_.command_i = pins.command;
        top_.bank_i = pins.bank;
        top_.address_i = pins.address;
        top_.dq_rise_i = pins.rise;
        top_.dq_fall_i = pins.fall;
        top_.dm_rise_i = pins.rise_mask;
        top_.dm_fall_i = pins.fall_mask;
        top_.net_rx_valid_i = in.valid;
        top_.net_rx_first_i = in.first;
        top_.net_rx_last_i = in.last;
        top_.net_rx_bytes_i = in.bytes;
        top_.net_rx_word_i = in.word;
    }

    void answer(BoardOutputs &outputs) const
    {
        outputs.driven = top_.dq_oe_o;
        outputs.rise = top_.dq_rise_o;
        outputs.fall = top_.dq_fall_o;
        outputs.net = {top_.net_tx_valid_o != 0, top_.net_tx_first_o != 0, top_.net_tx_last_o != 0,
                       top_.net_tx_bytes_o, top_.net_tx_word_o};
        outputs.ring_is_full = top_.ring_is_full_o;
        outputs.llcm = top_.llcm_write_o;
        if (!outputs.llcm)
            return;
        outputs.llcm_row = top_.llcm_row_o;
        outputs.llcm_bytes = top_.llcm_be_o;
        for (unsigned w = 0; w < 2; w++)
            outputs.llcm_words[w] =
                top_.llcm_data_o[2 * w] | static_cast<uint64_t>(top_.llcm_data_o[2 * w + 1]) << 32;
    }
};

} // namespace

std::unique_ptr<BoardModel> make_board_model() { return std::make_unique<VerilatedBoard>(); }

} // namespace sim
