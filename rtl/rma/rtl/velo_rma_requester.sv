// SPDX-License-Identifier: Apache-2.0
//
// RMA requester: turns descriptors into packets of the request class.
//
// A put is cut into packets that fit the MTU and stay in one page at both ends; their data are read
// from registered memory of the descriptor's context, the next packet's while one is sent. All others
// are one packet, but for an immediate put across two pages. Nothing is kept once the last packet is
// handed over: the answers carry all that a notification needs. The operations are numbered, so that who writes the
// data can tell packets of one from those of another (velo_rma_completer). Gets and updates have numbers of
// their own (`ask_number_i`), and wait, with all descriptors behind them, until velo_rma_pending has a place for
// one with their node: `ask_ready_i`, for the node of the cycle before; `ask_valid_o` when it is sent. They wait no
// longer than until `ask_late_i`: who holds those places keeps them for too long.
//
// `way_none_i`: no way leads to node `ask_node_o` of the cycle before, or it ends at a dead link.
//
// `beat_*`: descriptors as velo_rma_intake queues them. `read_*` and `result_*`: a velo_rma_reader.
// `packet_*`: jobs for a velo_rma_emit, to which the reader's data go. `notify_*` valid/ready.
//
// Errors, each a pulse on `error_valid_o` and an error notification to the descriptor's context; no
// further packet is sent. Of a put that fails in the middle, earlier packets have been sent, and
// nobody but its requester is told of it:
//   ErrorMalformed   an unknown operation, a notification that the operation does not have, or bits
//                    that mean nothing;
//   ErrorOversize    the write is not as long as a descriptor, an immediate put not of 1 to 8 bytes,
//                    an update not of 8, a notification not of none;
//   ErrorMisaligned  an update not at a multiple of 8, at either end;
//   ErrorMemory      it cannot be read any more, see velo_rma_intake. If its first beat is lost, nobody is
//                    notified, and the context is given as 0;
//   ErrorUnregistered  a get or an update into memory at no registered address (bits 63:48 are not zero, where its packet
//                    has `ask_epoch_i`);
//   ErrorNetwork     no way leads there, at first or before a put's next packet; or a get or an update has waited
//                    for a place for too long;
//   those of velo_rma_reader, of the put's source.
//
// Source: EXTOLL, high message rates, section III (command descriptors by PIO, integrated DMA).

