// SPDX-License-Identifier: Apache-2.0
//
// Keeps the node's answers to the host behind its writes of host memory, as a bus does that has one way for both:
// the first beat of an answer goes on once the writes that were taken before it came have been answered. AXI keeps no
// order between the two, and who reads that a page is not used any more gives it away.
//
// `answer_*`: from the node and to the host, valid/ready; tag, data and error pass by. `writes_i`, `write_answered_i`:
// see velo_axi_master. Combinational where nothing waits. Errors: none.

module velo_axi_order #(
    parameter int unsigned CountBits = 6
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [CountBits-1:0] writes_i,
    input logic                 write_answered_i,

    input  logic answer_valid_i,
    output logic answer_ready_o,
    input  logic answer_eop_i,
    output logic answer_valid_o,
    input  logic answer_ready_i
);

  logic open_q, first_valid, first_ready;

  htax_order #(
      .Depth(2 ** (CountBits - 1))
  ) u_order (
      .clk_i,
      .rst_ni,
      .posted_count_i(writes_i),
      .posted_taken_i(write_answered_i),
      .in_valid_i    (answer_valid_i && !open_q),
      .in_ready_o    (first_ready),
      .out_valid_o   (first_valid),
      .out_ready_i   (answer_ready_i)
  );

  assign answer_valid_o = open_q ? answer_valid_i : first_valid;
  assign answer_ready_o = open_q ? answer_ready_i : first_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) open_q <= 1'b0;
    else if (answer_valid_i && answer_ready_o) open_q <= !answer_eop_i;
  end

endmodule
