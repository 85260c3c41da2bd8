// SPDX-License-Identifier: Apache-2.0
//
// The processes' queues of commands, one each, in one memory: what a process does with its own takes no room from
// another's. Each keeps the order in which its commands were written. A command is at the head a cycle after it came.
//
// `clear_i` empties a process's queue; a push or pop of that process in the same cycle is void.
// Errors: none; a push to a full queue is not taken, and the register page refuses it.

`include "velo_assert.svh"

module dimmnet_queue
  import dimmnet_core_pkg::*;
#(
    parameter int unsigned Processes = 2,
    parameter int unsigned Depth = 8,
    localparam int unsigned WidBits = $clog2(Processes),
    localparam int unsigned DepthBits = $clog2(Depth)
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [Processes-1:0] clear_i,  // these begin anew

    input  logic                 push_valid_i,  // a command comes
    output logic                 push_ready_o,  // there is room for it
    input  logic   [WidBits-1:0] push_wid_i,    // its process
    input  entry_t               push_entry_i,  // the command

    output logic   [Processes-1:0] waiting_o,   // these have a command
    input  logic   [  WidBits-1:0] head_wid_i,  // whose to show
    output entry_t                 head_o,      // its first
    input  logic                   pop_i,       // it is done with
    input  logic   [  WidBits-1:0] pop_wid_i    // of this process
);

  `VELO_ASSERT_INIT(DepthIsPowerOfTwo, Depth == 2 ** DepthBits)

  (* ram_style = "distributed" *)
  entry_t mem[Processes*Depth];
  logic [Processes-1:0][DepthBits:0] write_q, read_q, count;

  for (genvar p = 0; p < Processes; p++) begin : gen_process
    assign count[p]     = write_q[p] - read_q[p];
    assign waiting_o[p] = count[p] != '0;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        write_q[p] <= '0;
        read_q[p]  <= '0;
      end else if (clear_i[p]) begin
        write_q[p] <= '0;
        read_q[p]  <= '0;
      end else begin
        if (push_valid_i && push_ready_o && push_wid_i == WidBits'(p))
          write_q[p] <= write_q[p] + 1'b1;
        if (pop_i && pop_wid_i == WidBits'(p) && waiting_o[p]) read_q[p] <= read_q[p] + 1'b1;
      end
    end
    `VELO_ASSERT(CountWithinDepth, count[p] <= (DepthBits + 1)'(Depth))
  end

  assign push_ready_o = !count[push_wid_i][DepthBits];
  assign head_o = mem[{head_wid_i, read_q[head_wid_i][DepthBits-1:0]}];
  always_ff @(posedge clk_i) begin
    if (push_valid_i && push_ready_o)
      mem[{push_wid_i, write_q[push_wid_i][DepthBits-1:0]}] <= push_entry_i;
  end

endmodule
