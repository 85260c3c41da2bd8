// SPDX-License-Identifier: Apache-2.0
//
// Reads of host memory by the node: asks in memory read packets, puts the completions together.
//
// `read_*` is a read of whole words (velo_axi_dma_read makes it of what the node asks), at most `MaxBytes` and a word
// long; `answer_*` are its words in order, one read after the other. A read has a slot, in which its words gather.
// It is asked for in pieces, which end where addresses reach a multiple of the largest read, so none crosses a
// boundary of 4 KiB; each piece has a tag of its own, {slot, piece}. Completions may come in any order and split as
// the host likes: the byte count of each tells where its words belong. All room is there before a read is asked for, so
// completions are taken in each cycle.
//
// Errors: a refused or poisoned completion ends its piece, and the read is answered with an error. So is one that is
// not answered in three times `timeout_i` cycles; its slot is `lost_o` until the host has paid what it owes, so a
// late completion never reaches another read. With all slots lost a read fails at once, as does one that comes with
// `discard_i`; of one that has begun no further piece is asked for then, and it fails when those that were have come.
// What answers no piece that was asked for is swallowed, with a pulse on `unexpected_o`.
//
// Source: PCI Express Base Specification 3.0, sections 2.2.9, 2.3.1.1, 2.8.

`include "velo_assert.svh"

module velo_pcie_reads
  import htax_pkg::*;
  import pcie_pkg::*;
  import velo_pcie_pkg::*;
#(
    parameter int unsigned Slots = 8,
    parameter int unsigned MaxBytes = 512,
    parameter int unsigned IdBits = 16,
    localparam int unsigned SlotBits = $clog2(Slots)
) (
    input logic clk_i,
    input logic rst_ni,

    input config_t        config_i,
    input logic           discard_i,
    input logic           forget_i,   // the node is in its reset, nothing is held
    input logic    [23:0] timeout_i,

    input  logic                read_valid_i,
    output logic                read_ready_o,
    input  logic [  IdBits-1:0] read_id_i,
    input  logic [AddrBits-1:0] read_addr_i,
    input  logic [         7:0] read_beats_i,  // less one

    output logic              answer_valid_o,
    input  logic              answer_ready_i,
    output logic [IdBits-1:0] answer_id_o,
    output logic              answer_last_o,
    output logic              answer_error_o,
    output logic [      63:0] answer_data_o,

    input  answer_t               answer_i,
    output tlp_beat_t             tx_o,
    input  logic                  tx_ready_i,
    output logic      [Slots-1:0] lost_o,
    output logic                  unexpected_o,
    output logic                  failed_o,
    output logic                  timeout_o,
    output logic                  idle_o
);

  localparam int unsigned PieceBits = 3;
  localparam int unsigned Pieces = 2 ** PieceBits;
  localparam int unsigned WordBits = 7;  // of a place in a slot

  typedef logic [SlotBits-1:0] slot_t;
  typedef logic [WordBits-1:0] place_t;

  typedef struct packed {
    logic [IdBits-1:0] id;
    place_t            words;
  } read_t;

  // ----- slots ----------------------------------------------------------------------------------

  typedef enum logic [1:0] {
    StIdle,
    StFirst,
    StSecond
  } state_e;

  state_e state_q;

  // Held by a read until it is answered; asked for; with an error; and owed by the host, whoever holds it.
  logic [Slots-1:0] held_q, asked_q, error_q;
  logic [Slots-1:0][Pieces-1:0] open_q;
  logic [Slots-1:0][1:0] age_q;
  logic [Slots-1:0] owed, free, done;
  slot_t given_slot, turn_slot;
  place_t place_q, place_d;
  logic unused_corrected, unused_broken, refuse_ready;
  (* ram_style = "distributed" *) read_t read_mem[Slots];
  (* ram_style = "distributed" *) place_t end_mem[Slots*Pieces];  // where a piece ends

  for (genvar s = 0; s < Slots; s++) begin : gen_slot
    assign owed[s]   = open_q[s] != '0;
    assign lost_o[s] = owed[s] && !held_q[s];
    assign free[s]   = !owed[s] && !held_q[s];
    assign done[s]   = held_q[s] && asked_q[s] && (!owed[s] || age_q[s] == 2'd3);
  end
  assign idle_o = held_q == '0 && state_q == StIdle;

  slot_t free_slot;
  always_comb begin
    free_slot = '0;
    for (int unsigned s = 0; s < Slots; s++) begin
      if (free[s]) free_slot = slot_t'(s);
    end
  end

  // ----- asking ---------------------------------------------------------------------------------

  slot_t slot_q;
  logic [PieceBits-1:0] piece_q;
  logic [AddrBits-1:0] addr_q;
  place_t left_q, words, end_q;
  logic [6:0] boundary, to_boundary;  // in words
  logic fails, tx_take, long_header, last_piece;
  pcie_head_t head;

  // Refused reads are answered from here, if no other answer is under way.
  assign fails = discard_i || &lost_o;
  assign read_ready_o = state_q == StIdle && (fails ? refuse_ready : free != '0);

  assign boundary = 7'd1 << (size_bits(config_i.max_read) - 4'd3);
  assign to_boundary = boundary - ({1'b0, addr_q[8:3]} & (boundary - 7'd1));
  assign words = left_q < to_boundary ? left_q : to_boundary;
  assign last_piece = words == left_q;
  assign long_header = addr_q[AddrBits-1:32] != '0;

  always_comb begin
    head           = '0;
    head.length    = {2'b0, words, 1'b0};
    head.tlp       = long_header ? PcieTlpMemRead64 : PcieTlpMemRead;
    head.first_be  = '1;
    head.last_be   = '1;
    head.tag       = 8'({slot_q, piece_q});
    head.requester = config_i.id;
  end

  logic stops;
  assign stops = state_q == StFirst && discard_i;
  assign tx_o = '{
          valid: state_q != StIdle && !stops,
          last: state_q == StSecond,
          keep: state_q == StSecond && !long_header ? 2'b01 : 2'b11,
          data:
          state_q
          ==
          StFirst
          ?
          head
          :
          long_header
          ?
          {addr_q[31:2], 2'b0, 32'(addr_q[AddrBits-1:32])}
          : {
          32'b0
          ,
          addr_q[31:2]
          ,
          2'b0
          }
      };
  assign tx_take = tx_o.valid && tx_ready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StIdle;
    else begin
      unique case (state_q)
        StIdle:  if (read_valid_i && read_ready_o && !fails) state_q <= StFirst;
        StFirst: if (stops) state_q <= StIdle;
 else if (tx_take) state_q <= StSecond;
        default: if (tx_take) state_q <= last_piece ? StIdle : StFirst;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) begin
      slot_q  <= free_slot;
      addr_q  <= read_addr_i;
      left_q  <= place_t'(read_beats_i) + 1'b1;
      piece_q <= '0;
      end_q   <= '0;
      if (read_valid_i && read_ready_o) begin
        read_mem[free_slot] <= '{read_id_i, place_t'(read_beats_i) + 1'b1};
      end
    end else if (tx_take && tx_o.last) begin
      addr_q  <= addr_q + AddrBits'({words, 3'b0});
      left_q  <= left_q - words;
      end_q   <= end_q + words;
      piece_q <= piece_q + 1'b1;
    end
    if (state_q == StFirst) end_mem[{slot_q, piece_q}] <= end_q + words;
  end

  // ----- what comes -----------------------------------------------------------------------------

  slot_t its_slot;
  logic [PieceBits-1:0] its_piece;
  logic expected, ends_piece;
  place_t its_place;
  assign {its_slot, its_piece} = answer_i.tag[SlotBits+PieceBits-1:0];
  assign expected = answer_i.mine && answer_i.tag[7:SlotBits+PieceBits] == '0 &&
      open_q[its_slot][its_piece];
  assign unexpected_o = answer_i.end_valid && !expected;
  assign failed_o = answer_i.end_valid && expected && !answer_i.good;
  // Of void data the rest follows like any other: the piece is owed until it has come.
  assign ends_piece = answer_i.end_valid && expected &&
      (answer_i.refused || {answer_i.length, 2'b0} >= answer_i.byte_count);
  assign its_place = end_mem[{its_slot, its_piece}] - answer_i.byte_count[9:3] +
      answer_i.word_index;

  velo_ram #(
      .Width(64),
      .Depth(Slots * 2 ** WordBits)
  ) u_words (
      .clk_i,
      .we_i       (answer_i.word_valid && expected && held_q[its_slot]),
      .waddr_i    ({its_slot, its_place}),
      .wdata_i    (answer_i.word),
      .raddr_i    ({given_slot, place_d}),
      .rdata_o    (answer_data_o),
      .corrected_o(unused_corrected),
      .broken_o   (unused_broken)
  );

  // Time is counted in ticks, three of which are too many, while a read is under way: without one nothing moves here,
  // so a simulator may let the function rest.
  logic [23:0] tick_q;
  logic tick;
  assign tick = tick_q >= timeout_i;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) tick_q <= '0;
    else tick_q <= tick || asked_q == '0 ? '0 : tick_q + 1'b1;
  end

  logic given, gives_up;
  assign gives_up  = given && owed[given_slot];
  assign timeout_o = gives_up;
  for (genvar s = 0; s < Slots; s++) begin : gen_state
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        held_q[s]  <= 1'b0;
        asked_q[s] <= 1'b0;
        error_q[s] <= 1'b0;
        open_q[s]  <= '0;
        age_q[s]   <= '0;
      end else begin
        if (ends_piece && its_slot == slot_t'(s)) open_q[s][its_piece] <= 1'b0;
        if (failed_o && its_slot == slot_t'(s)) error_q[s] <= 1'b1;
        // It is owed as soon as the host may see it.
        if (state_q == StFirst && slot_q == slot_t'(s)) open_q[s][piece_q] <= !stops;
        if ((stops || (state_q == StSecond && tx_take && last_piece)) && slot_q == slot_t'(s)) begin
          asked_q[s] <= 1'b1;
        end
        if (stops && slot_q == slot_t'(s)) error_q[s] <= 1'b1;
        if (tick && asked_q[s] && age_q[s] != '1) age_q[s] <= age_q[s] + 1'b1;
        if (state_q == StIdle && read_valid_i && read_ready_o && !fails &&
            free_slot == slot_t'(s)) begin
          held_q[s]  <= 1'b1;
          error_q[s] <= 1'b0;
          age_q[s]   <= '0;
        end
        if (given && given_slot == slot_t'(s)) begin
          held_q[s]  <= 1'b0;
          asked_q[s] <= 1'b0;
        end
      end
    end
  end

  // ----- answering ------------------------------------------------------------------------------

  typedef enum logic [1:0] {
    GiveIdle,
    GiveWords,
    GiveError,
    GiveRefusal
  } give_e;

  give_e give_q;
  logic [Slots-1:0] turn;
  logic [IdBits-1:0] refused_id_q;
  read_t given_read;

  velo_rr_arb #(
      .NumReq(Slots)
  ) u_turn (
      .clk_i,
      .rst_ni,
      .req_i  (done),
      .grant_o(turn),
      .take_i (give_q == GiveIdle)
  );
  always_comb begin
    turn_slot = '0;
    for (int unsigned s = 0; s < Slots; s++) begin
      if (turn[s]) turn_slot = slot_t'(s);
    end
  end

  slot_t given_slot_q;
  logic  answer_take;
  assign given_slot = give_q == GiveIdle ? turn_slot : given_slot_q;
  assign refuse_ready = give_q == GiveIdle && done == '0;
  assign given_read = read_mem[given_slot_q];
  assign answer_valid_o = give_q != GiveIdle;
  assign answer_id_o = give_q == GiveRefusal ? refused_id_q : given_read.id;
  assign answer_error_o = give_q == GiveError || give_q == GiveRefusal;
  assign answer_last_o = answer_error_o || place_q == given_read.words - 1'b1;
  assign answer_take = answer_valid_o && answer_ready_i;
  assign given = answer_take && answer_last_o && give_q != GiveRefusal;
  // The memory is asked for the word after the one that leaves.
  assign place_d = give_q == GiveIdle ? '0 : place_q + place_t'(answer_take);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) give_q <= GiveIdle;
    else if (forget_i) give_q <= GiveIdle;
    else if (give_q == GiveIdle) begin
      // A slot for which the host still owes completions is as good as refused.
      if (done != '0) give_q <= error_q[turn_slot] || owed[turn_slot] ? GiveError : GiveWords;
      else if (read_valid_i && read_ready_o && fails) give_q <= GiveRefusal;
    end else if (answer_take && answer_last_o) begin
      give_q <= GiveIdle;
    end
  end
  always_ff @(posedge clk_i) begin
    place_q <= place_d;
    if (give_q == GiveIdle) begin
      given_slot_q <= turn_slot;
      refused_id_q <= read_id_i;
    end
  end

  logic unused;
  assign unused = ^{config_i, read_addr_i, answer_i, unused_corrected, unused_broken};

  `VELO_ASSERT_INIT(SlotsFitTags, SlotBits + PieceBits <= 7)
  `VELO_ASSERT_INIT(ReadFitsSlot, MaxBytes / 8 + 1 < 2 ** WordBits)
  `VELO_ASSUME(NotTooLong, !read_valid_i || 32'(read_beats_i) <= MaxBytes / 8)
  // A slot that the host still owes anything is not given to another read.
  `VELO_ASSERT(OwedIsNotFree, (free & owed) == '0)
  `VELO_ASSERT(WordsOnlyWhole, give_q != GiveWords || !owed[given_slot_q])

endmodule
