// SPDX-License-Identifier: Apache-2.0
//
// The offsets of one job, and whether all its elements are in its region: two offsets come with each word.

module dimmnet_list
  import dimmnet_core_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input  logic        start_i,  // a job's list begins
    input  job_t        job_i,    // the job; stands
    input  logic        valid_i,  // two offsets
    input  logic [63:0] data_i,   // the lower one first
    output logic        done_o,   // with its last word: all are there
    output logic        bad_o,    // with it: an element is outside

    input  logic [ 5:0] index_i,  // which element's
    output logic [31:0] offset_o  // offset
);

  (* ram_style = "distributed" *)
  logic [63:0] mem[32];
  logic [6:0] at_q;  // offsets that came
  logic bad_q, bad;
  logic [63:0] word;

  function automatic logic outside(logic [31:0] offset);
    logic [34:0] ends;
    ends = {3'b0, job_i.address} + {3'b0, offset} + {28'b0, job_i.element_words};
    return ends > {3'b0, job_i.region.words};
  endfunction

  assign bad = bad_q || outside(
      data_i[31:0]
  ) || (at_q + 7'd1 < job_i.count && outside(
      data_i[63:32]
  ));
  assign done_o = valid_i && at_q + 7'd2 >= job_i.count;
  assign bad_o = bad;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      at_q  <= '0;
      bad_q <= 1'b0;
    end else if (start_i) begin
      at_q  <= '0;
      bad_q <= 1'b0;
    end else if (valid_i) begin
      at_q  <= at_q + 7'd2;
      bad_q <= bad;
    end
  end
  always_ff @(posedge clk_i) if (valid_i) mem[at_q[5:1]] <= data_i;

  assign word = mem[index_i[5:1]];
  assign offset_o = index_i[0] ? word[63:32] : word[31:0];

  logic unused;
  assign unused = ^job_i;

endmodule
