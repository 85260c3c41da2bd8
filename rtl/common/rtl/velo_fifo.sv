// SPDX-License-Identifier: Apache-2.0
//
// Synchronous FIFO, first word falls through: an entry is at the output one cycle after it came in.
//
// Two entries are registers. Up to 32 are in LUT RAM, a memory with one asynchronous read port. More are in block
// RAM (`InBlockRam`), the oldest in a register: velo_fifo_ram. All three behave alike.
//
// Both sides are valid/ready. `push_ready_o` and `pop_valid_o` come from registers only.
// `count_o` is the number of entries, 0 to Depth.
// Errors: none; a push without room and a pop without an entry do not happen by protocol.

`include "velo_assert.svh"

module velo_fifo #(
    parameter int unsigned Width = 32,
    parameter int unsigned Depth = 8,
    parameter bit InBlockRam = Depth > 32,
    localparam int unsigned AddrWidth = $clog2(Depth)
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic             push_valid_i,  // an entry is offered
    output logic             push_ready_o,  // there is room for it
    input  logic [Width-1:0] push_data_i,   // the entry

    output logic             pop_valid_o,  // an entry is there
    input  logic             pop_ready_i,  // it is taken
    output logic [Width-1:0] pop_data_o,   // the entry

    output logic [AddrWidth:0] count_o  // entries
);

  `VELO_ASSERT_INIT(DepthIsPowerOfTwo, Depth >= 2 && Depth == 2 ** AddrWidth)

  logic push, pop;
  assign push = push_valid_i && push_ready_o;
  assign pop  = pop_valid_o && pop_ready_i;

  if (Depth == 2) begin : gen_pair
    logic [Width-1:0] older_q, newer_q;
    logic [1:0] count_q;

    assign count_o = count_q;
    assign push_ready_o = !count_q[1];
    assign pop_valid_o = count_q != '0;
    assign pop_data_o = older_q;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) count_q <= '0;
      else count_q <= count_q + 2'(push) - 2'(pop);
    end
    // A place that holds no entry may hold anything, so whether one comes in, which may be known late, is not asked.
    always_ff @(posedge clk_i) begin
      if (pop || !pop_valid_o) older_q <= count_q[1] ? newer_q : push_data_i;
      if (!count_q[1]) newer_q <= push_data_i;
    end
  end else if (InBlockRam) begin : gen_block_ram
    logic [AddrWidth:0] count_q, push_at_q, pop_at_q;

    assign count_o = count_q;
    assign push_ready_o = !count_q[AddrWidth];
    assign pop_valid_o = count_q != '0;

    velo_fifo_ram #(
        .Width(Width),
        .Depth(Depth)
    ) u_words (
        .clk_i,
        .rst_ni,
        .push_i  (push),
        .write_i (push_at_q),
        .data_i  (push_data_i),
        .pop_i   (pop),
        .read_i  (pop_at_q),
        .oldest_o(pop_data_o)
    );

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        count_q   <= '0;
        push_at_q <= '0;
        pop_at_q  <= '0;
      end else begin
        // `pop` comes late: it decides, and has no part in a sum.
        if (push != pop) count_q <= push ? count_q + 1'b1 : count_q - 1'b1;
        if (push) push_at_q <= push_at_q + 1'b1;
        if (pop) pop_at_q <= pop_at_q + 1'b1;
      end
    end
  end else begin : gen_memory
    (* ram_style = "distributed" *)
    logic [Width-1:0] mem[Depth];
    // One bit more than an address: tells a full FIFO from an empty one.
    logic [AddrWidth:0] write_q, read_q;

    assign count_o = write_q - read_q;
    assign push_ready_o = !count_o[AddrWidth];
    assign pop_valid_o = write_q != read_q;
    assign pop_data_o = mem[read_q[AddrWidth-1:0]];

    always_ff @(posedge clk_i) begin
      if (push) mem[write_q[AddrWidth-1:0]] <= push_data_i;
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        write_q <= '0;
        read_q  <= '0;
      end else begin
        if (push) write_q <= write_q + 1'b1;
        if (pop) read_q <= read_q + 1'b1;
      end
    end
  end

  `VELO_ASSERT(CountWithinDepth, count_o <= (AddrWidth + 1)'(Depth))

endmodule
