// SPDX-License-Identifier: Apache-2.0
//
// Decides for each good packet of data whether it is the one that is due from its sender, and what the sender is told.
//
// A packet that is due and fits is accepted. One that is due and does not fit: the sender is told to come again
// later (RNR). One that came already: it is acknowledged again. One that is ahead: the sender is told once what is
// missing (NAK), until that comes. Acknowledgements of a peer are one packet for up to AckPackets packets, or for
// what came in AckCycles; all others go out at once. They say what is due when they are chosen, so one that is lost or
// late does no harm.
// `off_i`: nothing is taken from this peer, and its numbers begin again at 0.
// Source: InfiniBand Architecture Specification, volume 1, 9.7.4 and 9.7.5.

module dimmnet_swif_judge
  import dimmnet_swif_pkg::*;
#(
    parameter int unsigned NumPeers = 16,
    parameter int unsigned PsnBits = 24,
    parameter int unsigned AckPackets = 4,
    parameter int unsigned AckCycles = 64,
    localparam int unsigned PeerBits = $clog2(NumPeers)
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [NumPeers-1:0] off_i,

    input  logic                good_i,
    input  logic [PeerBits-1:0] peer_i,       // this and the number: two cycles ahead of `good_i`
    input  logic [ PsnBits-1:0] psn_i,
    input  logic                fits_i,
    output logic                accept_o,
    output logic                duplicate_o,
    output logic                ahead_o,
    output logic                no_room_o,

    output logic                ack_valid_o,
    input  logic                ack_ready_i,
    output ack_e                ack_kind_o,
    output logic [PeerBits-1:0] ack_peer_o,
    output logic [ PsnBits-1:0] ack_expected_o
);

  typedef logic [NumPeers-1:0] peers_t;
  typedef logic [PeerBits-1:0] peer_t;
  typedef logic [PsnBits-1:0] psn_t;
  localparam int unsigned CountBits = AckPackets > 2 ? $clog2(AckPackets) : 1;
  localparam int unsigned TickBits = $clog2(AckCycles);

  // ----- Is it due? ---------------------------------------------------------------------------------

  peer_t pick, pick_q;
  psn_t expected, expected_pick, behind;
  logic due_q, old_q;
  dimmnet_swif_psns #(
      .NumPeers(NumPeers),
      .PsnBits(PsnBits),
      .Reads(2)
  ) u_expected (
      .clk_i,
      .rst_ni,
      .clear_i(off_i),
      .we_i(accept_o),
      .wpeer_i(peer_i),
      .wpsn_i(psn_i + 1'b1),
      .peer_i({pick_q, peer_i}),
      .psn_o({expected_pick, expected})
  );
  assign behind = psn_i - expected;
  always_ff @(posedge clk_i) begin
    due_q <= psn_i == expected;
    old_q <= behind[PsnBits-1];
  end

  logic judged;
  assign judged = good_i && !off_i[peer_i];
  assign accept_o = judged && due_q && fits_i;
  assign no_room_o = judged && due_q && !fits_i;
  assign duplicate_o = judged && old_q;
  assign ahead_o = judged && !old_q && !due_q;

  // ----- What is the sender told? -------------------------------------------------------------------

  peers_t ack_q, nak_q, rnr_q;  // to be told
  peers_t missing_q;  // has been told that one is missing, which has not come yet
  logic [CountBits-1:0] count_q[NumPeers];  // accepted since told
  logic [TickBits-1:0] time_q;
  logic tick_q;

  peers_t granted, granted_q;
  logic choose, show, chosen_q;
  // First cycle: which peer? Second: what is due from it?
  assign show   = chosen_q && !ack_valid_o;
  assign choose = !chosen_q && |granted;
  velo_rr_arb #(
      .NumReq(NumPeers)
  ) u_arb (
      .clk_i,
      .rst_ni,
      .req_i  (ack_q | nak_q | rnr_q),
      .grant_o(granted),
      .take_i (choose)
  );
  always_comb begin
    pick = '0;
    for (int i = 0; i < int'(NumPeers); i++) if (granted[i]) pick |= peer_t'(i);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      chosen_q <= 1'b0;
      ack_valid_o <= 1'b0;
      time_q <= '0;
      tick_q <= 1'b0;
    end else begin
      time_q <= time_q == TickBits'(AckCycles - 1) ? '0 : time_q + 1'b1;
      tick_q <= time_q == '0;
      if (choose) chosen_q <= 1'b1;
      else if (show) chosen_q <= 1'b0;
      if (show) ack_valid_o <= 1'b1;
      else if (ack_ready_i) ack_valid_o <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (choose) begin
      pick_q    <= pick;
      granted_q <= granted;
    end
    if (show) begin
      ack_peer_o <= pick_q;
      ack_expected_o <= expected_pick;
      ack_kind_o <= |(rnr_q & granted_q) ? AckNotReady :
          |(nak_q & granted_q) ? AckSequence : AckTaken;
    end
  end

  for (genvar i = 0; i < int'(NumPeers); i++) begin : gen_peer
    logic here, chosen;
    assign here   = peer_i == peer_t'(i);
    assign chosen = show && granted_q[i];
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        ack_q[i] <= 1'b0;
        nak_q[i] <= 1'b0;
        rnr_q[i] <= 1'b0;
        missing_q[i] <= 1'b0;
        count_q[i] <= '0;
      end else if (off_i[i]) begin
        ack_q[i] <= 1'b0;
        nak_q[i] <= 1'b0;
        rnr_q[i] <= 1'b0;
        missing_q[i] <= 1'b0;
        count_q[i] <= '0;
      end else begin
        if (chosen) begin
          ack_q[i]   <= 1'b0;
          nak_q[i]   <= 1'b0;
          rnr_q[i]   <= 1'b0;
          count_q[i] <= '0;
        end
        if (tick_q && count_q[i] != '0 && !chosen) ack_q[i] <= 1'b1;
        if (here && accept_o) begin
          missing_q[i] <= 1'b0;
          nak_q[i] <= 1'b0;
          rnr_q[i] <= 1'b0;
          count_q[i] <= chosen ? CountBits'(1) : count_q[i] + 1'b1;
          if (count_q[i] >= CountBits'(AckPackets - 1) && !chosen) begin
            ack_q[i]   <= 1'b1;
            count_q[i] <= CountBits'(AckPackets - 1);
          end
          // What was to be told of a missing one says now that it has come.
          if (!chosen && (nak_q[i] || rnr_q[i])) ack_q[i] <= 1'b1;
        end
        if (here && duplicate_o) ack_q[i] <= 1'b1;
        if (here && ahead_o && !missing_q[i]) begin
          nak_q[i] <= 1'b1;
          missing_q[i] <= 1'b1;
        end
        if (here && no_room_o) begin
          rnr_q[i] <= 1'b1;
          nak_q[i] <= 1'b0;
          missing_q[i] <= 1'b1;
        end
      end
    end
  end

endmodule
