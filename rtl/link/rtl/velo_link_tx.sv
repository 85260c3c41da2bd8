// SPDX-License-Identifier: Apache-2.0
//
// Sending half of a link port: makes each packet a frame, keeps it until it is acknowledged, repeats it when asked.
//
// There is no separate transmit path: every word goes into a ring (velo_link_ring) and is read from there, the first
// time as each later time. Three pointers follow each other round the ring: written, sent, acknowledged; a
// retransmission is "sent := acknowledged". Go back N, with a window of half the sequence numbers so that the
// receiver can tell an old frame from one that follows a lost one.
//
// Input: a packet is sop..eop without another in between, of at most FrameWords words. It may begin in any cycle in
// which `in_stop_o` was low at most StopMargin cycles ago, and then goes on to its end: there is room for it.
// `in_poison_i`, with its last word: it must not be acted upon; its frame ends with a CRC that says so. Latency 4
// cycles from first word to first word at the PHY, the start word goes ahead of it; frames follow each other without
// a gap. The four: into the ring, out of it, choice of the word to send, its CRC. The start word waits for the
// header's last word, since it has the CRC of it. Inside a long frame, status goes out every StatusWords words. The
// other side's status takes effect after two cycles; one right after another is ignored, since it will be sent again.
// In a cycle with `phy_pause_i` an idle word is chosen, also inside a frame, which is at the PHY two cycles later.
// While `up_i` is low only `init_word_i` is sent.
// `anew_i`: the other side was reset. It may or may not have delivered the frames that were sent whole and not
// acknowledged: they are given up (`in_doubt_o`), since to repeat them could double them. All others, also one that
// is half in the ring or was half sent, stay and are sent with numbers from 0 on. Here inside frames keep their
// numbers: those on the cable are less by `base_o`, which is to be added to `ack_i`.
// `drain_i`, while down: all frames go nowhere, while `unsent_o`; `anew_i` then gives them up.
// Errors: none of its own; a ring without room is a stop, a silent receiver is a timeout, which repeats everything
// unacknowledged (`timeout_o`, `replay_o`: one pulse each).
// Source: case-for-fpga, section 2, "link-level retransmission protocol".

