// SPDX-License-Identifier: Apache-2.0
//
// A packet sequence number for each peer, in LUT RAM. A reset, or `clear_i` of a peer, makes it 0 until it is written.

module dimmnet_swif_psns #(
    parameter int unsigned NumPeers = 16,
    parameter int unsigned PsnBits = 24,
    parameter int unsigned Reads = 1,
    localparam int unsigned PeerBits = $clog2(NumPeers)
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [NumPeers-1:0] clear_i,

    input logic                we_i,
    input logic [PeerBits-1:0] wpeer_i,
    input logic [ PsnBits-1:0] wpsn_i,

    input  logic [Reads-1:0][PeerBits-1:0] peer_i,
    output logic [Reads-1:0][ PsnBits-1:0] psn_o    // in the same cycle
);

  (* ram_style = "distributed" *)
  logic [PsnBits-1:0] mem[NumPeers];
  logic [NumPeers-1:0] written_q;

  for (genvar i = 0; i < int'(Reads); i++) begin : gen_read
    assign psn_o[i] = written_q[peer_i[i]] ? mem[peer_i[i]] : '0;
  end

  always_ff @(posedge clk_i) begin
    if (we_i) mem[wpeer_i] <= wpsn_i;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) written_q <= '0;
    else written_q <= (written_q | NumPeers'(we_i) << wpeer_i) & ~clear_i;
  end

endmodule
