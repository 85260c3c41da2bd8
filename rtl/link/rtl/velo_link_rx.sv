// SPDX-License-Identifier: Apache-2.0
//
// Receiving half of a link port: gives each packet to the switch once and in order, word by word as it
// comes.
//
// Nothing leaves here before the packet's first 64 bits, which it is routed by, are known to be right:
// the start word has a CRC of them. After that each word goes on when the next one comes, so that the last
// one goes with what the end word says: `out_eop_o`, and `out_poison_o` if the packet must not be acted
// upon. Either it came so, over a good link (it is in sequence, and was poisoned further up); or it was
// disturbed on this one, or the link went down inside it: then `out_again_o` says that this copy was cut
// off and the whole packet comes once more. Such a copy has at least two words. With a first word that is not
// the last one, `out_again_o` says that this is what was cut off, with the same first 64 bits and channel. A
// CRC of 12 bits now and then believes what is not so. Then the first 64 bits differ, and what the switch made
// of the copy that was cut off does not hold for the packet. The output has no ready: see velo_switch_input for why
// there is room.
//
// `anew_i`: the other side was reset. If a copy was cut off, its packet will not come once more. The switch
// keeps a place and credits for it, so two words come instead: the packet's first 64 bits, poisoned.
//
// Latency 2 cycles from a first word to `out_*`: on a 32-bit path the second word completes the header, on
// a wider one the next word tells whether the first was the last.
//
// `out_*` has the packet's channel on every word. `ack_valid_o`, `freed_valid_o`: for a cycle, this part of
// `status_o` is what the other side reports. Errors: `error_o` pulses once for each disturbance
// (bad CRC, word out of place); each makes the other side repeat, by way of `nak_o`.
// Source: case-for-fpga, section 2, "automatically re-transmits faulty flits detected by a CRC".

