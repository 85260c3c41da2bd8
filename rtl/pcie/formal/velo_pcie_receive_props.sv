// SPDX-License-Identifier: Apache-2.0
//
// Promises of velo_pcie_receive with velo_pcie_stores behind it, for every stream of packets, right or wrong, and
// every behaviour of the network:
//
//   * No packet waits for the network. A beat that is offered is taken at once, but behind a packet that ended with its
//     header, a cycle later, and behind a register write, when the node's registers have taken that (here: within
//     `ControlCycles`).
//   * No context harms another. A store is dropped only if its own context has as many under way as its share, whatever
//     the others do, as long as all shares together are no more than the lines; none has more than its share, and
//     who has none gets none. Here: three contexts that have one, of any numbers.
//   * Each packet becomes what it is, and nothing else: an independent reading of its beats says what.
//   * Stores leave whole and in order (`Data`: one bit of one word of one's choice is what came in).

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_pcie_receive_props
  import velo_pkg::*;
  import htax_pkg::*;
  import velo_host_pkg::*;
  import pcie_pkg::*;
  import velo_pcie_pkg::*;
#(
    parameter int unsigned Lines = 4,
    parameter int unsigned ControlCycles = 3,
    parameter bit Data = 1'b0
) (
    input logic             clk_i,
    input logic             rst_ni,
    input logic      [15:0] id_i,
    input logic [2:0][ 7:0] who_i,          // contexts with shares
    input logic [2:0][ 7:0] shares_i,
    input tlp_beat_t        rx_i,
    input bar_t             rx_bar_i,
    input logic             control_ready_i,
    input logic             request_room_i,
    input logic             write_ready_i,
    input logic      [ 2:0] word_i,         // which word is looked at, `Data`
    input logic      [ 5:0] bit_i
);

  logic rx_ready, look, room, word, commit, dropped, control_valid, own_write, request_valid;
  logic [2:0] index;
  logic [63:0] data, control_data, own_data, write_data;
  logic [37:0] addr;
  logic [3:0] words;
  logic [27:0] control_addr;
  logic [PcieBar4Bits-1:0] own_addr;
  logic [7:0] own_be, look_source, source, share_q;
  logic [31:0] accepted, taken;
  request_t request;
  answer_t answer;
  receive_event_t seen;
  logic write_valid;
  host_write_t write;

  velo_pcie_receive u_dut (
      .open_i         (1'b1),
      .restart_i      (1'b0),
      .rx_ready_o     (rx_ready),
      .store_look_o   (look),
      .store_source_o (look_source),
      .store_room_i   (room),
      .store_word_o   (word),
      .store_index_o  (index),
      .store_data_o   (data),
      .store_commit_o (commit),
      .store_addr_o   (addr),
      .store_words_o  (words),
      .dropped_o      (dropped),
      .stores_i       (accepted),
      .control_valid_o(control_valid),
      .control_addr_o (control_addr),
      .control_data_o (control_data),
      .own_write_o    (own_write),
      .own_addr_o     (own_addr),
      .own_data_o     (own_data),
      .own_be_o       (own_be),
      .request_valid_o(request_valid),
      .request_o      (request),
      .answer_o       (answer),
      .event_o        (seen),
      .*
  );

  // The table of shares, velo_pcie_shares.
  function automatic logic [7:0] share_of(logic [7:0] context_id);
    share_of = '0;
    for (int unsigned n = 0; n < 3; n++) if (who_i[n] == context_id) share_of = shares_i[n];
  endfunction
  assign source = window_source(64'(addr));
  always_ff @(posedge clk_i) if (look) share_q <= share_of(look_source);

  velo_pcie_stores #(
      .Lines(Lines)
  ) u_stores (
      .clk_i,
      .rst_ni,
      .source_i     (source),
      .share_i      (share_q),
      .room_o       (room),
      .word_i       (word),
      .index_i      (index),
      .data_i       (data),
      .commit_i     (commit),
      .addr_i       (AddrBits'(addr)),
      .words_i      (words),
      .write_valid_o(write_valid),
      .write_o      (write),
      .write_data_o (write_data),
      .write_ready_i,
      .accepted_o   (accepted),
      .taken_o      (taken)
  );

  // ----- the surroundings -----------------------------------------------------------------------

  logic past_q, stable_q;
  tlp_beat_t rx_q;
  bar_t bar_q;
  logic [15:0] id_q;
  logic [2:0][7:0] who_q, shares_q;
  logic [2:0] word_q;
  logic [5:0] bit_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) begin
    past_q     <= 1'b1;
    stable_q   <= rst_ni && rx_i.valid && !rx_ready;
    rx_q       <= rx_i;
    bar_q      <= rx_bar_i;
    who_q      <= who_i;
    shares_q   <= shares_i;
    id_q       <= id_i;
    word_q     <= word_i;
    bit_q      <= bit_i;
  end
  always_comb assume (past_q || !rst_ni);
  `VELO_ASSUME(OfferStands, !stable_q || (rx_i == rx_q && rx_bar_i == bar_q))
  `VELO_ASSUME(Constant, who_i == who_q && shares_i == shares_q && id_i == id_q &&
               word_i == word_q && bit_i == bit_q)
  `VELO_ASSUME(Different, who_i[0] != who_i[1] && who_i[0] != who_i[2] && who_i[1] != who_i[2])
  `VELO_ASSUME(NoMoreThanTheLines,
               32'(shares_i[0]) + 32'(shares_i[1]) + 32'(shares_i[2]) <= 32'(Lines))
  // Only a last beat may have half.
  `VELO_ASSUME(Keep, !rx_i.valid || rx_i.keep == 2'b11 || (rx_i.last && rx_i.keep == 2'b01))

  // The node's registers take a write in some time.
  logic [2:0] control_wait_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || !control_valid || control_ready_i) control_wait_q <= '0;
    else control_wait_q <= control_wait_q + 3'd1;
  end
  `VELO_ASSUME(RegistersTake, control_wait_q < 3'(ControlCycles) || control_ready_i)

  // ----- the packet at hand -----------------------------------------------------------------------

  // An own reading: the header's two beats, how many dwords came, and whether they are as many as promised.
  logic [1:0] in_q;  // beats of the header that are there
  logic ended_q, packet_end;
  logic [63:0] first_q, second_q;
  bar_t its_bar_q;
  logic [10:0] dwords_q, dwords;
  logic take;
  assign take = rx_i.valid && rx_ready;
  assign dwords = !(in_q == 2'd2 && !ended_q && take) ? dwords_q :
      dwords_q >= 11'd2046 ? '1 : dwords_q + 11'd1 + 11'(rx_i.keep[1]);
  assign packet_end = in_q == 2'd2 && (ended_q || (take && rx_i.last));
  always_ff @(posedge clk_i) begin
    if (!rst_ni) in_q <= 2'd0;
    else if (packet_end) in_q <= 2'd0;
    else if (take && in_q == 2'd0) in_q <= rx_i.last ? 2'd0 : 2'd1;
    else if (take && in_q == 2'd1) in_q <= 2'd2;
    if (take && in_q == 2'd0) first_q <= rx_i.data;
    if (take && in_q == 2'd1) begin
      second_q  <= rx_i.data;
      its_bar_q <= rx_bar_i;
      ended_q   <= rx_i.last;
      dwords_q  <= !first_q[29] && rx_i.keep[1] ? 11'd1 : 11'd0;
    end else if (in_q == 2'd2) begin
      dwords_q <= dwords;
    end
  end

  logic [11:0] promised;
  logic whole, is_write, is_read, is_completion, is_store, is_control, is_own;
  logic poisoned, eight_bytes;
  assign promised = (first_q[30] ? (first_q[9:0] == '0 ? 12'd1024 : 12'(first_q[9:0])) : 12'd0) +
      12'(first_q[15]);
  assign whole = packet_end && 12'(dwords) == promised;
  assign is_write = first_q[31:24] inside {8'h40, 8'h60};
  assign is_read = first_q[31:24] inside {8'h00, 8'h20};
  assign is_completion = first_q[31:24] inside {8'h0a, 8'h4a, 8'h2a, 8'h6a, 8'h0b, 8'h4b, 8'h2b,
      8'h6b};
  assign poisoned = first_q[14];
  assign eight_bytes = first_q[39:32] == 8'hff && !first_q[0] &&
      !(first_q[29] ? second_q[34] : second_q[2]);
  assign is_store = is_write && !poisoned && its_bar_q.bar2 && eight_bytes &&
      first_q[9:0] >= 10'd2 && first_q[9:0] <= 10'd16;
  assign is_control = is_write && !poisoned && its_bar_q.bar0 && eight_bytes &&
      first_q[9:0] == 10'd2;
  assign is_own = is_write && !poisoned && its_bar_q.bar4 &&
      (first_q[9:0] == 10'd1 ||
       (first_q[9:0] == 10'd2 && !(first_q[29] ? second_q[34] : second_q[2])));

  // ----- no packet waits for the network ----------------------------------------------------------

  logic [4:0] wait_q;
  logic waits, ended;
  // A packet of two beats is judged in the cycle after them.
  assign ended = in_q == 2'd2 && ended_q;
  assign waits = rx_i.valid && !rx_ready;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || !waits) wait_q <= '0;
    else if (wait_q != '1) wait_q <= wait_q + 5'd1;
  end
  `VELO_ASSERT(TakenAtOnce, !waits || ended || control_valid)
  `VELO_ASSERT(TakenBehindRegisters, !waits || wait_q <= 5'(ControlCycles))

  // ----- no context harms another -----------------------------------------------------------------

  // Whose the stores are that have come and not gone, by an own account.
  localparam int unsigned LineBits = $clog2(Lines);
  logic [Lines-1:0][7:0] owner_q;
  logic [Lines-1:0] is_there;
  logic [2:0][7:0] have;
  logic [7:0] its, its_share;
  logic full, full_q, gone_q;
  always_ff @(posedge clk_i) if (commit) owner_q[accepted[LineBits-1:0]] <= source;
  always_comb begin
    have = '0;
    its  = '0;
    for (int unsigned l = 0; l < Lines; l++) begin
      is_there[l] = {1'b0, LineBits'(LineBits'(l) - taken[LineBits-1:0])} <
          (LineBits + 1)'(accepted - taken);
      for (int unsigned n = 0; n < 3; n++) begin
        have[n] = have[n] + 8'(is_there[l] && owner_q[l] == who_i[n]);
      end
      its = its + 8'(is_there[l] && owner_q[l] == source);
    end
  end
  assign its_share = share_of(source);
  assign full = in_q == 2'd2 && its >= its_share;
  always_ff @(posedge clk_i) begin
    // Room that comes while the rest of it is swallowed is for the next one.
    if (!rst_ni || packet_end) full_q <= 1'b0;
    else if (full) full_q <= 1'b1;
    if (!rst_ni) gone_q <= 1'b0;
    else if (dropped) gone_q <= 1'b1;
  end
  `VELO_ASSERT(DroppedForItsOwn, !dropped || full || full_q)
  `VELO_ASSERT(TakenWithinItsShare, !commit || its < its_share)
  for (genvar n = 0; n < 3; n++) begin : gen_who
    `VELO_ASSERT(NeverMoreThanItsShare, have[n] <= shares_i[n])
  end

  // What velo_pcie_shares wants: of a packet's cycles one each, and a look before a drop.
  logic own_late_q, fresh_q;
  always_ff @(posedge clk_i) begin
    own_late_q <= rst_ni && own_write;
    if (!rst_ni || own_late_q || dropped) fresh_q <= 1'b0;
    else if (look) fresh_q <= 1'b1;
  end
  `VELO_ASSERT(OneAtATime, 32'(own_late_q) + 32'(look) + 32'(dropped) <= 32'd1)
  `VELO_ASSERT(LookedBeforeDropped, !dropped || fresh_q)
  `VELO_ASSERT(TieFresh, in_q != 2'd2 || (fresh_q && !own_late_q))
  `VELO_ASSERT(TieLate, !own_late_q || in_q == 2'd0)

  // ----- each packet becomes what it is -----------------------------------------------------------

  `VELO_ASSUME(OneBar, (rx_bar_i & (rx_bar_i - 3'd1)) == '0)

  `VELO_ASSERT(StoreOrDrop, (commit || dropped) == (whole && is_store))
  `VELO_ASSERT(NeverBoth, !(commit && dropped))
  `VELO_ASSERT(OwnIfOwn, own_write == (whole && is_own))
  `VELO_ASSERT(ReadIsAsked, !(whole && is_read) || request_valid == request_room_i)
  `VELO_ASSERT(AskedOnlyIfWhole, !request_valid || (whole && !is_write && !is_completion))
  `VELO_ASSERT(CompletionEnds, answer.end_valid == (whole && is_completion))
  `VELO_ASSERT(LockedIsNobodys, !(answer.end_valid && first_q[24]) || !answer.mine)
  `VELO_ASSERT(PoisonedIsSaid, seen.poisoned == (whole && is_write && poisoned))
  `VELO_ASSERT(MalformedIsSaid, !packet_end || whole || seen.malformed)
  `VELO_ASSERT(RefusedIsSaid, !(whole && is_write && !poisoned) || is_store || is_control ||
               is_own || seen.unsupported)
  // A store has all its words, each in its place: none was swallowed as there was no room.
  logic [9:0] beats_q;
  logic lost, lost_q;
  assign lost = in_q == 2'd2 && take && beats_q < {1'b0, first_q[9:1]} && !word;
  always_ff @(posedge clk_i) begin
    if (in_q != 2'd2) begin
      beats_q <= '0;
      lost_q  <= 1'b0;
    end else begin
      if (take && beats_q != '1) beats_q <= beats_q + 10'd1;
      if (lost) lost_q <= 1'b1;
    end
  end
  `VELO_ASSERT(CommittedWhole, !commit || !(lost || lost_q))
  `VELO_ASSERT(InItsPlace, !word || index == beats_q[2:0])

  logic control_due_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) control_due_q <= 1'b0;
    else if (whole && is_control) control_due_q <= 1'b1;
    else if (control_ready_i) control_due_q <= 1'b0;
  end
  `VELO_ASSERT(ControlIfControl, control_valid == control_due_q)

  // ----- how the two readings hang together, for the induction ------------------------------------

  `VELO_ASSERT(TieState, u_dut.state_q == (control_due_q ? 2'd3 : in_q))
  `VELO_ASSERT(TieFirst, in_q == 2'd0 || (u_dut.head_q == first_q && u_dut.served_q))
  `VELO_ASSERT(TieControl, !control_due_q || in_q == 2'd0)
  `VELO_ASSERT(TieSecond, in_q != 2'd2 || (u_dut.second_q == second_q && u_dut.bar_q == its_bar_q &&
               u_dut.ended_q == ended_q && u_dut.got_q == dwords_q && u_dut.served_q))
  `VELO_ASSERT(TieBeats, in_q != 2'd2 || (beats_q == u_dut.index_q &&
                                          (!(lost_q && is_store) || u_dut.dropping_q)))
  // KindStore, KindControl, KindOwn, KindRequest, KindAnswer, KindRefused are 1 to 6.
  `VELO_ASSERT(TieKind, in_q != 2'd2 || (
               (u_dut.kind_q == 3'd1) == is_store && (u_dut.kind_q == 3'd2) == is_control &&
               (u_dut.kind_q == 3'd3) == is_own && (u_dut.kind_q == 3'd5) == is_completion &&
               (u_dut.kind_q == 3'd6) == (is_write && !is_store && !is_control && !is_own) &&
               (u_dut.kind_q == 3'd4 || !is_read) &&
               (u_dut.kind_q != 3'd4 || !(is_write || is_completion))))
  `VELO_ASSERT(TieBar, in_q != 2'd2 || (its_bar_q & (its_bar_q - 3'd1)) == '0)
  `VELO_ASSERT(TieWaits, !waits || (ended ? wait_q == '0 : wait_q <= 5'(control_wait_q)))
  `VELO_ASSERT(TieDropping, !u_dut.dropping_q || (in_q == 2'd2 && is_store && full_q))
  `VELO_ASSERT(TieShare, in_q != 2'd2 || share_q == its_share)
  `VELO_ASSERT(TieKnown, 32'(have[0]) + 32'(have[1]) + 32'(have[2]) == $countones(is_there))
  for (genvar l = 0; l < Lines; l++) begin : gen_line
    `VELO_ASSERT(TieOwner, !is_there[l] || owner_q[l] == u_stores.source_q[l])
  end

  // ----- stores leave as they came ----------------------------------------------------------------

  if (Data) begin : gen_data
    // One bit of a word of each store, in the order in which they leave.
    logic full_q;
    logic [Lines:0] expected_q;  // the oldest lowest
    logic mine_q, given, leaves, at_word;
    logic [2:0] beat_q;
    logic [$clog2(Lines+1)-1:0] count_q;
    logic carry_q;  // that bit of an upper half
    logic now;
    logic [2:0] came_q;  // beats of the body
    // The word's bit in the beat that brings it.
    assign now = first_q[29] ? rx_i.data[bit_i] :
        bit_i[5] ? rx_i.data[bit_i[4:0]] : carry_q;
    always_ff @(posedge clk_i) begin
      if (take) carry_q <= rx_i.data[{1'b1, bit_i[4:0]}];
      if (in_q != 2'd2) came_q <= '0;
      else if (take && came_q != '1) came_q <= came_q + 3'd1;
      if (in_q == 2'd2 && take && came_q == word_i && !(came_q == 3'd7 && full_q)) mine_q <= now;
      if (in_q != 2'd2) full_q <= 1'b0;
      else if (take && came_q == 3'd7) full_q <= 1'b1;
    end
    assign given = in_q == 2'd2 && take && came_q == word_i && !(came_q == 3'd7 && full_q) ?
        now : mine_q;
    assign leaves = write_valid && write_ready_i;
    assign at_word = write_valid && beat_q == word_i;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        beat_q  <= '0;
        count_q <= '0;
      end else begin
        if (leaves) beat_q <= write.eop ? '0 : beat_q + 3'd1;
        count_q <= count_q + ($clog2(Lines + 1))'(commit) -
            ($clog2(Lines + 1))'(leaves && write.eop);
      end
      if (leaves && write.eop) expected_q <= expected_q >> 1;
      for (int unsigned l = 0; l <= Lines; l++) begin
        if (commit && 32'(count_q) - 32'(leaves && write.eop) == l) expected_q[l] <= given;
      end
    end
    `VELO_ASSERT(BitIsRight, !at_word || write_data[bit_i] == expected_q[0])
  end

  // ----- all of this happens ----------------------------------------------------------------------

  `VELO_COVER(DropHappens, dropped)
  `VELO_COVER(RegisterBehindDrop, control_valid && gone_q && taken == '0 && accepted == 32'(Lines))
  `VELO_COVER(OtherGoesOn, commit && gone_q && taken == '0 && its == 8'd1)
  `VELO_COVER(RoomAgain, commit && gone_q && its_share == 8'd1 && accepted == 32'd1)
  `VELO_COVER(LongestWait, waits && wait_q == 5'(ControlCycles))

endmodule
