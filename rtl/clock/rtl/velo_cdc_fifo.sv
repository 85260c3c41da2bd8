// SPDX-License-Identifier: Apache-2.0
//
// FIFO between two clocks of any ratio, first word falls through.
//
// Either side has a pointer, which the other side sees as a Gray code through a synchronizer. Only one
// bit of it changes at a time, so what is seen is the pointer of now or of a moment ago: each side thinks
// that the FIFO is fuller (push) or emptier (pop) than it is, never the other way round. The memory has
// one write port and one asynchronous read port, no reset, and is read only where it stands still.
//
// Both sides are valid/ready; `push_ready_o` and `pop_valid_o` depend on registers only.
// `push_count_o` is at least the number of entries, and falls back to it some cycles later.
// Latency: an entry is at the output Stages + 1 edges of `pop_clk_i` after the edge of `clk_i` that
// took it. Full rate needs Depth >= 2 * Stages + 4 if the clocks are alike.
// Errors: none. Both resets have to come from one source (velo_rst_sync): a FIFO of which only one side
// is reset shows old entries.

`include "velo_assert.svh"

module velo_cdc_fifo #(
    parameter int unsigned Width  = 32,
    parameter int unsigned Depth  = 8,   // a power of two
    parameter int unsigned Stages = 2    // of the synchronizers
) (
    input logic clk_i,  // of the push side
    input logic rst_ni, // of the push side

    input  logic                   push_valid_i,  // an entry is offered
    output logic                   push_ready_o,  // there is room for it
    input  logic [      Width-1:0] push_data_i,   // the entry
    output logic [$clog2(Depth):0] push_count_o,  // entries, or more

    input logic pop_clk_i,  // of the pop side
    input logic pop_rst_ni, // of the pop side

    output logic             pop_valid_o,  // an entry is there
    input  logic             pop_ready_i,  // it is taken
    output logic [Width-1:0] pop_data_o    // the entry
);

  localparam int unsigned AddrWidth = $clog2(Depth);
  typedef logic [AddrWidth:0] ptr_t;  // one bit more than an address: full is not empty

  function automatic ptr_t to_gray(ptr_t binary);
    return binary ^ (binary >> 1);
  endfunction
  function automatic ptr_t to_binary(ptr_t gray);
    ptr_t binary;
    binary = gray;
    for (int unsigned i = 1; i <= AddrWidth; i++) binary ^= gray >> i;
    return binary;
  endfunction

  (* ram_style = "distributed" *)
  logic [Width-1:0] mem[Depth];
  ptr_t write_q, write_gray_q, read_seen;
  ptr_t read_q, read_gray_q, write_seen;
  logic push, pop;

  // ----- Push side ----------------------------------------------------------------------------------

  velo_cdc_sync #(
      .Width (AddrWidth + 1),
      .Stages(Stages)
  ) u_read_seen (
      .clk_i (clk_i),
      .rst_ni(rst_ni),
      .d_i   (read_gray_q),
      .q_o   (read_seen)
  );

  assign push_count_o = write_q - to_binary(read_seen);
  assign push_ready_o = !push_count_o[AddrWidth];
  assign push = push_valid_i && push_ready_o;

  always_ff @(posedge clk_i) begin
    if (push) mem[write_q[AddrWidth-1:0]] <= push_data_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      write_q      <= '0;
      write_gray_q <= '0;
    end else if (push) begin
      write_q      <= write_q + 1'b1;
      write_gray_q <= to_gray(write_q + 1'b1);
    end
  end

  // ----- Pop side -----------------------------------------------------------------------------------

  velo_cdc_sync #(
      .Width (AddrWidth + 1),
      .Stages(Stages)
  ) u_write_seen (
      .clk_i (pop_clk_i),
      .rst_ni(pop_rst_ni),
      .d_i   (write_gray_q),
      .q_o   (write_seen)
  );

  assign pop_valid_o = read_gray_q != write_seen;
  assign pop_data_o = mem[read_q[AddrWidth-1:0]];
  assign pop = pop_valid_o && pop_ready_i;

  always_ff @(posedge pop_clk_i or negedge pop_rst_ni) begin
    if (!pop_rst_ni) begin
      read_q      <= '0;
      read_gray_q <= '0;
    end else if (pop) begin
      read_q      <= read_q + 1'b1;
      read_gray_q <= to_gray(read_q + 1'b1);
    end
  end

  `VELO_ASSERT_INIT(DepthIsPowerOfTwo, Depth >= 2 && Depth == 2 ** AddrWidth)
  `VELO_ASSERT(CountWithinDepth, push_count_o <= (AddrWidth + 1)'(Depth))

endmodule
