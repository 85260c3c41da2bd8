// SPDX-License-Identifier: Apache-2.0
//
// One lane, 64b/66b, sending: a word or a skip set becomes a block a cycle, scrambled by
// x^58 + x^39 + 1 (each bit with those sent 39 and 58 bits before it).
//
// `skip_i` asks for a skip set; one goes out too while no word is offered.
// Latency 2 cycles from word to block. Errors: none. Words of other kinds than KindData have their high
// 8 bits zero, as a link's have.
// Source: IEEE 802.3, clause 49.2.

`include "velo_assert.svh"

module velo_pcs66_tx
  import velo_pcs_pkg::*;
  import velo_link_pkg::*;
#(
    parameter int unsigned Lane = 0  // its number in the link
) (
    input logic clk_i,  // of the serializer
    input logic rst_ni,

    input  logic         valid_i,  // a word is offered
    output logic         ready_o,  // it is taken
    input  kind_e        kind_i,   // its kind
    input  logic  [63:0] data_i,   // this lane's part of it

    input  logic    skip_i,     // a skip set is due
    output logic    skip_o,     // one goes out in this cycle
    input  number_t skip_num_i, // its number

    output logic [65:0] wire_o  // header and payload, bit 0 first
);

  logic [63:0] payload_d, payload_q, scrambled;
  logic [1:0] header_d, header_q;
  logic [57:0] state_q;  // bits sent, the last one in [57]

  assign ready_o = !skip_i;
  assign skip_o  = skip_i || !valid_i;

  always_comb begin
    header_d  = HeaderControl;
    payload_d = {data_i[55:0], TypeCtl};
    if (skip_o) begin
      payload_d = {32'b0, 8'(Lane), ~skip_num_i, skip_num_i, TypeSkip};
    end else begin
      unique case (kind_i)
        KindData: begin
          header_d  = HeaderData;
          payload_d = data_i;
        end
        KindEnd:   payload_d[7:0] = TypeEnd;
        KindStart: payload_d[7:0] = TypeStart;
        default:   ;
      endcase
    end
  end

  always_comb begin
    logic [121:0] bits;
    bits = {64'b0, state_q};
    for (int i = 0; i < 64; i++) bits[58+i] = payload_q[i] ^ bits[58+i-39] ^ bits[i];
    scrambled = bits[121:58];
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      header_q  <= HeaderControl;
      payload_q <= '0;
      state_q   <= '1;
      wire_o    <= '0;
    end else begin
      header_q  <= header_d;
      payload_q <= payload_d;
      state_q   <= scrambled[63:6];
      wire_o    <= {scrambled, header_q};
    end
  end

  `VELO_ASSUME(ControlFits, !valid_i || kind_i == KindData || data_i[63:56] == '0)

endmodule
