// SPDX-License-Identifier: Apache-2.0
//
// The ring of a link's transmitter: the words of all frames that are not acknowledged, in block RAM, and of each
// frame where it ends and its header's CRC.
//
// `we_i`: the next word of frame `write_seq_i`. `raddr_i`: the word to show from the next cycle on; `read_i` is the
// address of the one that is shown, of frame `send_seq_i`: `data_o`, whether it is the frame's last one, and, with
// that, whether the frame's packet is poisoned. `take_i`: it is sent; `start_i`, the cycle before the frame's first
// word: the start word is. In the same cycle `end_o`: where frame `end_seq_i` ends; `crc_o`: the CRC of the header of
// frame `crc_seq_i`, whose start word was sent in the cycle before.
//
// With `Ecc` the words are protected (velo_ram). In the place of a word that cannot be read VoidNibble is sent, and
// the packet ends poisoned. The start word's CRC is of the packet's first words as they were written. So if one of
// these is lost the receiver asks for the frame once more; from then on the frame is sent as a void one, all of its
// words VoidNibble, with the CRC of those. Such a packet leads nowhere: the switch that it comes to drops it, and it
// is counted only here. One frame is remembered as void, until it is acknowledged (`acked_i`, `acked_seq_i`); if
// more are, the oldest, so each gets its turn.
// Errors: `ecc_o` pulses for each word that is sent.

module velo_link_ring
  import velo_link_pkg::*;
  import velo_secded_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned RingWords = 512,
    parameter int unsigned SeqBits = 6,
    parameter bit Ecc = 1'b0,
    localparam int unsigned AddrBits = $clog2(RingWords)
) (
    input logic clk_i,
    input logic rst_ni,

    input logic                 we_i,
    input logic                 eop_i,
    input logic                 poison_i,
    input logic [DataWidth-1:0] data_i,
    input logic [   AddrBits:0] write_i,     // address; one bit more than the memory has
    input logic [  SeqBits-1:0] write_seq_i,

    input  logic [ AddrBits-1:0] raddr_i,
    input  logic [   AddrBits:0] read_i,
    input  logic [  SeqBits-1:0] send_seq_i,
    input  logic                 start_i,
    input  logic                 take_i,
    output logic [DataWidth-1:0] data_o,
    output logic                 last_o,
    output logic                 poison_o,

    input  logic                   crc_we_i,   // of frame `write_seq_i`
    input  ctl_crc_t               crc_i,
    input  logic     [SeqBits-1:0] crc_seq_i,
    output ctl_crc_t               crc_o,

    input  logic [SeqBits-1:0] end_seq_i,
    output logic [ AddrBits:0] end_o,

    input logic acked_i,
    input logic [SeqBits-1:0] acked_seq_i,  // oldest that is not acknowledged, from now on
    input logic [SeqBits-1:0] oldest_i,  // and now

    output ecc_t ecc_o
);

  typedef logic [AddrBits:0] addr_t;
  typedef logic [SeqBits-1:0] num_t;

  ecc_t word_ecc;
  logic last, poison;
  logic [DataWidth-1:0] data;
  velo_ram #(
      .Width(DataWidth + 2),
      .Depth(RingWords),
      .Ecc  (Ecc)
  ) u_ram (
      .clk_i,
      .we_i       (we_i),
      .waddr_i    (write_i[AddrBits-1:0]),
      .wdata_i    ({poison_i, eop_i, data_i}),
      .raddr_i    (raddr_i),
      .rdata_o    ({poison, last, data}),
      .corrected_o(word_ecc.corrected),
      .broken_o   (word_ecc.broken)
  );

  addr_t frame_end[2**SeqBits];
  always_ff @(posedge clk_i) if (we_i) frame_end[write_seq_i] <= write_i + 1'b1;
  assign end_o = frame_end[end_seq_i];

  ctl_crc_t frame_crc[2**SeqBits];
  always_ff @(posedge clk_i) if (crc_we_i) frame_crc[write_seq_i] <= crc_i;

  if (Ecc) begin : gen_ecc
    localparam int unsigned HeadWords = DataWidth == 32 ? 2 : 1;
    logic broken, spoiled_q, head, lost_head, ends_here, void_q, known, known_q, older;
    logic [1:0] place_q;  // words of the frame so far, at most HeadWords
    num_t lost_q;

    ctl_crc_t void_crc;  // a constant
    velo_crc #(
        .Width(CtlCrcWidth),
        .DataWidth(64),
        .Poly(CtlCrcPoly)
    ) u_void_crc (
        .crc_i ('1),
        .data_i({16{VoidNibble}}),
        .crc_o (void_crc)
    );
    assign crc_o = void_q ? void_crc : frame_crc[crc_seq_i];

    // The end of a frame that is still being written has not been read.
    assign broken = word_ecc.broken;
    assign ends_here = send_seq_i != write_seq_i && frame_end[send_seq_i] == read_i + 1'b1;
    assign last_o = broken ? ends_here : last;
    assign data_o = broken || void_q ? {DataWidth / 4{VoidNibble}} : data;
    assign poison_o = poison || broken || spoiled_q;

    assign head = place_q != 2'(HeadWords);
    assign known = known_q && lost_q == send_seq_i;
    assign lost_head = take_i && broken && head && !void_q;
    assign older = num_t'(send_seq_i - oldest_i) < num_t'(lost_q - oldest_i);

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        known_q <= 1'b0;
        ecc_o   <= '0;
      end else begin
        // Acknowledged is what is behind the oldest.
        if (acked_i && num_t'(lost_q - acked_seq_i) >= num_t'(2 ** (SeqBits - 1))) known_q <= 1'b0;
        else if (lost_head) known_q <= 1'b1;
        ecc_o <= take_i ? word_ecc : '0;
      end
    end
    always_ff @(posedge clk_i) begin
      if (lost_head && (!known_q || older)) lost_q <= send_seq_i;
      if (start_i) begin
        void_q    <= known;
        spoiled_q <= known;
        place_q   <= '0;
      end else if (take_i) begin
        spoiled_q <= spoiled_q || broken;
        if (head) place_q <= place_q + 1'b1;
      end
    end
  end else begin : gen_plain
    logic unused;
    assign unused = ^{rst_ni, read_i, send_seq_i, start_i, take_i, acked_i, acked_seq_i, oldest_i,
                      word_ecc};
    assign data_o = data;
    assign last_o = last;
    assign poison_o = poison;
    assign crc_o = frame_crc[crc_seq_i];
    assign ecc_o = '0;
  end

endmodule