`include "velo_assert.svh"

module velo_link_tx
  import velo_link_pkg::*;
  import velo_secded_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned FrameWords = 136,
    parameter int unsigned StatusWords = 32,
    parameter int unsigned RingWords = 512,
    parameter int unsigned SeqBits = 6,
    parameter int unsigned StopMargin = 4,
    parameter int unsigned TimeoutCycles = 1023,
    parameter bit Ecc = 1'b0  // check bits in the ring
) (
    input logic clk_i,
    input logic rst_ni,

    input logic up_i,
    input logic came_up_i,  // pulse: begin again with the first unacknowledged frame
    input logic anew_i,  // pulse, down, two cycles before `came_up_i` or more
    input logic drain_i,  // down, and no packet begins: frames go nowhere
    output logic unsent_o,  // some have not gone yet
    output logic [SeqBits-1:0] base_o,
    output logic [SeqBits-1:0] in_doubt_o,  // frames that `anew_i` gives up
    input logic [31:0] init_word_i,

    input  logic                 in_valid_i,
    input  logic                 in_sop_i,
    input  logic                 in_eop_i,
    input  logic                 in_poison_i,
    input  vc_t                  in_vc_i,
    input  logic [DataWidth-1:0] in_data_i,
    input  logic                 in_hold_i,    // stop, whatever room there is
    output logic                 in_stop_o,

    // The other side's status of this side's frames.
    input logic               ack_valid_i,
    input logic [SeqBits-1:0] ack_i,
    input logic               nak_i,

    // The status for this side's words; `status_sent_o` when its credits were sent. The echo is filled in
    // here.
    input  status_t status_i,
    output logic    status_sent_o,

    input  logic                  phy_pause_i,  // choose nothing but idle words
    output kind_e                 phy_kind_o,
    output logic  [DataWidth-1:0] phy_data_o,

    // For velo_link_units: a word of a frame was sent; its last one, for the first time.
    output logic sent_start_o,
    output logic sent_word_o,
    output logic sent_last_o,
    output logic sent_first_o,
    output vc_t  sent_vc_o,

    output logic acked_o,
    output logic replay_o,
    output logic timeout_o,
    output ecc_t ecc_o       // of the ring; see velo_link_ring
);

  localparam int unsigned AddrBits = $clog2(RingWords);
  localparam int unsigned Window = 2 ** (SeqBits - 1);
  localparam int unsigned StopWords = RingWords - 1 - FrameWords - 2 * StopMargin;
  localparam int unsigned TimerBits = $clog2(TimeoutCycles + 1);

  typedef logic [AddrBits:0] addr_t;  // one bit more than an address: full is not empty
  typedef logic [SeqBits-1:0] num_t;
  typedef logic [$clog2(FrameWords+1)-1:0] place_t;
  localparam bit Narrow = DataWidth == 32;
  localparam int unsigned HeadBits = Narrow ? 32 : 64;  // of the header in a word

  typedef enum logic [1:0] {
    StIdle,
    StData,
    StEnd
  } state_e;

  // ----- Writing ----------------------------------------------------------------------------------

  addr_t  written_q;
  num_t   write_seq_q;  // frame that the next word belongs to
  place_t place_q;  // words of it so far
  logic   frame_open;
  assign frame_open = place_q != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      written_q   <= '0;
      write_seq_q <= '0;
      place_q     <= '0;
    end else if (in_valid_i) begin
      written_q <= written_q + 1'b1;
      place_q   <= in_eop_i ? '0 : place_q + 1'b1;
      if (in_eop_i) write_seq_q <= write_seq_q + 1'b1;
    end
  end

  // Per frame: its channel. Where it ends, and the CRC of its header, are in the ring.
  vc_t frame_vc[2**SeqBits];
  ctl_crc_t head_crc, head_crc_q, sent_head_crc;
  logic in_head;

  assign in_head = !frame_open || (Narrow && place_q == place_t'(1));
  velo_crc #(
      .Width(CtlCrcWidth),
      .DataWidth(HeadBits),
      .Poly(CtlCrcPoly)
  ) u_head_crc (
      .crc_i (frame_open ? head_crc_q : '1),
      .data_i(in_data_i[HeadBits-1:0]),
      .crc_o (head_crc)
  );
  always_ff @(posedge clk_i) begin
    if (in_valid_i && !frame_open) frame_vc[write_seq_q] <= in_vc_i;
    if (in_valid_i) head_crc_q <= head_crc;
  end

  // ----- Acknowledgement and retransmission -------------------------------------------------------

  state_e state_q;
  addr_t acked_q, read_q;
  num_t acked_seq_q, send_seq_q, sent_seq_q;  // oldest kept; being sent; first never sent whole
  num_t ack_by, sent_by, send_by;
  logic restart, echo_q, timeout_q, sends;
  logic [TimerBits-1:0] timer_q;

  // What `anew_i` gives up goes as if it were acknowledged.
  num_t ack, base_q;
  logic anew_q;
  assign ack = anew_i ? sent_seq_q : ack_i;
  assign ack_by = ack - acked_seq_q;
  assign sent_by = sent_seq_q - acked_seq_q;
  assign send_by = send_seq_q - acked_seq_q;

  // First cycle: what does it say? Believed is only what can be true. Frames may go out meanwhile,
  // which makes it say less than it could; a restart would make it say what is not so.
  logic heard_q, known_q, newer_q, ahead_q, heard_nak_q;
  num_t heard_ack_q;
  addr_t heard_addr, heard_addr_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      heard_q <= 1'b0;
      anew_q  <= 1'b0;
    end else begin
      heard_q <= anew_i || (ack_valid_i && !heard_q && !restart);
      anew_q  <= anew_i;
    end
  end
  always_ff @(posedge clk_i) begin
    known_q      <= ack_by <= sent_by;
    newer_q      <= ack_by != '0;
    ahead_q      <= ack_by > send_by;
    heard_nak_q  <= nak_i;
    heard_ack_q  <= ack;
    heard_addr_q <= heard_addr;
  end

  // Second cycle. An acknowledgement that overtakes a repetition under way is left for its next
  // occurrence: the frame in hand must not lose its place in the ring.
  logic nak, ack_ok;
  assign nak = heard_q && known_q && !anew_q && heard_nak_q != echo_q;
  assign ack_ok = heard_q && known_q && newer_q && (!ahead_q || nak || state_q == StIdle);
  assign timeout_o = up_i && timeout_q;
  assign restart = nak || timeout_o || came_up_i || anew_q || (ack_ok && ahead_q);
  assign replay_o = (nak || timeout_o) && sent_seq_q != acked_seq_q;
  assign acked_o = ack_ok;
  assign base_o = base_q;
  assign in_doubt_o = sent_by;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      acked_q     <= '0;
      acked_seq_q <= '0;
      base_q      <= '0;
      echo_q      <= 1'b0;
      timer_q     <= '0;
      timeout_q   <= 1'b0;
    end else begin
      if (ack_ok) begin
        acked_q     <= heard_addr_q;
        acked_seq_q <= heard_ack_q;
      end
      if (anew_q) base_q <= heard_ack_q;
      if (anew_q) echo_q <= 1'b0;
      else if (nak) echo_q <= heard_nak_q;
      timeout_q <= 1'b0;
      if (!up_i || ack_ok || restart || sent_seq_q == acked_seq_q) timer_q <= '0;
      else begin
        timer_q   <= timer_q + 1'b1;
        timeout_q <= timer_q == TimerBits'(TimeoutCycles);
      end
    end
  end

  // Registered, for the switch's arbiters; what comes in right now counts already. Besides the packet that
  // is coming in there is room for the longest one, so that none has to stop once it has begun.
  addr_t used;
  num_t  kept_frames;
  assign used = written_q - acked_q;
  assign kept_frames = write_seq_q - acked_seq_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) in_stop_o <= 1'b0;
    else begin
      in_stop_o <= in_hold_i || used + addr_t'(in_valid_i) > addr_t'(StopWords) ||
          kept_frames + num_t'(in_valid_i && in_eop_i) >= num_t'(Window - StopMargin);
    end
  end

  // ----- Reading: one word of lookahead hides the block RAM's cycle ---------------------------------

  addr_t read_d;
  logic have_q, word_out, start_out, tell;
  logic word_last, word_poison;
  num_t word_seq_q;  // of the word behind the choice
  logic [DataWidth-1:0] word;
  assign word_out = state_q == StData && have_q && sends && !restart && !tell && !phy_pause_i;
  always_comb begin
    read_d = read_q;
    if (restart) read_d = ack_ok ? heard_addr_q : acked_q;
    else if (word_out) read_d = read_q + 1'b1;
  end

  velo_link_ring #(
      .DataWidth(DataWidth),
      .RingWords(RingWords),
      .SeqBits  (SeqBits),
      .Ecc      (Ecc)
  ) u_ring (
      .clk_i,
      .rst_ni,
      .we_i       (in_valid_i),
      .eop_i      (in_eop_i),
      .poison_i   (in_eop_i && in_poison_i),
      .data_i     (in_data_i),
      .write_i    (written_q),
      .write_seq_i(write_seq_q),
      .raddr_i    (read_d[AddrBits-1:0]),
      .read_i     (read_q),
      .send_seq_i (send_seq_q),
      .start_i    (start_out),
      .take_i     (word_out),
      .data_o     (word),
      .last_o     (word_last),
      .poison_o   (word_poison),
      .crc_we_i   (in_valid_i && in_head),
      .crc_i      (head_crc),
      .crc_seq_i  (word_seq_q),
      .crc_o      (sent_head_crc),
      .end_seq_i  (num_t'(ack - 1'b1)),
      .end_o      (heard_addr),
      .acked_i    (ack_ok),
      .acked_seq_i(heard_ack_q),
      .oldest_i   (acked_seq_q),
      .ecc_o
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      read_q <= '0;
      have_q <= 1'b0;
    end else begin
      read_q <= read_d;
      have_q <= read_d != written_q;
    end
  end

  // ----- Choosing the word to send ----------------------------------------------------------------

  logic next_exists, poison_q;
  assign sends = up_i || drain_i;
  assign unsent_o = state_q != StIdle || send_seq_q != write_seq_q || frame_open;
  assign next_exists = send_seq_q != write_seq_q ||
      (frame_open && (!Narrow || place_q != place_t'(1) || in_valid_i));
  assign start_out = state_q == StIdle && next_exists && sends && !restart && !phy_pause_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q    <= StIdle;
      send_seq_q <= '0;
      sent_seq_q <= '0;
      poison_q   <= 1'b0;
    end else if (restart || !sends) begin
      state_q <= StIdle;
      if (restart) send_seq_q <= ack_ok ? heard_ack_q : acked_seq_q;
    end else if (!phy_pause_i) begin
      unique case (state_q)
        StData:
        if (word_out) begin
          poison_q <= word_poison;
          if (word_last) begin
            state_q    <= StEnd;
            send_seq_q <= send_seq_q + 1'b1;
            // First time that it is sent whole?
            if (send_by == sent_by) sent_seq_q <= sent_seq_q + 1'b1;
          end
        end
        StEnd:   state_q <= StIdle;
        default: if (next_exists) state_q <= StData;
      endcase
    end
  end

  // For the count of units, a cycle later.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      sent_start_o <= 1'b0;
      sent_word_o  <= 1'b0;
      sent_last_o  <= 1'b0;
    end else begin
      sent_start_o <= start_out;
      sent_word_o  <= word_out;
      sent_last_o  <= word_out && word_last;
    end
  end
  always_ff @(posedge clk_i) begin
    sent_first_o <= send_by == sent_by;
    if (start_out) sent_vc_o <= frame_vc[send_seq_q];
  end

  // A start word has one half of the status, the other one the next time. A repetition begins with the one
  // that says so.
  logic half_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) half_q <= 1'b0;
    else if (restart) half_q <= 1'b0;
    else if (start_out) half_q <= !half_q;
  end

  start_t  start_word;
  idle_t   idle_word;
  status_t status;

  always_comb begin
    status = status_i;
    status.echo = echo_q;
    start_word = '{
        crc: '0,
        half: half_q ? {status.vc, status.freed} : {VcAck, status.ack, status.echo, status.nak},
        seq: seq_t'(num_t'(send_seq_q - base_q)),
        vc: frame_vc[send_seq_q]
    };
    idle_word = '{crc: '0, status: status, ctl: CtlIdle};
  end

  // `word_q` is what goes out, but for its CRC. An idle word stands for two cycles: its short CRC alone
  // would believe one in thousands of random words.
  typedef enum logic [2:0] {
    WordRaw,
    WordIdle,
    WordStart,
    WordData,
    WordEnd
  } word_e;

  word_e word_kind_d, word_kind_q;
  logic again_q, word_poison_q;
  logic [DataWidth-1:0] word_q;

  always_comb begin
    if (!up_i) word_kind_d = WordRaw;
    else if (start_out) word_kind_d = WordStart;
    else if (word_out) word_kind_d = WordData;
    else if (state_q == StEnd && !restart && !phy_pause_i) word_kind_d = WordEnd;
    else word_kind_d = WordIdle;
  end

  assign status_sent_o = (word_kind_d == WordStart && half_q) ||
      (word_kind_d == WordIdle && !again_q);

  // Status for the other side inside a long frame: an idle word, for its two cycles.
  localparam int unsigned SilentBits = $clog2(StatusWords + 1);
  logic [SilentBits-1:0] silent_q;
  logic tell_q;
  assign tell = silent_q == SilentBits'(StatusWords) || tell_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      silent_q <= '0;
      tell_q   <= 1'b0;
    end else begin
      tell_q <= tell && !tell_q && state_q == StData;
      if (!up_i || word_kind_d inside {WordStart, WordIdle}) silent_q <= '0;
      else if (!tell) silent_q <= silent_q + 1'b1;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      again_q     <= 1'b0;
      word_kind_q <= WordRaw;
      word_q      <= '0;  // a control word with a wrong CRC
    end else begin
      again_q     <= word_kind_d == WordIdle && !again_q;
      word_kind_q <= word_kind_d;
      unique case (word_kind_d)
        WordStart: word_q <= DataWidth'(start_word);
        WordData:  word_q <= word;
        WordIdle:  if (!again_q) word_q <= DataWidth'(idle_word);
        default:   word_q <= DataWidth'(init_word_i);
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    word_poison_q <= poison_q;
    word_seq_q    <= send_seq_q;
  end

  // ----- Its CRC ----------------------------------------------------------------------------------

  logic [31:0] crc_q, crc_next;
  ctl_crc_t idle_crc, start_crc;
  velo_link_ctl_crc u_idle_crc (
      .bits_i(word_q[31-CtlCrcWidth:0]),
      .crc_o (idle_crc)
  );
  velo_crc #(
      .Width(CtlCrcWidth),
      .DataWidth(32 - CtlCrcWidth),
      .Poly(CtlCrcPoly)
  ) u_start_crc (
      .crc_i (sent_head_crc),
      .data_i(word_q[31-CtlCrcWidth:0]),
      .crc_o (start_crc)
  );
  // The start word's own CRC is no part of the frame's; it goes in as zero.
  velo_crc #(
      .Width(32),
      .DataWidth(DataWidth),
      .Poly(32'h1EDC6F41)
  ) u_frame_crc (
      .crc_i (word_kind_q == WordStart ? 32'hFFFF_FFFF : crc_q),
      .data_i(word_q),
      .crc_o (crc_next)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      phy_kind_o <= KindCtl;
      phy_data_o <= '0;
    end else begin
      phy_kind_o <= KindCtl;
      phy_data_o <= word_q;
      unique case (word_kind_q)
        WordData: phy_kind_o <= KindData;
        WordStart: begin
          phy_kind_o <= KindStart;
          phy_data_o[31-:CtlCrcWidth] <= start_crc;
        end
        WordIdle: phy_data_o[31-:CtlCrcWidth] <= idle_crc;
        WordEnd: begin
          phy_kind_o <= KindEnd;
          phy_data_o <= DataWidth'(crc_q ^ {32{word_poison_q}});
        end
        default:  ;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (word_kind_q inside {WordStart, WordData}) crc_q <= crc_next;
  end

  `VELO_ASSERT_INIT(RingIsPowerOfTwo, RingWords == 2 ** AddrBits)
  `VELO_ASSERT_INIT(SeqFitsField, SeqBits <= SeqWidth && Window > StopMargin)
  `VELO_ASSERT_INIT(RingHoldsTwoFrames, RingWords > 2 * (FrameWords + StopMargin))
  `VELO_ASSUME(PacketsWhole, !in_valid_i || in_sop_i == !frame_open)
  `VELO_ASSUME(PacketsFitFrame, !in_valid_i || in_eop_i || place_q != place_t'(FrameWords - 1))
  `VELO_ASSERT(RingNeverOverflows, used <= addr_t'(RingWords))
  `VELO_ASSERT(WindowHolds, sent_by <= num_t'(Window) && send_by <= sent_by)
  `VELO_ASSERT(ReadsBehindWriter, addr_t'(read_q - acked_q) <= used)

endmodule
