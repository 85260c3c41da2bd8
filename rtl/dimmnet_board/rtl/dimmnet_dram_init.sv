// SPDX-License-Identifier: Apache-2.0
//
// What JEDEC's JESD79 wants after power-up, before the controller takes over: clock enable low for 200 us,
// all banks closed, both mode registers, reset of the delay-locked loop, two refreshes, and 200 clocks before
// the first read.

`include "velo_assert.svh"

module dimmnet_dram_init
  import dimmnet_ddr_pkg::*, dimmnet_dfi_pkg::*;
#(
    parameter int unsigned PowerUp = DdrPowerUp  // clocks with clock enable low
) (
    input logic clk_i,
    input logic rst_ni,

    output dfi_t dfi_o,  // the commands
    output logic done_o  // the controller may begin
);

  // Mode register: burst of 2, sequential, CAS latency; bit 8 resets the delay-locked loop.
  localparam logic [RowBits-1:0] Mode = RowBits'(DdrCl << 4 | $clog2(DdrBurst));
  localparam logic [RowBits-1:0] ModeReset = Mode | RowBits'(1 << 8);
  localparam logic [RowBits-1:0] AllBanks = RowBits'(1 << 10);
  localparam int unsigned WaitBits = $clog2((PowerUp > DdrDll ? PowerUp : DdrDll) + 1);

  typedef struct packed {
    ddr_command_e command;
    logic extended;  // the extended mode register
    logic [RowBits-1:0] address;
    logic [WaitBits-1:0] clocks;  // until the next step
  } step_t;

  localparam int unsigned NumSteps = 9;
  localparam step_t Steps[NumSteps] = '{
      '{DdrNop, 1'b0, '0, WaitBits'(PowerUp)},
      '{DdrNop, 1'b0, '0, WaitBits'(2)},
      '{DdrPrecharge, 1'b0, AllBanks, WaitBits'(DdrRp)},
      '{DdrMode, 1'b1, '0, WaitBits'(DdrMrd)},
      '{DdrMode, 1'b0, ModeReset, WaitBits'(DdrMrd)},
      '{DdrPrecharge, 1'b0, AllBanks, WaitBits'(DdrRp)},
      '{DdrRefresh, 1'b0, '0, WaitBits'(DdrRfc)},
      '{DdrRefresh, 1'b0, '0, WaitBits'(DdrRfc)},
      '{DdrMode, 1'b0, Mode, WaitBits'(DdrDll)}
  };

  logic [3:0] step_q;
  logic [WaitBits-1:0] waited_q;
  logic first_q;  // the step's first clock, that of its command
  step_t step;

  assign step   = Steps[step_q];
  assign done_o = step_q == 4'(NumSteps - 1) && waited_q == '0 && !first_q;

  always_comb begin
    dfi_o = '0;
    dfi_o.cke = step_q != '0;
    dfi_o.command = first_q ? step.command : DdrNop;
    dfi_o.bank[0] = step.extended;
    dfi_o.address = step.address;
    dfi_o.wrdata_mask = '1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      step_q   <= '0;
      first_q  <= 1'b1;
      waited_q <= '0;
    end else if (first_q) begin
      first_q  <= 1'b0;
      waited_q <= step.clocks - 1'b1;
    end else if (waited_q != '0) begin
      waited_q <= waited_q - 1'b1;
    end else if (!done_o) begin
      step_q  <= step_q + 1'b1;
      first_q <= 1'b1;
    end
  end

endmodule
