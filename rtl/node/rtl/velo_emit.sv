// SPDX-License-Identifier: Apache-2.0
//
// Sends a short packet or transaction that is there whole: the other side of velo_gather.
//
// On a path of 128 bits a packet's header has a beat of its own (`Packet`).
// `push_*` valid/ready; `push_beats_i` is at least one. `out_*` valid/ready, lowest beat first, from
// the next cycle on. Errors: none.

`include "velo_assert.svh"

module velo_emit
  import velo_node_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned Words = 2,
    parameter bit Packet = Words > 1,
    localparam int unsigned Beats = Packet ? packet_beats(
        DataWidth, Words - 1
    ) : word_beats(
        DataWidth
    ),
    localparam int unsigned CountBits = $clog2(Beats + 2)
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                       push_valid_i,
    output logic                       push_ready_o,
    input  logic [CountBits-1:0]       push_beats_i,
    input  logic [    Words-1:0][63:0] push_words_i,

    output logic                 out_valid_o,
    input  logic                 out_ready_i,
    output logic                 out_sop_o,
    output logic                 out_eop_o,
    output logic [DataWidth-1:0] out_data_o
);

  logic [Beats*DataWidth-1:0] rest_q, pushed;
  logic [CountBits-1:0] left_q;
  logic some_q, last_q;  // facts about it, of which others choose what is sent next

  if (DataWidth == 128) begin : gen_wide
    logic [2*Beats-1:0][63:0] halves;
    always_comb begin
      halves    = '0;
      halves[0] = push_words_i[0];
      for (int unsigned w = 1; w < Words; w++) halves[w+1] = push_words_i[w];
    end
    assign pushed = halves;
  end else begin : gen_narrow
    assign pushed = push_words_i;
  end

  assign push_ready_o = !some_q;
  assign out_valid_o  = some_q;
  assign out_eop_o    = last_q;
  assign out_data_o   = rest_q[DataWidth-1:0];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      left_q <= '0;
      some_q <= 1'b0;
      last_q <= 1'b0;
    end else if (push_valid_i && push_ready_o) begin
      left_q <= push_beats_i;
      some_q <= 1'b1;
      last_q <= push_beats_i == CountBits'(1);
    end else if (out_valid_o && out_ready_i) begin
      left_q <= left_q - 1'b1;
      some_q <= !last_q;
      last_q <= left_q == CountBits'(2);
    end
  end
  always_ff @(posedge clk_i) begin
    // Without anything to send the beats may be any: what is offered is not asked for here, as it comes late.
    if (push_ready_o) begin
      rest_q    <= pushed;
      out_sop_o <= 1'b1;
    end else if (out_ready_i) begin
      rest_q    <= (Beats * DataWidth)'({DataWidth'(0), rest_q} >> DataWidth);
      out_sop_o <= 1'b0;
    end
  end

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})
  `VELO_ASSERT_INIT(PacketOrWord, Packet || Words == 1)
  `VELO_ASSERT(FlagsAreTrue, some_q == (left_q != '0) && last_q == (left_q == CountBits'(1)))
  `VELO_ASSUME(SomethingToSend, !push_valid_i || push_beats_i != '0)

endmodule
