// SPDX-License-Identifier: Apache-2.0
//
// What the sender knows of each peer beside its numbers: is it to be waited for, to be sent everything again, given up?
//
// A repetition is due (`due_o`) when the peer says that a packet is missing, when it said some time ago that it had no
// room, or when it has acknowledged nothing for TimeoutCycles to twice as many. `begin_i`: the sender goes back to its
// oldest packet; peers in `again_o` are sent all of theirs again, until `over_i`. After RetryLimit repetitions without
// an acknowledgement the peer has failed. A peer without room is waited for as long as it says so.
//
// `stop_i` of a peer, or its failure, drops all that is for it (`drop_o`). A failure stays until `stop_i`. After
// `stop_i` the peer is off until no packet of it is left: those that are in the ring when `stop_i` ends
// are gone after two `passed_i`, each of which says that what was in the ring at the last one has left it.
// Source: InfiniBand Architecture Specification, volume 1, 9.7.6.

module dimmnet_swif_peers #(
    parameter int unsigned NumPeers = 16,
    parameter int unsigned TimeoutCycles = 4096,
    parameter int unsigned RnrCycles = 256,
    parameter int unsigned RetryLimit = 7,
    localparam int unsigned PeerBits = $clog2(NumPeers)
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [NumPeers-1:0] stop_i,
    input  logic                passed_i,
    output logic [NumPeers-1:0] off_o,
    output logic [NumPeers-1:0] failed_o,
    output logic [NumPeers-1:0] drop_o,

    input logic                write_i,      // a packet for it has begun
    input logic [PeerBits-1:0] write_peer_i,

    // A believed acknowledgement.
    input logic                heard_i,
    input logic [PeerBits-1:0] heard_peer_i,
    input logic                heard_newer_i,  // of more than was known
    input logic                heard_all_i,    // of everything
    input logic                heard_nak_i,
    input logic                heard_rnr_i,

    output logic                due_o,
    input  logic                begin_i,
    input  logic                over_i,
    output logic [NumPeers-1:0] wait_o,
    output logic [NumPeers-1:0] again_o,

    output logic [NumPeers-1:0] repeat_o,  // pulses
    output logic [NumPeers-1:0] gave_up_o
);

  typedef logic [PeerBits-1:0] peer_t;
  typedef logic [NumPeers-1:0] peers_t;
  localparam int unsigned RetryBits = $clog2(RetryLimit + 1);
  localparam int unsigned TimeBits = $clog2(TimeoutCycles);
  localparam int unsigned RnrBits = $clog2(RnrCycles);

  logic [TimeBits-1:0] time_q;
  logic [ RnrBits-1:0] rnr_time_q;
  logic tick_q, rnr_tick_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      time_q <= '0;
      rnr_time_q <= '0;
      tick_q <= 1'b0;
      rnr_tick_q <= 1'b0;
    end else begin
      time_q <= time_q == TimeBits'(TimeoutCycles - 1) ? '0 : time_q + 1'b1;
      rnr_time_q <= rnr_time_q == RnrBits'(RnrCycles - 1) ? '0 : rnr_time_q + 1'b1;
      tick_q <= time_q == '0;
      rnr_tick_q <= rnr_time_q == '0;
    end
  end

  // Packets of it are not acknowledged; a tick has passed since something of it changed; it is to be sent all again.
  peers_t open_q, aged_q, due_q, seen_q;
  logic [RetryBits-1:0] tries_q[NumPeers];

  assign drop_o = off_o | failed_o;
  assign due_o  = |due_q;

  for (genvar i = 0; i < int'(NumPeers); i++) begin : gen_peer
    logic heard, newer, timeout, nak, trouble, last;
    assign heard = heard_i && heard_peer_i == peer_t'(i);
    assign newer = heard && heard_newer_i;
    assign timeout = tick_q && open_q[i] && aged_q[i] && !due_q[i] && !again_o[i] && !wait_o[i];
    assign nak = heard && heard_nak_i;
    assign trouble = !drop_o[i] && (nak || (timeout && !heard));
    assign last = tries_q[i] == RetryBits'(RetryLimit) && !newer;
    assign repeat_o[i] = trouble && !last;
    assign gave_up_o[i] = trouble && last;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        off_o[i] <= 1'b0;
        seen_q[i] <= 1'b0;
        failed_o[i] <= 1'b0;
      end else begin
        if (stop_i[i]) off_o[i] <= 1'b1;
        else if (passed_i && seen_q[i]) off_o[i] <= 1'b0;
        if (passed_i) seen_q[i] <= off_o[i] && !stop_i[i] && !seen_q[i];
        if (stop_i[i]) seen_q[i] <= 1'b0;
        if (off_o[i]) failed_o[i] <= 1'b0;
        else if (gave_up_o[i]) failed_o[i] <= 1'b1;
      end
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        open_q[i]  <= 1'b0;
        aged_q[i]  <= 1'b0;
        due_q[i]   <= 1'b0;
        again_o[i] <= 1'b0;
        wait_o[i]  <= 1'b0;
        tries_q[i] <= '0;
      end else if (drop_o[i]) begin
        open_q[i]  <= 1'b0;
        aged_q[i]  <= 1'b0;
        due_q[i]   <= 1'b0;
        again_o[i] <= 1'b0;
        wait_o[i]  <= 1'b0;
        tries_q[i] <= '0;
      end else begin
        if (tick_q) aged_q[i] <= open_q[i];
        if (begin_i) begin
          due_q[i]   <= 1'b0;
          again_o[i] <= again_o[i] || due_q[i];
        end
        if (over_i && !begin_i) begin
          again_o[i] <= 1'b0;
          if (again_o[i]) aged_q[i] <= 1'b0;
        end
        if (heard && heard_all_i) open_q[i] <= 1'b0;
        if (newer) begin
          aged_q[i]  <= 1'b0;
          tries_q[i] <= '0;
        end
        if (rnr_tick_q && wait_o[i]) begin
          wait_o[i] <= 1'b0;
          due_q[i]  <= 1'b1;
        end
        if (heard && heard_rnr_i) begin
          wait_o[i]  <= 1'b1;
          due_q[i]   <= 1'b0;
          tries_q[i] <= '0;
        end
        if (repeat_o[i]) begin
          due_q[i]   <= 1'b1;
          wait_o[i]  <= 1'b0;
          aged_q[i]  <= 1'b0;
          tries_q[i] <= newer ? RetryBits'(1) : tries_q[i] + 1'b1;
        end
        if (write_i && write_peer_i == peer_t'(i)) open_q[i] <= 1'b1;
      end
    end
  end

endmodule