`include "velo_assert.svh"

module velo_link_rx
  import velo_link_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned FrameWords = 136,
    parameter int unsigned SeqBits = 6
) (
    input logic clk_i,
    input logic rst_ni,
    input logic up_i,
    input logic came_up_i,  // what was sent before is lost
    input logic anew_i,  // pulse, while down: nothing of what was sent before is repeated
    input logic fresh_i,  // nothing has come in this session: the next frame has number 0
    input seq_t ack_base_i,  // see velo_link_tx, `base_o`; `status_o.ack` has it in it

    input kind_e                 phy_kind_i,
    input logic  [DataWidth-1:0] phy_data_i,

    output logic                 out_valid_o,
    output logic                 out_sop_o,
    output logic                 out_eop_o,
    output logic                 out_poison_o,
    output logic                 out_again_o,
    output vc_t                  out_vc_o,
    output logic [DataWidth-1:0] out_data_o,

    output logic    ack_valid_o,
    output logic    freed_valid_o,
    output status_t status_o,
    output logic    idle_o,  // a CtlIdle word came, up or not
    output logic    init_valid_o,
    output init_t   init_o,

    // For this side's own words.
    output logic [SeqBits-1:0] expected_o,
    output logic               nak_o,

    output logic accepted_o,
    output logic error_o
);

  typedef logic [SeqBits-1:0] num_t;
  typedef logic [$clog2(FrameWords+1)-1:0] place_t;
  localparam bit Narrow = DataWidth == 32;
  localparam int unsigned HeadBits = Narrow ? 32 : 64;  // of the header in a word
  localparam int unsigned HeadWords = Narrow ? 2 : 1;

  // ----- What is this word? -----------------------------------------------------------------------

  logic is_data, is_end, is_start, is_idle, is_init, is_wrong;
  ctl_crc_t ctl_crc;
  logic ctl_ok, narrow_word;  // above 32 bits it is zero

  velo_link_ctl_crc u_ctl_crc (
      .bits_i(phy_data_i[31-CtlCrcWidth:0]),
      .crc_o (ctl_crc)
  );

  assign ctl_ok = ctl_crc == phy_data_i[31-:CtlCrcWidth] && narrow_word;
  assign is_data = phy_kind_i == KindData;
  assign is_end = phy_kind_i == KindEnd;
  assign narrow_word = phy_data_i == DataWidth'(phy_data_i[31:0]);
  assign is_start = phy_kind_i == KindStart && narrow_word;
  assign is_idle = phy_kind_i == KindCtl && phy_data_i[0] == CtlIdle && ctl_ok;
  assign is_init = phy_kind_i == KindCtl && phy_data_i[0] == CtlInit && ctl_ok;
  assign is_wrong = phy_kind_i inside {KindCtl, KindStart} && !is_start && !is_idle && !is_init;

  // A control word with a CRC of its own counts when it comes twice running: see velo_link_tx.
  logic before_ok_q, again;
  logic [31:0] before_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) before_ok_q <= 1'b0;
    else before_ok_q <= is_idle || is_init;
  end
  always_ff @(posedge clk_i) begin
    before_q <= phy_data_i[31:0];
  end
  assign again = before_ok_q && before_q == phy_data_i[31:0];

  // ----- The frame ----------------------------------------------------------------------------------

  logic in_frame_q, lost_q;  // lost: a disturbance has been counted and no start seen since
  logic   stale_q;  // an idle word inside the frame said newer things than its start
  start_t start_q;
  logic [31:0] crc_q, crc_next;
  place_t place_q;
  logic full_q;  // as many words as the longest frame has
  logic [HeadWords-1:0] head_at_q;  // one-hot: the header's word that comes next; none behind it
  logic crc_ok, poisoned, proven, expected, repeated, take_word, commit, disturbed, head_ok;
  num_t seq, behind, expected_q;
  logic [DataWidth-1:0] crc_word;

  // The start word's own CRC counts as zero.
  always_comb begin
    crc_word = phy_data_i;
    if (is_start) crc_word[31-:CtlCrcWidth] = '0;
  end
  velo_crc #(
      .Width(32),
      .DataWidth(DataWidth),
      .Poly(32'h1EDC6F41)
  ) u_frame_crc (
      .crc_i (is_start ? 32'hFFFF_FFFF : crc_q),
      .data_i(crc_word),
      .crc_o (crc_next)
  );

  // The header's CRC: of its words, and of the start word, which comes before them but goes in last. A CRC is the sum
  // of what each word gives alone, with zeros for the others. So the sum of all but the last word is ready before
  // that one comes, and is what it must give (`due_q`).
  localparam int unsigned SentBits = 32 - CtlCrcWidth;  // of the start word
  localparam int unsigned ProvenBits = 64 + SentBits;
  ctl_crc_t due_q, start_gives, first_gives, last_gives;
  velo_crc #(
      .Width(CtlCrcWidth),
      .DataWidth(ProvenBits),
      .Poly(CtlCrcPoly)
  ) u_start_crc (
      .crc_i ('1),
      .data_i({64'd0, phy_data_i[SentBits-1:0]}),
      .crc_o (start_gives)
  );
  velo_crc #(
      .Width(CtlCrcWidth),
      .DataWidth(ProvenBits),
      .Poly(CtlCrcPoly)
  ) u_last_crc (
      .crc_i ('0),
      .data_i({64'(phy_data_i[HeadBits-1:0]), SentBits'(0)}),
      .crc_o (last_gives)
  );
  if (Narrow) begin : gen_first
    velo_crc #(
        .Width(CtlCrcWidth),
        .DataWidth(ProvenBits),
        .Poly(CtlCrcPoly)
    ) u_first_crc (
        .crc_i ('0),
        .data_i({phy_data_i[31:0], 32'd0, SentBits'(0)}),
        .crc_o (first_gives)
    );
  end else begin : gen_no_first
    assign first_gives = '0;
  end

  assign poisoned = phy_data_i == DataWidth'(crc_q ^ 32'hFFFF_FFFF);
  assign crc_ok = phy_data_i == DataWidth'(crc_q) || poisoned;
  assign proven = is_end && in_frame_q && crc_ok && !head_at_q[0];
  assign seq = start_q.seq[SeqBits-1:0];
  assign behind = expected_q - seq;
  assign expected = behind == '0;
  assign repeated = behind != '0 && behind <= num_t'(2 ** (SeqBits - 1));
  assign take_word = is_data && in_frame_q && !full_q;
  assign head_ok = last_gives == due_q;
  assign commit = proven && expected && up_i;

  // Anything that a frame could have been lost in. Saying it once too often costs a repetition,
  // saying it too seldom a timeout.
  assign disturbed = up_i && (is_wrong || (is_data && !take_word) || (is_end && !proven) ||
      (take_word && head_at_q[HeadWords-1] && !head_ok) ||
      (proven && !expected && !repeated) || (is_start && in_frame_q));

  always_ff @(posedge clk_i) begin
    if (is_start) begin
      start_q   <= start_t'(phy_data_i[31:0]);
      place_q   <= '0;
      full_q    <= 1'b0;
      head_at_q <= HeadWords'(1);
      due_q     <= start_gives ^ phy_data_i[31-:CtlCrcWidth];
    end else if (take_word) begin
      place_q   <= place_q + 1'b1;
      full_q    <= place_q == place_t'(FrameWords - 1);
      head_at_q <= HeadWords'({head_at_q, 1'b0});
      due_q     <= due_q ^ first_gives;
    end
    if (is_start || take_word) crc_q <= crc_next;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      in_frame_q <= 1'b0;
      lost_q     <= 1'b0;
      stale_q    <= 1'b0;
    end else if (!up_i) begin
      in_frame_q <= 1'b0;
      lost_q     <= 1'b0;
      stale_q    <= 1'b0;
    end else begin
      if (is_start) stale_q <= 1'b0;
      else if (is_idle && again) stale_q <= 1'b1;
      if (is_start) in_frame_q <= 1'b1;
      else if (is_end || disturbed) in_frame_q <= 1'b0;
      if (disturbed && !is_start) lost_q <= 1'b1;
      else if (is_start) lost_q <= 1'b0;
    end
  end

  assign error_o = disturbed && !lost_q;

  // ----- Asking for what is missing -----------------------------------------------------------------

  // `nak` may change again only after the other side has obeyed its last change (it echoes it): a
  // repetition that is still to come will cover this loss too. Exactly one repetition for each loss,
  // whatever the round trip.
  logic nak_q, echo_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      expected_q <= '0;
      nak_q      <= 1'b0;
      echo_q     <= 1'b0;
    end else begin
      if (commit) expected_q <= expected_q + 1'b1;
      if (ack_valid_o) echo_q <= status_o.echo;
      if ((disturbed || came_up_i) && echo_q == nak_q) nak_q <= !nak_q;
      if (fresh_i) begin
        expected_q <= '0;
        nak_q      <= 1'b0;
        echo_q     <= 1'b0;
      end
    end
  end
  assign expected_o = expected_q;
  assign nak_o = nak_q;
  assign accepted_o = commit;

  // ----- What the other side says -------------------------------------------------------------------

  idle_t   idle_word;
  status_t said;
  logic told_idle, told_start;
  assign idle_word  = idle_t'(phy_data_i[31:0]);
  assign told_idle  = up_i && is_idle && again;
  assign told_start = up_i && proven && !stale_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ack_valid_o   <= 1'b0;
      freed_valid_o <= 1'b0;
      idle_o        <= 1'b0;
      init_valid_o  <= 1'b0;
    end else begin
      ack_valid_o   <= told_idle || (told_start && start_q.half.vc == VcAck);
      freed_valid_o <= told_idle || (told_start && start_q.half.vc != VcAck);
      idle_o        <= is_idle && again;
      init_valid_o  <= is_init && again;
    end
  end
  always_comb begin
    said = idle_word.status;
    if (!is_idle) begin
      {said.ack, said.echo, said.nak} = start_q.half.value;
      {said.vc, said.freed} = start_q.half;
    end
    said.ack = said.ack + ack_base_i;
  end
  always_ff @(posedge clk_i) begin
    status_o <= said;
    init_o   <= init_t'(phy_data_i[31:0]);
  end

  // ----- On to the switch -----------------------------------------------------------------------------

  // The last word waits in `word_q` for what comes after it. `passing_q`: the frame's header is right, it is
  // the expected one, and its words go on. `first_q`: none has gone yet.
  logic passing_q, first_q, begins, goes_on, ends, cut_off;
  logic [DataWidth-1:0] word_q;

  assign begins = take_word && head_at_q[HeadWords-1] && head_ok && expected && up_i;
  assign goes_on = take_word && up_i && (passing_q || (Narrow && begins));
  // On a narrow path a frame may end before there is a whole header; its CRC is enough then.
  assign ends = commit;
  assign cut_off = passing_q && !first_q && (disturbed || !up_i);

  // Of the copy that was cut off: what stands for its repetition if that never comes. It is taken down a cycle after
  // the first word has left, which is before a copy can be known as cut off.
  logic cut_q, stub_valid_q, stub_last_q, stub, leaves, same;
  vc_t cut_vc_q;
  logic [63:0] head, left_head, cut_head_q;
  if (Narrow) begin : gen_narrow_head
    assign head = {phy_data_i, word_q};
    assign left_head = {word_q, out_data_o};
  end else begin : gen_wide_head
    assign head = word_q[63:0];
    assign left_head = out_data_o[63:0];
  end
  assign leaves = first_q && (goes_on || ends);
  assign same   = start_q.vc == cut_vc_q && head == cut_head_q;
  assign stub   = stub_valid_q || stub_last_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      cut_q        <= 1'b0;
      stub_valid_q <= 1'b0;
      stub_last_q  <= 1'b0;
    end else begin
      if (cut_off) cut_q <= 1'b1;
      else if (anew_i || leaves) cut_q <= 1'b0;
      stub_valid_q <= anew_i && cut_q;
      stub_last_q  <= stub_valid_q;
    end
  end
  always_ff @(posedge clk_i) begin
    if (out_valid_o && out_sop_o) begin
      cut_vc_q   <= out_vc_o;
      cut_head_q <= left_head;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      passing_q   <= 1'b0;
      first_q     <= 1'b0;
      out_valid_o <= 1'b0;
    end else begin
      if (is_start || is_end || disturbed || !up_i) passing_q <= 1'b0;
      else if (begins) passing_q <= 1'b1;
      if (is_start) first_q <= 1'b1;
      else if (goes_on) first_q <= 1'b0;
      out_valid_o <= goes_on || ends || cut_off || stub;
    end
  end
  always_ff @(posedge clk_i) begin
    if (take_word) word_q <= phy_data_i;
    out_sop_o <= stub ? stub_valid_q : first_q;
    out_eop_o <= ends || cut_off || stub_last_q;
    out_poison_o <= cut_off || poisoned || stub;
    out_again_o <= cut_off || stub_valid_q || (cut_q && leaves && same && !ends);
    out_vc_o <= stub ? cut_vc_q : start_q.vc;
    if (!stub) out_data_o <= word_q;
    else out_data_o <= DataWidth'(Narrow && stub_last_q ? {32'b0, cut_head_q[63:32]} : cut_head_q);
  end

  logic unused;
  assign unused = &{1'b0, start_q.seq, start_q.crc, idle_word.crc, idle_word.ctl};

  `VELO_ASSERT(StubStandsAlone, !stub || !(goes_on || ends || cut_off))
  `VELO_ASSERT_INIT(SeqFitsField, SeqBits >= 2 && SeqBits <= SeqWidth)

  logic open_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) open_q <= 1'b0;
    else if (out_valid_o) open_q <= !out_eop_o;
  end
  `VELO_ASSERT(PacketsWhole, !out_valid_o || out_sop_o == !open_q)
  `VELO_ASSERT(AgainIsPoisoned,
               !(out_valid_o && out_again_o && out_eop_o) || (out_poison_o && open_q))

endmodule
