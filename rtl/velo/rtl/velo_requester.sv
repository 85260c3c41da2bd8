// SPDX-License-Identifier: Apache-2.0
//
// VELO requester: turns a posted write of the host into a network packet.
//
// Source: VELO paper, section 3, "Context minimization" (the address carries the context), "Atomic
// PIO message triggering" and "Multi-threading support through statelessness"; section 4.
//
// A write is a line (a header word and up to 56 bytes), or a fragment of one. The address names
// target, length of the whole line and offset in it, so that nothing has to be remembered about a
// sender: the unit's only state is that of the write it is in the middle of.
//   * A whole line becomes one packet: the line's header word is replaced by the packet header,
//     which carries its tag and length; the payload follows unchanged. On a path of 128 bits the
//     packet header has a beat of its own, so the payload moves down by one word.
//   * A fragment becomes one packet that carries the line's bytes as they are, marked `frag`, its
//     place in the line in the tag; the receiver's software puts the line together.
// Cut-through: the packet's first beat leaves one cycle after the write's first beat came, and
// packets follow each other without a gap.
//
// Write side (valid/ready): `write_target_i`, `write_source_i` and `write_len_bytes_i` hold from the
// first to the last beat; a write has exactly `write_len_bytes_i` bytes, rounded up to whole beats.
// Network side (valid/ready): one packet after the other, registered; `net_valid_o` never drops but for
// the watchdog, which takes back a packet's first beat only.
//
// Refused, each swallowed whole without delaying the next write, and reported by a pulse on
// `error_valid_o` with the code and the source context:
//   ErrorMisaligned  address or length not in whole 64-bit words, or nothing to write;
//   ErrorOversize    longer than a line, reaching past the line's end, or the header word's length
//                    is not that of the payload;
//   ErrorMalformed   the header word is not that of a message (valid = 1, all else below the tag 0).
//
// Watchdog: if the network does not take a packet's first beat for `watchdog_cycles_i` (a cable is
// pulled, a receiver has stopped), the packet is dropped whole, what is left of its write is swallowed,
// and `error_valid_o` pulses with ErrorNetwork, beside `expired_o`. So no store waits for ever. A packet
// whose first beat was taken is never dropped: the network has kept room for all of it
// (velo_unit_merge). Only with `watchdog_enable_i`; off, a write waits as long as the network does.

