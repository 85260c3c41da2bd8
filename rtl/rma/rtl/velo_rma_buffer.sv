// SPDX-License-Identifier: Apache-2.0
//
// FIFO in block RAM: for what is too deep for the LUT RAM of velo_fifo.
//
// Both sides valid/ready; an entry is at the output two cycles after it came in. `count_o` is the
// number of entries, those on their way to the output among them. An entry may be marked; `marked_o`:
// there are such entries, at most two.
//
// With `Ecc` the entries are protected (velo_ram). `pop_void_o`: the entry offered cannot be read; its data
// must not be acted upon. `ecc_o` tells so once, as the entry is taken. Errors: none.

`include "velo_assert.svh"

module velo_rma_buffer
  import velo_secded_pkg::*;
#(
    parameter int unsigned Width = 32,
    parameter int unsigned Depth = 256,
    parameter bit Ecc = 1'b0,
    localparam int unsigned AddrWidth = $clog2(Depth)
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic             push_valid_i,
    output logic             push_ready_o,
    input  logic             push_mark_i,
    input  logic [Width-1:0] push_data_i,

    output logic             pop_valid_o,
    input  logic             pop_ready_i,
    output logic             pop_mark_o,
    output logic             pop_void_o,
    output logic [Width-1:0] pop_data_o,
    output ecc_t             ecc_o,

    output logic [AddrWidth:0] count_o,
    output logic               marked_o
);

  // One bit more than an address: tells a full FIFO from an empty one.
  logic [AddrWidth:0] write_q, read_q, read_next, read_d;
  logic push, pop;

  assign count_o      = write_q - read_q;
  assign push_ready_o = !count_o[AddrWidth];
  assign push         = push_valid_i && push_ready_o;
  assign pop          = pop_valid_o && pop_ready_i;
  // A pop is known late, so both outcomes are prepared.
  assign read_next    = read_q + 1'b1;
  assign read_d       = pop ? read_next : read_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      write_q     <= '0;
      read_q      <= '0;
      pop_valid_o <= 1'b0;
    end else begin
      if (push) write_q <= write_q + 1'b1;
      read_q      <= read_d;
      // An entry that is written in this cycle can be read in the next.
      pop_valid_o <= pop ? read_next != write_q : read_q != write_q;
    end
  end

  // Where marks are is kept beside the memory, which shows what it read too late to decide by.
  logic [1:0] mark_q, is_next, is_head;
  logic [1:0][AddrWidth:0] place_q;
  logic slot_q, mark;

  assign mark     = push && push_mark_i;
  assign marked_o = |mark_q;
  for (genvar m = 0; m < 2; m++) begin : gen_mark
    assign is_next[m] = mark_q[m] && place_q[m] == read_next;
    assign is_head[m] = mark_q[m] && place_q[m] == read_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) mark_q[m] <= 1'b0;
      else if (mark && slot_q == 1'(m)) mark_q[m] <= 1'b1;
      else if (pop && is_head[m]) mark_q[m] <= 1'b0;
    end
    always_ff @(posedge clk_i) begin
      if (mark && slot_q == 1'(m)) place_q[m] <= write_q;
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) slot_q <= 1'b0;
    else if (mark) slot_q <= !slot_q;
  end
  always_ff @(posedge clk_i) begin
    pop_mark_o <= pop ? |is_next : |is_head;
  end

  ecc_t word_ecc;
  assign pop_void_o = word_ecc.broken;
  assign ecc_o      = pop ? word_ecc : '0;

  velo_ram #(
      .Width(Width),
      .Depth(Depth),
      .Ecc  (Ecc)
  ) u_ram (
      .clk_i,
      .we_i   (push),
      .waddr_i(write_q[AddrWidth-1:0]),
      .wdata_i(push_data_i),
      .raddr_i(read_d[AddrWidth-1:0]),
      .rdata_o(pop_data_o),
      .corrected_o(word_ecc.corrected),
      .broken_o(word_ecc.broken)
  );

  `VELO_ASSERT_INIT(DepthIsPowerOfTwo, Depth >= 2 && Depth == 2 ** AddrWidth)
  `VELO_ASSERT(CountWithinDepth, count_o <= (AddrWidth + 1)'(Depth))
  `VELO_ASSERT(TwoMarksAtMost, !mark || !mark_q[slot_q])
  `VELO_ASSERT(OfferedIsThere, !pop_valid_o || count_o != '0)

endmodule
