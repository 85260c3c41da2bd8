// SPDX-License-Identifier: Apache-2.0
//
// Routing table: by which link does a packet for this node leave?
//
// Written through `table_*_i`; `hop_o`, combinational: the way to node `node_i`, HopNone until it was written since
// the reset. The memory has no reset. It is kept as banks of 16 entries, and the first write to any entry at a place
// within the banks writes HopNone to the others at that place; so one flag a place, 16 in all, says which entries mean
// something, and no write has to wait for a table that is being cleared.
// Errors: none.

`include "velo_assert.svh"

module velo_switch_table
  import velo_switch_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input logic       table_we_i,
    input logic [7:0] table_node_i,
    input hop_t       table_hop_i,

    input  logic [7:0] node_i,  // which node
    output hop_t       hop_o    // the way to it
);

  localparam int unsigned Banks = 16;

  // The same in all inputs of a switch, so synthesis keeps one.
  logic [Banks-1:0] written_q;  // by place: in all banks
  logic [3:0] table_bank, table_place;
  assign {table_bank, table_place} = table_node_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) written_q <= '0;
    else if (table_we_i) written_q[table_place] <= 1'b1;
  end

  hop_t [Banks-1:0] hop;
  for (genvar b = 0; b < Banks; b++) begin : gen_bank
    (* ram_style = "distributed" *)
    hop_t mem[16];
    logic this_bank;
    assign this_bank = table_bank == 4'(b);

    always_ff @(posedge clk_i) begin
      if (table_we_i && (this_bank || !written_q[table_place])) begin
        mem[table_place] <= this_bank ? table_hop_i : HopNone;
      end
    end
    assign hop[b] = mem[node_i[3:0]];
  end

  assign hop_o = written_q[node_i[3:0]] ? hop[node_i[7:4]] : HopNone;

endmodule
