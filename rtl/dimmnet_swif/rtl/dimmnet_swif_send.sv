// SPDX-License-Identifier: Apache-2.0
//
// Keeps the packets of CoreLogic until they are acknowledged, and hands them on to be sent, again if they have to be.
//
// Every line goes into a ring and is sent from there, also the first time. Packets follow each other round the ring:
// head (the oldest kept), next (the next to be sent), fresh (the first that was never sent), written. Numbers are a
// peer's own; the ring is one for all. A repetition is "next := head"; on the way from there to `fresh` only those
// of peers that are sent everything again are sent, the others passed over. A packet leaves the ring at the head, when
// it is acknowledged or its peer is dropped. So a peer that acknowledges nothing holds up all others, once the ring is
// full: until it does, or has failed.
//
// With CutThrough a packet is sent as its lines come: a gap between its lines is one in the packet, and nothing
// else is sent meanwhile. Without it, packets are sent once they are whole.
//
// An acknowledgement is believed if it is of packets that are in the ring: from the oldest on to the newest.
// Errors: a packet for a LID that is no peer's, or for one that is dropped, is taken and counts as `unreachable_o`.

`include "velo_assert.svh"

module dimmnet_swif_send
  import dimmnet_pkg::*;
  import dimmnet_swif_pkg::*;
#(
    parameter int unsigned NumPeers = 16,
    parameter int unsigned PsnBits = 24,
    parameter int unsigned PacketLines = 64,
    parameter int unsigned RingLines = 512,
    parameter int unsigned RingPackets = 32,
    parameter int unsigned TimeoutCycles = 4096,
    parameter int unsigned RnrCycles = 256,
    parameter int unsigned RetryLimit = 7,
    parameter bit CutThrough = 1'b1,
    localparam int unsigned PeerBits = $clog2(NumPeers)
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [        15:0] lid_i,
    input  logic [NumPeers-1:0] stop_i,
    output logic [NumPeers-1:0] off_o,
    output logic [NumPeers-1:0] failed_o,

    input  logic                 tx_valid_i,
    output logic                 tx_ready_o,
    input  dimmnet_line_e        tx_ident_i,
    input  logic          [63:0] tx_line_i,

    output logic               pkt_valid_o,
    output logic [PsnBits-1:0] pkt_psn_o,
    input  logic               pkt_ready_i,
    output logic               line_valid_o,
    output logic [       63:0] line_o,
    input  logic               line_take_i,

    input logic                ack_valid_i,
    input ack_e                ack_kind_i,
    input logic [PeerBits-1:0] ack_peer_i,
    input logic [ PsnBits-1:0] ack_psn_i,

    output logic [NumPeers-1:0] repeat_o,
    output logic [NumPeers-1:0] gave_up_o,
    output logic                unreachable_o
);

  `VELO_ASSERT_INIT(OldAndNewDiffer, RingPackets <= 2 ** (PsnBits - 1))
  `VELO_ASSERT_INIT(OnePacketFits, RingLines >= 2 * PacketLines + 2)

  localparam int unsigned AddrBits = $clog2(RingLines);
  localparam int unsigned NumBits = $clog2(RingPackets);
  typedef logic [PeerBits-1:0] peer_t;
  typedef logic [PsnBits-1:0] psn_t;
  typedef logic [AddrBits:0] addr_t;  // one bit more than an address: full is not empty
  typedef logic [NumBits:0] num_t;  // and than a packet's place
  typedef logic [6:0] lines_t;

  // ----- Writing ------------------------------------------------------------------------------------

  logic [NumPeers-1:0] drop, waiting, again;
  num_t head_q, next_q, fresh_q, begun_q;
  addr_t head_addr_q, write_q, read_q, read;
  logic open_q, keep_q, room_q;  // inside a packet; it is kept; a whole one fits
  logic take, first, last, keep, begin_pkt, write;
  dimmnet_packet_t header;
  peer_t to;
  addr_t used;
  num_t kept;

  assign header = dimmnet_packet_t'({64'd0, tx_line_i});
  logic unused_fields;
  assign unused_fields = &{1'b0, header, lid_i, read[AddrBits]};
  assign to = header.dst_lid[PeerBits-1:0];
  assign used = write_q - head_addr_q;
  assign kept = begun_q - head_q;
  assign tx_ready_o = open_q || (room_q && kept < num_t'(RingPackets));
  assign take = tx_valid_i && tx_ready_o;
  assign first = take && tx_ident_i == DimmnetLineFirst;
  assign last = take && tx_ident_i == DimmnetLineLast;
  assign keep = first ? header.dst_lid[15:PeerBits] == lid_i[15:PeerBits] && !drop[to] : keep_q;
  assign begin_pkt = first && keep;
  assign write = take && keep;
  assign unreachable_o = first && !keep;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      open_q  <= 1'b0;
      keep_q  <= 1'b0;
      room_q  <= 1'b0;
      write_q <= '0;
      begun_q <= '0;
    end else begin
      // The last line of a packet may come in this cycle.
      room_q <= used < addr_t'(RingLines - PacketLines);
      if (take) begin
        open_q <= !last;
        keep_q <= keep;
      end
      if (write) write_q <= write_q + 1'b1;
      if (begin_pkt) begun_q <= begun_q + 1'b1;
    end
  end

  // Numbers: of the next packet, and of the oldest that is not acknowledged.
  peer_t heard_peer_q, head_peer_q;
  psn_t begin_psn, have_psn, oldest, head_oldest, ack_end, heard_end_q;
  logic newer;
  dimmnet_swif_psns #(
      .NumPeers(NumPeers),
      .PsnBits(PsnBits),
      .Reads(2)
  ) u_begun (
      .clk_i,
      .rst_ni,
      .clear_i(off_o),
      .we_i(begin_pkt),
      .wpeer_i(to),
      .wpsn_i(begin_psn + 1'b1),
      .peer_i({ack_peer_i, to}),
      .psn_o({have_psn, begin_psn})
  );
  dimmnet_swif_psns #(
      .NumPeers(NumPeers),
      .PsnBits(PsnBits),
      .Reads(2)
  ) u_oldest (
      .clk_i,
      .rst_ni,
      .clear_i(off_o),
      .we_i(newer),
      .wpeer_i(heard_peer_q),
      .wpsn_i(heard_end_q),
      .peer_i({head_peer_q, ack_peer_i}),
      .psn_o({head_oldest, oldest})
  );

  // ----- Acknowledgements ---------------------------------------------------------------------------

  // First cycle: how much does it say? Second cycle: is it believed? Third: it counts. One that comes right after
  // another is ignored.
  logic asked_q, heard_q, newer_q, all_q, grew_q;
  peer_t asked_peer_q;
  psn_t asked_end_q, by_q, have_q;
  ack_e asked_kind_q, heard_kind_q;
  assign ack_end = ack_psn_i + psn_t'(ack_kind_i == AckTaken);
  assign newer   = heard_q && newer_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      asked_q <= 1'b0;
      heard_q <= 1'b0;
    end else begin
      asked_q <= ack_valid_i && !asked_q && !heard_q;
      heard_q <= asked_q && by_q <= have_q;
    end
  end
  always_ff @(posedge clk_i) begin
    asked_peer_q <= ack_peer_i;
    asked_end_q <= ack_end;
    asked_kind_q <= ack_kind_i;
    by_q <= ack_end - oldest;
    have_q <= have_psn - oldest;
    grew_q <= begin_pkt && to == ack_peer_i;

    heard_peer_q <= asked_peer_q;
    heard_end_q <= asked_end_q;
    heard_kind_q <= asked_kind_q;
    newer_q <= by_q != '0;
    all_q <= by_q == have_q && !grew_q && !(begin_pkt && to == asked_peer_q);
  end

  // ----- Peers --------------------------------------------------------------------------------------

  logic due, go_back, over, passed;
  num_t marked_q;
  dimmnet_swif_peers #(
      .NumPeers(NumPeers),
      .TimeoutCycles(TimeoutCycles),
      .RnrCycles(RnrCycles),
      .RetryLimit(RetryLimit)
  ) u_peers (
      .clk_i,
      .rst_ni,
      .stop_i,
      .passed_i(passed),
      .off_o,
      .failed_o,
      .drop_o(drop),
      .write_i(begin_pkt),
      .write_peer_i(to),
      .heard_i(heard_q),
      .heard_peer_i(heard_peer_q),
      .heard_newer_i(newer),
      .heard_all_i(all_q),
      .heard_nak_i(heard_kind_q == AckSequence && !all_q),
      .heard_rnr_i(heard_kind_q == AckNotReady && !all_q),
      .due_o(due),
      .begin_i(go_back),
      .over_i(over),
      .wait_o(waiting),
      .again_o(again),
      .repeat_o,
      .gave_up_o
  );

  // ----- What is in the ring --------------------------------------------------------------------------

  // Of each packet: its peer, its number, its lines.
  localparam int unsigned EntryBits = PeerBits + PsnBits + 7;
  (* ram_style = "distributed" *)
  logic [EntryBits-1:0] entries[RingPackets];
  lines_t header_lines;
  assign header_lines = header.words + lines_t'(DimmnetHeaderWords);
  always_ff @(posedge clk_i) begin
    if (begin_pkt) entries[begun_q[NumBits-1:0]] <= {to, begin_psn, header_lines};
  end

  logic [1:0] unused_ecc;
  velo_ram #(
      .Width(64),
      .Depth(RingLines)
  ) u_ring (
      .clk_i,
      .we_i(write),
      .waddr_i(write_q[AddrBits-1:0]),
      .wdata_i(tx_line_i),
      .raddr_i(read[AddrBits-1:0]),
      .rdata_o(line_o),
      .corrected_o(unused_ecc[0]),
      .broken_o(unused_ecc[1])
  );

  // ----- Sending ------------------------------------------------------------------------------------

  // The packet at `next_q`, if there is one, and the lines that are still to be taken of the one before.
  logic head_ready_q, head_seen_q, head_done_q, head_left, free, due_seen_q;
  logic ready_q, new_q, unwilling_q, whole, willing, pass, start, sending;
  peer_t peer_q;
  psn_t  psn_q;
  lines_t lines_q, left_q;
  assign sending = left_q != '0;
  assign whole = !(open_q && keep_q && next_q + 1'b1 == begun_q);
  assign willing = !drop[peer_q] && !waiting[peer_q] && (new_q || again[peer_q]);
  // The head is what the peer knows of: nothing is sent again that has just been acknowledged.
  assign go_back = due && due_seen_q && !sending && (!head_left || (head_seen_q && !head_done_q));
  assign over = next_q == fresh_q;
  // A packet that is to be passed over is a cycle later.
  assign pass = unwilling_q && !due && !sending;
  assign start = pkt_valid_o && pkt_ready_i;
  assign pkt_valid_o = ready_q && willing && !unwilling_q && !due && !sending &&
      (CutThrough || whole);
  assign pkt_psn_o = psn_q;

  always_comb begin
    read = read_q;
    if (line_take_i) read = read_q + 1'b1;
    if (pass) read = read_q + addr_t'(lines_q);
    if (go_back) read = head_addr_q;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ready_q <= 1'b0;
      unwilling_q <= 1'b0;
      line_valid_o <= 1'b0;
      next_q <= '0;
      fresh_q <= '0;
      read_q <= '0;
      left_q <= '0;
    end else begin
      read_q <= read;
      // One that is written in this cycle is there in two: the memory is read a cycle ahead.
      line_valid_o <= read != write_q;
      unwilling_q <= ready_q && !willing && whole && !pass && !go_back;
      if (line_take_i) left_q <= left_q - 1'b1;
      if (start) left_q <= lines_q;
      if (start || pass) begin
        next_q  <= next_q + 1'b1;
        ready_q <= 1'b0;
        if (new_q) fresh_q <= fresh_q + 1'b1;
      end else if (!ready_q) ready_q <= next_q != begun_q;
      if (go_back) begin
        next_q  <= head_q;
        ready_q <= 1'b0;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (!ready_q) begin
      {peer_q, psn_q, lines_q} <= entries[next_q[NumBits-1:0]];
      new_q <= next_q == fresh_q;
    end
  end

  // ----- Leaving the ring ---------------------------------------------------------------------------

  psn_t head_psn_q, head_ahead;
  lines_t head_lines_q;
  assign head_ahead = head_psn_q - head_oldest;
  // Not the packet that lines are taken of.
  assign head_left = head_q != next_q && !(sending && head_q + 1'b1 == next_q);
  assign free = head_seen_q && head_left && head_done_q;
  assign passed = head_q == marked_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      head_ready_q <= 1'b0;
      head_seen_q <= 1'b0;
      due_seen_q <= 1'b0;
      head_q <= '0;
      head_addr_q <= '0;
      marked_q <= '0;
    end else begin
      // First cycle: it is read. Second: is it done? Third: it leaves.
      head_ready_q <= !free && (head_ready_q || head_left);
      head_seen_q  <= !free && head_ready_q;
      due_seen_q   <= due && !go_back;
      if (free) begin
        head_q <= head_q + 1'b1;
        head_addr_q <= head_addr_q + addr_t'(head_lines_q);
      end
      if (passed) marked_q <= begun_q;
    end
  end
  always_ff @(posedge clk_i) begin
    head_done_q <= head_ahead[PsnBits-1] || drop[head_peer_q];
    if (!head_ready_q) begin
      {head_peer_q, head_psn_q, head_lines_q} <= entries[head_q[NumBits-1:0]];
    end
  end

  // What CoreLogic promises: a packet's lines are as many as it says, at most PacketLines, first and last marked so.
  lines_t line_q;
  lines_t claimed_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) line_q <= '0;
    else if (take) begin
      line_q <= last ? '0 : line_q + 1'b1;
      if (first) claimed_q <= header_lines;
    end
  end
  `VELO_ASSUME(FirstIsMarked, !take || first == (line_q == '0))
  `VELO_ASSUME(LastIsMarked, !take || first || last == (line_q + 1'b1 == claimed_q))
  `VELO_ASSUME(LinesAreWithinLimits, !first || header_lines <= lines_t'(PacketLines))
  `VELO_ASSUME(LineIsNeverNone, !tx_valid_i || tx_ident_i != DimmnetLineNone)
  `VELO_ASSERT(RingNotOverwritten, used <= addr_t'(RingLines))
  `VELO_ASSERT(NoMorePacketsThanPlaces, kept <= num_t'(RingPackets))
  `VELO_ASSERT(HeadNotAheadOfNext, num_t'(begun_q - next_q) <= kept)
  `VELO_ASSERT(NoLineTakenThatIsNone, !line_take_i || (line_valid_o && sending))

endmodule
