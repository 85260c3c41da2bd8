// SPDX-License-Identifier: Apache-2.0
//
// Receiving half of a link port: checks frames, gives each word to the switch exactly once and in
// order.
//
// A frame is held until its CRC is known; nothing wrong ever leaves here, so no later stage has to
// know of broken packets. Since a frame is short, that is no store-and-forward of packets: the first
// frame of a long packet is on its way while the others arrive. Cost: a frame's length in latency.
//
// The frame goes into a FIFO whose write pointer is a guess until the end word proves the frame;
// otherwise the pointer falls back. The output has no ready: credits guarantee that the switch has
// room. It is emptied faster than frames come, so the FIFO cannot overflow.
//
// `out_*` has the packet's channel on every word. `status_o` is valid for the cycle of
// `status_valid_o`: what the other side reports. Errors: `error_o` pulses once for each disturbance
// (bad CRC, word out of place); each makes the other side repeat, by way of `nak_o`.
// Source: case-for-fpga, section 2, "automatically re-transmits faulty flits detected by a CRC".

`include "velo_assert.svh"

module velo_link_rx
  import velo_link_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned FrameWords = 20,
    parameter int unsigned SeqBits = 6
) (
    input logic clk_i,
    input logic rst_ni,
    input logic up_i,
    input logic came_up_i, // what was sent before is lost

    input kind_e                 phy_kind_i,
    input logic  [DataWidth-1:0] phy_data_i,

    output logic                 out_valid_o,
    output logic                 out_sop_o,
    output logic                 out_eop_o,
    output vc_t                  out_vc_o,
    output logic [DataWidth-1:0] out_data_o,

    output logic    status_valid_o,
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

  localparam int unsigned FifoWords = 2 ** $clog2(FrameWords + 8);
  localparam int unsigned AddrBits = $clog2(FifoWords);

  typedef logic [AddrBits:0] addr_t;
  typedef logic [SeqBits-1:0] num_t;

  // ----- What is this word? -----------------------------------------------------------------------

  logic is_data, is_end, is_start, is_idle, is_init, is_wrong;
  ctl_e ctl;
  ctl_crc_t ctl_crc;
  logic ctl_ok;

  velo_link_ctl_crc u_ctl_crc (
      .bits_i(phy_data_i[31-CtlCrcWidth:0]),
      .crc_o (ctl_crc)
  );

  assign ctl_ok = ctl_crc == phy_data_i[31-:CtlCrcWidth] &&
      phy_data_i == DataWidth'(phy_data_i[31:0]);
  assign ctl = ctl_e'(phy_data_i[1:0]);
  assign is_data = phy_kind_i == KindData;
  assign is_end = phy_kind_i inside {KindEnd, KindLast};
  assign is_start = phy_kind_i == KindCtl && ctl == CtlStart;
  assign is_idle = phy_kind_i == KindCtl && !phy_data_i[0] && ctl_ok;
  assign is_init = phy_kind_i == KindCtl && ctl == CtlInit && ctl_ok;
  assign is_wrong = phy_kind_i == KindCtl && !is_start && !is_idle && !is_init;

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
  logic [$clog2(FrameWords+1)-1:0] place_q;
  logic crc_ok, proven, expected, repeated, take_word, commit, disturbed;
  num_t seq, behind, expected_q;

  velo_crc #(
      .Width(32),
      .DataWidth(DataWidth),
      .Poly(32'h1EDC6F41)
  ) u_frame_crc (
      .crc_i (is_start ? 32'hFFFF_FFFF : crc_q),
      .data_i(phy_data_i),
      .crc_o (crc_next)
  );

  assign crc_ok = phy_data_i == DataWidth'(crc_q ^ {32{phy_kind_i == KindLast}});
  assign proven = is_end && in_frame_q && crc_ok && place_q != '0;
  assign seq = start_q.seq[SeqBits-1:0];
  assign behind = expected_q - seq;
  assign expected = behind == '0;
  assign repeated = behind != '0 && behind <= num_t'(2 ** (SeqBits - 1));
  assign take_word = is_data && in_frame_q && place_q != ($clog2(FrameWords + 1))'(FrameWords);
  assign commit = proven && expected && up_i;

  // Anything that a frame could have been lost in. Saying it once too often costs a repetition,
  // saying it too seldom a timeout.
  assign disturbed = up_i && (is_wrong || (is_data && !take_word) || (is_end && !proven) ||
      (proven && !expected && !repeated) || (is_start && in_frame_q));

  always_ff @(posedge clk_i) begin
    if (is_start) begin
      start_q <= start_t'(phy_data_i[31:0]);
      place_q <= '0;
    end else if (take_word) begin
      place_q <= place_q + 1'b1;
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
      if (status_valid_o) echo_q <= status_o.echo;
      if ((disturbed || came_up_i) && echo_q == nak_q) nak_q <= !nak_q;
    end
  end
  assign expected_o = expected_q;
  assign nak_o = nak_q;
  assign accepted_o = commit;

  // ----- What the other side says -------------------------------------------------------------------

  idle_t idle_word;
  assign idle_word = idle_t'(phy_data_i[31:0]);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      status_valid_o <= 1'b0;
      idle_o         <= 1'b0;
      init_valid_o   <= 1'b0;
    end else begin
      status_valid_o <= up_i && ((is_idle && again) || (proven && !stale_q));
      idle_o         <= is_idle && again;
      init_valid_o   <= is_init && again;
    end
  end
  always_ff @(posedge clk_i) begin
    status_o <= is_idle ? idle_word.status : start_q.status;
    init_o   <= init_t'(phy_data_i[31:0]);
  end

  // ----- Holding the frame --------------------------------------------------------------------------

  // The last word waits in `word_q` until the next word tells whether it ends the packet.
  logic [DataWidth+VcWidth+1:0] mem[FifoWords];
  addr_t guess_q, proven_q, read_q;
  logic have_q, first_q;  // a word waits; it is the frame's first
  logic [DataWidth-1:0] word_q;
  logic write;

  assign write = have_q && (take_word || commit);

  always_ff @(posedge clk_i) begin
    if (write) begin
      mem[guess_q[AddrBits-1:0]] <= {
        first_q && start_q.sop, commit && phy_kind_i == KindLast, start_q.vc, word_q
      };
    end
    if (take_word) word_q <= phy_data_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      guess_q  <= '0;
      proven_q <= '0;
      read_q   <= '0;
      have_q   <= 1'b0;
      first_q  <= 1'b0;
    end else begin
      if (commit) proven_q <= guess_q + 1'b1;
      if (is_start) guess_q <= proven_q;
      else if (write) guess_q <= guess_q + 1'b1;
      have_q  <= !is_start && (have_q || take_word);
      first_q <= !have_q || (first_q && !take_word);
      if (out_valid_o) read_q <= read_q + 1'b1;
    end
  end

  assign out_valid_o = read_q != proven_q;
  assign {out_sop_o, out_eop_o, out_vc_o, out_data_o} = mem[read_q[AddrBits-1:0]];

  logic unused;
  assign unused = &{1'b0, start_q.reserved, start_q.ctl, start_q.seq, idle_word.crc, idle_word.ctl};

  `VELO_ASSERT_INIT(SeqFitsField, SeqBits >= 2 && SeqBits <= SeqWidth)
  `VELO_ASSERT(FifoNeverOverflows, addr_t'(guess_q - read_q) <= addr_t'(FifoWords))
  `VELO_ASSERT(OnlyProvenLeaves, addr_t'(proven_q - read_q) <= addr_t'(guess_q - read_q))

endmodule
