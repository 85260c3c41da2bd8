// SPDX-License-Identifier: Apache-2.0
//
// Where the lines of a packet wait until it is known to be right, and then for CoreLogic.
//
// `measure_i` begins a packet of `lines_i` lines; `fits_o` says from the next cycle on whether there is room, and if
// not its lines are not kept. `keep_i`, after its last line: the packet may go out, from the next cycle on. A packet
// that is not kept is forgotten when the next one begins.

`include "velo_assert.svh"

module dimmnet_swif_store
  import dimmnet_pkg::*;
#(
    parameter  int unsigned StoreLines = 512,
    localparam int unsigned AddrBits   = $clog2(StoreLines)
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                 measure_i,
    input  logic          [ 6:0] lines_i,
    output logic                 fits_o,
    input  logic                 line_valid_i,
    input  dimmnet_line_e        ident_i,
    input  logic          [63:0] line_i,
    input  logic                 keep_i,

    output logic                 rx_valid_o,
    input  logic                 rx_ready_i,
    output dimmnet_line_e        rx_ident_o,
    output logic          [63:0] rx_line_o
);

  typedef logic [AddrBits:0] addr_t;  // one bit more than an address: full is not empty
  addr_t write_q, kept_q, read_q, read, taken;

  assign taken = kept_q - read_q;
  assign rx_valid_o = kept_q != read_q;
  assign read = read_q + addr_t'(rx_valid_o && rx_ready_i);

  logic [1:0] ident, unused_ecc;
  assign rx_ident_o = dimmnet_line_e'(ident);
  velo_ram #(
      .Width(66),
      .Depth(StoreLines)
  ) u_ram (
      .clk_i,
      .we_i(line_valid_i && fits_o),
      .waddr_i(write_q[AddrBits-1:0]),
      .wdata_i({ident_i, line_i}),
      .raddr_i(read[AddrBits-1:0]),
      .rdata_o({ident, rx_line_o}),
      .corrected_o(unused_ecc[0]),
      .broken_o(unused_ecc[1])
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      write_q <= '0;
      kept_q  <= '0;
      read_q  <= '0;
      fits_o  <= 1'b0;
    end else begin
      read_q <= read;
      if (measure_i) begin
        write_q <= kept_q;
        fits_o  <= addr_t'(lines_i) <= addr_t'(StoreLines) - taken;
      end else if (line_valid_i && fits_o) write_q <= write_q + 1'b1;
      if (keep_i) kept_q <= write_q;
    end
  end

  `VELO_ASSERT(NothingOverwritten, addr_t'(write_q - read_q) <= addr_t'(StoreLines))

endmodule