`include "velo_assert.svh"

module velo_rma_requester
  import velo_pkg::*;
  import velo_atu_pkg::*;
  import velo_rma_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned FragmentBytes = 448,
    parameter bit Ecc = 1'b0  // beats may be void
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [7:0] node_id_i,

    input  logic                 beat_valid_i,
    output logic                 beat_ready_o,
    input  logic                 beat_eop_i,
    input  logic                 beat_first_i,
    input  logic                 beat_void_i,
    input  logic [DataWidth-1:0] beat_data_i,

    output logic [          7:0] ask_node_o,
    input  logic                 ask_ready_i,
    input  logic                 ask_late_i,
    input  logic                 way_none_i,
    output logic                 ask_valid_o,
    input  logic [          5:0] ask_number_i,
    input  logic [EpochBits-1:0] ask_epoch_i,

    output logic         read_valid_o,
    output atu_request_t read_o,
    input  logic         result_valid_i,
    input  error_e       result_error_i,

    output logic                 packet_valid_o,
    input  logic                 packet_ready_i,
    output packet_t              packet_header_o,
    output rma_command_t         packet_command_o,
    output logic         [127:0] packet_operands_o,
    output logic         [  1:0] packet_operand_words_o,
    output logic         [  9:0] packet_data_bytes_o,

    output logic    notify_valid_o,
    input  logic    notify_ready_i,
    output notify_t notify_o,

    output logic         posted_o,
    output logic         error_valid_o,
    output error_e       error_code_o,
    output logic   [7:0] error_ctx_o
);

  typedef enum logic [3:0] {
    StName,    // who, and how long
    StWords,   // the descriptor
    StJudge,
    StDecide,
    StCut,     // how long the next packet is
    StRead,
    StShift,   // an immediate value, past the bytes that were sent
    StPacket,
    StNext,
    StReport
  } state_e;

  localparam int unsigned MaxBeats = 5 * 64 / DataWidth;

  state_e state_q;
  logic [7:0] ctx_q;
  logic [2:0] words_q;
  logic [3:0] beat_q;
  logic [MaxBeats-1:0][DataWidth-1:0] beats_q;
  rma_descriptor_t desc;
  rma_operands_t operands;
  logic [22:0] offset_q;
  logic [5:0] number_q;
  logic [63:0] value_q;
  logic [2:0] shift_left_q;
  error_e verdict, error_q;

  assign {operands, desc} = beats_q;

  // ----- is it a descriptor? --------------------------------------------------------------------

  logic [2:0] allowed;
  logic sized, aligned;

  always_comb begin
    allowed = '0;
    sized   = 1'b1;
    aligned = 1'b1;
    unique case (desc.op)
      RmaOpPut: allowed = RmaPlaceRequester[2:0] | RmaPlaceCompleter[2:0];
      RmaOpGet: allowed = RmaPlaceRequester[2:0] | RmaPlaceResponder[2:0];
      RmaOpPutImmediate: begin
        allowed = RmaPlaceRequester[2:0] | RmaPlaceCompleter[2:0];
        sized   = desc.len != '0 && desc.len <= 23'd8;
      end
      RmaOpFetchCompareAdd: begin
        allowed = RmaPlaceRequester[2:0] | RmaPlaceResponder[2:0];
        sized   = desc.len == 23'd8;
        aligned = desc.remote_address[2:0] == '0 && desc.local_address[2:0] == '0;
      end
      RmaOpNotify: begin
        allowed = RmaPlaceRequester[2:0] | RmaPlaceCompleter[2:0];
        sized   = desc.len == '0;
      end
      default:  ;
    endcase
  end

  logic known, wrong_notify, asks;
  assign asks = desc.op == RmaOpGet || desc.op == RmaOpFetchCompareAdd;
  assign known = allowed != '0;
  // A notification put is nothing without its notification.
  assign wrong_notify = (desc.notify & ~allowed) != '0 ||
      (desc.op == RmaOpNotify && !desc.notify[NotifyCompleter]);

  always_comb begin
    verdict = ErrorNone;
    if (words_q != (desc.op == RmaOpFetchCompareAdd ? 3'd5 : 3'd3)) verdict = ErrorOversize;
    else if (!known || wrong_notify || (desc.add_always && desc.op != RmaOpFetchCompareAdd) ||
             desc.zero_55 != '0) begin
      verdict = ErrorMalformed;
    end else if (!sized) verdict = ErrorOversize;
    else if (!aligned) verdict = ErrorMisaligned;
    else if (asks && desc.local_address[63-:EpochBits] != '0) verdict = ErrorUnregistered;
    else if (way_none_i) verdict = ErrorNetwork;
  end

  // ----- packets --------------------------------------------------------------------------------

  // All but puts are one packet, but for an immediate one across two pages.
  logic is_put, is_immediate, whole_q, cut_valid, cut_last, last;
  logic [9:0] cut_bytes, piece_bytes;
  logic [12:0] immediate_end;
  logic [63:0] cut_address;
  assign is_put        = desc.op == RmaOpPut;
  assign is_immediate  = desc.op == RmaOpPutImmediate;
  assign immediate_end = {1'b0, desc.remote_address[11:0]} + {9'b0, desc.len[3:0]};
  assign last          = whole_q || cut_last;
  assign piece_bytes   = whole_q ? desc.len[9:0] : cut_bytes;

  velo_rma_fragment #(
      .FragmentBytes(FragmentBytes)
  ) u_fragment (
      .clk_i,
      .rst_ni,
      .start_i        (state_q == StJudge || state_q == StNext),
      // An immediate value has no address; any that starts a page does not cut it.
      .read_address_i (is_put ? desc.local_address : '0),
      .write_address_i(desc.remote_address[11:0]),
      .len_bytes_i    (desc.len),
      .offset_i       (offset_q),
      .valid_o        (cut_valid),
      .address_o      (cut_address),
      .len_bytes_o    (cut_bytes),
      .last_o         (cut_last)
  );

  assign read_valid_o = state_q == StRead;
  assign read_o = '{
          address: registered_address_t'(cut_address),
          len_bytes: cut_bytes,
          ctx: ctx_q,
          peer: {node_id_i, ctx_q},
          own: 1'b1,
          rights: RightRead
      };

  packet_kind_e kind;
  logic [9:0] operand_bytes;
  always_comb begin
    kind                   = PacketKindNotification;
    operand_bytes          = '0;
    packet_operand_words_o = '0;
    packet_data_bytes_o    = '0;
    packet_operands_o      = operands;
    unique case (desc.op)
      RmaOpPut: begin
        kind                = PacketKindPut;
        packet_data_bytes_o = cut_bytes;
      end
      RmaOpGet: kind = PacketKindGetRequest;
      RmaOpPutImmediate: begin
        kind                   = PacketKindPutImmediate;
        operand_bytes          = piece_bytes;
        packet_operand_words_o = 2'd1;
        packet_operands_o      = '0;
        for (int unsigned b = 0; b < 8; b++) begin
          packet_operands_o[8*b+:8] = piece_bytes > 10'(b) ? value_q[8*b+:8] : '0;
        end
      end
      RmaOpFetchCompareAdd: begin
        kind                   = PacketKindFetchCompareAddRequest;
        operand_bytes          = 10'd16;
        packet_operand_words_o = 2'd2;
      end
      default:  ;
    endcase
  end

  always_comb begin
    packet_header_o                 = '0;
    packet_header_o.tc              = TrafficClassRequest;
    packet_header_o.kind            = kind;
    packet_header_o.dst_node        = desc.dst_node;
    packet_header_o.dst_ctx         = desc.dst_ctx;
    packet_header_o.src_node        = node_id_i;
    packet_header_o.src_ctx         = ctx_q;
    packet_header_o.tag             = desc.cookie;
    packet_header_o.len             = 10'(CommandBytes) + operand_bytes + packet_data_bytes_o;
    packet_command_o                = '0;
    packet_command_o.op             = desc.op;
    packet_command_o.notify         = desc.notify;
    packet_command_o.add_always     = desc.add_always;
    packet_command_o.len            = desc.len;
    packet_command_o.offset         = offset_q;
    packet_command_o.number         = asks ? ask_number_i : number_q;
    packet_command_o.remote_address = desc.remote_address;
    packet_command_o.local_address  = desc.local_address;
    if (asks) packet_command_o.local_address[63-:EpochBits] = ask_epoch_i;
  end
  assign packet_valid_o = state_q == StPacket && (!asks || ask_ready_i);
  logic gives_up;
  assign gives_up = state_q == StPacket ? asks && !ask_ready_i && (ask_late_i || way_none_i) :
      state_q == StNext && way_none_i;

  // ----- control --------------------------------------------------------------------------------

  // Behind a beat that cannot be read, all is passed over until a descriptor begins.
  logic take, named, skip_q;
  assign named = !beat_void_i && (!skip_q || beat_first_i);
  if (Ecc) begin : gen_skip
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) skip_q <= 1'b0;
      else if (take) skip_q <= beat_void_i || (skip_q && !named);
    end
  end else begin : gen_no_skip
    assign skip_q = 1'b0;
  end

  assign beat_ready_o = state_q == StName || state_q == StWords;
  assign take         = beat_valid_i && beat_ready_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q  <= StName;
      number_q <= '0;
    end else begin
      if (state_q == StJudge) number_q <= number_q + 6'd1;
      unique case (state_q)
        StName:   if (take && named) state_q <= StWords;
        StWords: begin
          if (take && beat_void_i) state_q <= StReport;
          else if (take && beat_eop_i) state_q <= StJudge;
        end
        StJudge:  state_q <= StDecide;
        StDecide: state_q <= error_q != ErrorNone ? StReport : whole_q ? StPacket : StCut;
        StCut: begin
          if (cut_valid) begin
            if (is_put && cut_bytes != '0) state_q <= StRead;
            else state_q <= shift_left_q != '0 ? StShift : StPacket;
          end
        end
        StRead: begin
          if (result_valid_i) state_q <= result_error_i == ErrorNone ? StPacket : StReport;
        end
        StShift:  if (shift_left_q == 3'd1) state_q <= StPacket;
        StPacket: begin
          if (gives_up) state_q <= StReport;
          else if (packet_valid_o && packet_ready_i) state_q <= last ? StName : StNext;
        end
        StNext:   state_q <= gives_up ? StReport : StCut;
        StReport: if (notify_ready_i) state_q <= StName;
        default:  state_q <= StName;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StName && take) begin
      {words_q, ctx_q} <= beat_data_i[10:0];
      beat_q           <= '0;
      // Fields that a too short write does not have are zero in its error notification.
      beats_q          <= '0;
    end
    if (state_q == StWords && take && !beat_void_i) begin
      beats_q[beat_q] <= beat_data_i;
      beat_q          <= beat_q + 4'd1;
    end
    if (state_q == StJudge) begin
      error_q      <= verdict;
      whole_q      <= !is_put && !(is_immediate && immediate_end > 13'd4096);
      value_q      <= desc.local_address;
      shift_left_q <= '0;
    end
    if (state_q == StWords && take && beat_void_i) error_q <= ErrorMemory;
    if (state_q == StRead && result_valid_i) error_q <= result_error_i;
    if (gives_up) error_q <= ErrorNetwork;
    if (state_q == StName) offset_q <= '0;
    else if (packet_valid_o && packet_ready_i) begin
      offset_q <= offset_q + {13'b0, cut_bytes};
      // Of an immediate put there are at most 7 bytes in the first of two pages.
      if (is_immediate) shift_left_q <= cut_bytes[2:0];
    end
    if (state_q == StShift) begin
      value_q      <= value_q >> 8;
      shift_left_q <= shift_left_q - 3'd1;
    end
  end

  // ----- reports --------------------------------------------------------------------------------

  assign notify_valid_o = state_q == StReport;
  assign notify_o = notification(
      ctx_q,
      {
        desc.dst_node, desc.dst_ctx
      },
      desc.op,
      desc.cookie,
      '0,
      RmaPlaceError,
      error_q,
      desc.local_address
  );

  assign posted_o = packet_valid_o && packet_ready_i && last;
  assign ask_node_o = desc.dst_node;
  assign ask_valid_o = posted_o && asks;
  assign error_valid_o = (take && beat_void_i && !skip_q) ||
      (state_q == StDecide && error_q != ErrorNone) || gives_up ||
      (state_q == StRead && result_valid_i && result_error_i != ErrorNone);
  assign error_code_o = take ? ErrorMemory : state_q == StDecide ? error_q :
      gives_up ? ErrorNetwork : result_error_i;
  assign error_ctx_o = state_q == StName ? '0 : ctx_q;

  `VELO_ASSERT(ShiftOnlyImmediate, state_q != StShift || is_immediate)

endmodule
