// SPDX-License-Identifier: Apache-2.0
//
// Keeps a port's reads behind its own posted writes, as buses do: a request goes on once all beats
// that were in the port's posted buffer when it came have been taken by their targets. Writes that
// come later do not delay it, so it waits no longer than they do. Combinational when there are none.
//
// `in_valid_i`, `out_valid_o` with their readies: a request of one beat. `posted_count_i`: beats in the
// posted buffer; `posted_taken_i`: one leaves in this cycle. Errors: none.

`include "velo_assert.svh"

module htax_order #(
    parameter  int unsigned Depth     = 2,
    localparam int unsigned CountBits = $clog2(Depth) + 1
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [CountBits-1:0] posted_count_i,
    input logic                 posted_taken_i,

    input  logic in_valid_i,
    output logic in_ready_o,
    output logic out_valid_o,
    input  logic out_ready_i
);

  logic waits_q;
  logic [CountBits-1:0] older_q, older;

  assign older       = waits_q ? older_q : posted_count_i;
  assign out_valid_o = in_valid_i && older == '0;
  assign in_ready_o  = out_ready_i && older == '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) waits_q <= 1'b0;
    else waits_q <= in_valid_i && !in_ready_o;
  end
  always_ff @(posedge clk_i) begin
    older_q <= older - CountBits'(posted_taken_i && older != '0);
  end

  // Each beat is taken in its turn: those before the request are among those that are there.
  `VELO_ASSERT(NoMoreThanThere, !waits_q || older_q <= posted_count_i)

endmodule