`include "velo_assert.svh"

module velo_requester
  import velo_pkg::*;
#(
    parameter int unsigned DataWidth = 32
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [ 7:0] node_id_i,
    input logic        watchdog_enable_i,
    input logic [23:0] watchdog_cycles_i,

    input  logic                     write_valid_i,
    output logic                     write_ready_o,
    input  logic                     write_sop_i,
    input  logic                     write_eop_i,
    input  logic     [DataWidth-1:0] write_data_i,
    input  address_t                 write_target_i,
    input  logic     [          7:0] write_source_i,
    input  logic     [          9:0] write_len_bytes_i,

    output logic                 net_valid_o,
    input  logic                 net_ready_i,
    output logic                 net_sop_o,
    output logic                 net_eop_o,
    output logic [DataWidth-1:0] net_data_o,

    output logic         sent_o,         // The last beat of a packet was taken.
    output logic         error_valid_o,
    output logic         expired_o,      // The error is one of the watchdog.
    output error_e       error_code_o,
    output logic   [7:0] error_source_o
);

  localparam bit NarrowPath = DataWidth == 32;
  localparam bit WidePath = DataWidth == 128;
  localparam int unsigned HeadBits = NarrowPath ? 32 : 64;  // of the header in its first beat

  typedef enum logic [1:0] {
    StHead,
    StExtra,  // narrow: the packet header's upper half; wide: a line's last word, left over
    StBody,
    StDrop
  } state_e;

  state_e state_d, state_q;

  // The content of the first beat. Only its low half is used, at any width.
  header_t line_header;
  error_e  verdict;
  logic whole, ends_line;
  logic [3:0] frag_words, end_word, line_words;

  assign line_header = header_t'({32'b0, write_data_i[31:0]});
  assign frag_words  = write_len_bytes_i[6:3];
  assign end_word    = {1'b0, write_target_i.offset[5:3]} + frag_words;
  assign line_words  = {1'b0, write_target_i.words} + 4'd1;
  assign ends_line   = end_word == line_words;
  assign whole       = ends_line && write_target_i.offset[5:3] == '0;

  // Payload words of the line if its header word is right: its length rounded up.
  logic [3:0] payload_words;
  assign payload_words = {1'b0, line_header.len[5:3]} + {3'b0, |line_header.len[2:0]};

  always_comb begin
    verdict = ErrorNone;
    if (write_target_i.offset[2:0] != '0 || write_len_bytes_i[2:0] != '0 ||
        write_len_bytes_i == '0) begin
      verdict = ErrorMisaligned;
    end else if (write_len_bytes_i > 10'(LineBytes) || end_word > line_words) begin
      verdict = ErrorOversize;
    end else if (whole) begin
      if ({line_header.reserved, line_header.external, line_header.valid} != 8'h01) begin
        verdict = ErrorMalformed;
      end else if (line_header.len[15:6] != '0 || payload_words != line_words - 4'd1) begin
        verdict = ErrorOversize;
      end
    end
  end

  // The packet header. A whole line's tag is gone from the input by the time its upper half leaves.
  fragment_tag_t fragment_tag;
  packet_t packet;
  logic [7:0] tag_d, tag_q;

  assign fragment_tag = '{
          offset: write_target_i.offset[5:3],
          words: write_target_i.words,
          last: ends_line,
          default: '0
      };
  assign tag_d = whole ? line_header.tag : fragment_tag[7:0];

  always_comb begin
    packet           = '0;
    packet.tc        = TrafficClassRequest;
    packet.kind      = PacketKindVelo;
    packet.dst_node  = 8'(write_target_i.node);
    packet.dst_ctx   = 8'(write_target_i.vpid);
    packet.frag      = !whole;
    packet.frag_last = !whole && ends_line;
    packet.len       = whole ? {4'b0, line_header.len[5:0]} : write_len_bytes_i;
    packet.tag       = NarrowPath ? tag_q : tag_d;
    packet.src_ctx   = write_source_i;
    packet.src_node  = node_id_i;
    // The length of a line or fragment fits the lower half, so the upper one does not depend on it.
    packet.len[9:6]  = '0;
  end

  // A line on a wide path: its words leave as pairs {lower half of this beat, upper half of the one
  // before}. Of an even number of words the last is left over when the write has ended.
  logic left_over;
  logic [63:0] carried_q;
  logic [DataWidth-1:0] moved;

  assign left_over = WidePath && whole && write_target_i.words[0];
  if (WidePath) begin : gen_moved
    assign moved = {state_q == StExtra ? 64'b0 : write_data_i[63:0], carried_q};
    always_ff @(posedge clk_i) begin
      if (write_valid_i && write_ready_o) carried_q <= write_data_i[127:64];
    end
  end else begin : gen_not_moved
    assign moved     = write_data_i;
    assign carried_q = '0;
  end

  // One register stage; `load` fills it.
  logic space, load, load_sop, load_eop;
  logic [DataWidth-1:0] load_data;

  assign space = !net_valid_o || net_ready_i;

  // The watchdog: the register holds the first beat of a packet that nobody takes.
  logic waiting, late, give_up;
  logic [7:0] source_q;  // of the packet in the register

  assign waiting = net_valid_o && net_sop_o && !net_ready_i;
  assign give_up = late && waiting;

  velo_watchdog #(
      .Width(24)
  ) u_watchdog (
      .clk_i    (clk_i),
      .rst_ni   (rst_ni),
      .enable_i (watchdog_enable_i),
      .cycles_i (watchdog_cycles_i),
      .waiting_i(waiting),
      .expired_o(late)
  );

  always_comb begin
    state_d       = state_q;
    write_ready_o = 1'b0;
    load          = 1'b0;
    load_sop      = 1'b0;
    load_eop      = write_eop_i && !left_over;
    load_data     = whole ? moved : write_data_i;
    unique case (state_q)
      StHead: begin
        load_sop  = 1'b1;
        load_eop  = !NarrowPath && whole && write_eop_i && !left_over;
        load_data = DataWidth'(packet[HeadBits-1:0]);
        if (verdict != ErrorNone) begin
          // One report in a cycle.
          write_ready_o = !give_up;
          if (write_valid_i && !give_up && !write_eop_i) state_d = StDrop;
        end else begin
          // The packet header takes the place of a whole line's header, and goes before a fragment.
          load          = write_valid_i;
          write_ready_o = space && whole;
          if (write_valid_i && space) begin
            if (NarrowPath || (left_over && write_eop_i)) state_d = StExtra;
            else if (!load_eop) state_d = StBody;
          end
        end
      end
      StExtra: begin
        if (NarrowPath) begin
          load          = write_valid_i;
          load_eop      = whole && write_eop_i;
          load_data     = DataWidth'(packet[63:32]);
          write_ready_o = space && whole;
          if (write_valid_i && space) state_d = load_eop ? StHead : StBody;
        end else begin
          load      = 1'b1;
          load_eop  = 1'b1;
          load_data = moved;
          if (space) state_d = StHead;
        end
      end
      StBody: begin
        load          = write_valid_i;
        write_ready_o = space;
        if (write_valid_i && space && write_eop_i) state_d = left_over ? StExtra : StHead;
      end
      StDrop: begin
        write_ready_o = 1'b1;
        if (write_valid_i && write_eop_i) state_d = StHead;
      end
      default: state_d = StHead;
    endcase
    // The dropped packet's write may have beats left; on a wide path it has none behind its last word.
    if (give_up && (state_q == StExtra || state_q == StBody)) begin
      state_d = WidePath && state_q == StExtra ? StHead : StDrop;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q     <= StHead;
      net_valid_o <= 1'b0;
    end else begin
      state_q <= state_d;
      if (space) net_valid_o <= load;
      else if (give_up) net_valid_o <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    // Without a load what is here means nothing; the source is asked for while a first beat is here.
    if (space) begin
      net_sop_o  <= load_sop;
      net_eop_o  <= load_eop;
      net_data_o <= load_data;
      source_q   <= write_source_i;
    end
    if (state_q == StHead) tag_q <= tag_d;
  end

  assign sent_o = net_valid_o && net_ready_i && net_eop_o;
  assign expired_o = give_up;
  assign error_valid_o = give_up || (state_q == StHead && write_valid_i && verdict != ErrorNone);
  assign error_code_o = give_up ? ErrorNetwork : verdict;
  assign error_source_o = give_up ? source_q : write_source_i;

  // The sender's own words for these are overruled: the page it wrote to says who it is.
  logic unused;
  assign unused = ^{line_header.source, line_header.seq, fragment_tag, packet,
                    write_target_i.zero_9, carried_q};

  // Assertions: promises of this unit, and what it relies on.
  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})
  // A word that was offered stays until it is taken, so nothing is lost under back-pressure.
  logic refusing, write_take;
  assign refusing   = verdict != ErrorNone || state_q == StDrop;
  assign write_take = write_valid_i && write_ready_o;
  `VELO_ASSERT(ReadyWithoutLoss, !write_take || refusing || (load && space))
  // A packet is sent whole or not at all.
  `VELO_ASSERT(DroppedWhole, !give_up || (net_valid_o && net_sop_o && !net_ready_i))
  // The bridge starts each write with its first beat.
  `VELO_ASSUME(WriteStartsWithSop, !write_valid_i || state_q != StHead || write_sop_i)

endmodule
