// SPDX-License-Identifier: Apache-2.0
//
// RMA responder: serves gets and updates (fetch-compare-and-add) of registered memory of this node.
//
// A get becomes packets of the response class that fit the MTU and stay in one page at both ends, the
// next one's data being read while one is sent. An update reads the word, adds if it compares, writes
// it by a posted write and, once that has left the node, answers with the old word: who is told finds
// the new word there, with whatever else was put before. One request at a time, so updates are atomic
// with respect to one another; and before memory is read, every posted write that had begun before the
// request came has left the node, so the word read is never older than the last update or put.
// When the last packet is handed over, the notification at the responder is given, if asked for.
// A request that is refused is answered by one packet that says why; what was read before is sent.
//
// `job_*` as velo_rma_asks shows them, where requests wait while puts and messages pass them. `read_*`, `result_*`,
// `memory_*`: a velo_rma_reader. `packet_*`: jobs for a velo_rma_emit; the reader's data go there when the packet is on its way. `posted_*` and `notify_*` valid/ready.
// `release_o`: an update's access is over.
//
// Errors, each a pulse on `error_valid_o`: those of velo_rma_reader; ErrorMisaligned for an update not
// at a multiple of 8; ErrorMemory for one whose old word was lost in the reader's buffer
// (`memory_void_i`), which is not written.
//
// Source: EXTOLL, high message rates, section III (responder, locks).

`include "velo_assert.svh"

module velo_rma_responder
  import velo_pkg::*;
  import velo_atu_pkg::*;
  import velo_rma_pkg::*;
  import htax_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned FragmentBytes = 448
) (
    input logic clk_i,
    input logic rst_ni,

    input write_count_t writes_begun_i,
    input write_count_t writes_done_i,

    input  logic          job_valid_i,
    input  packet_t       header_i,
    input  rma_command_t  command_i,
    input  rma_operands_t operands_i,
    output logic          done_o,

    output logic                        read_valid_o,
    output atu_request_t                read_o,
    output logic                        read_keep_o,
    input  logic                        result_valid_i,
    input  error_e                      result_error_i,
    input  logic         [AddrBits-1:0] result_addr_i,
    output logic                        release_o,

    input  logic                 memory_valid_i,
    output logic                 memory_ready_o,
    input  logic                 memory_bad_i,
    input  logic                 memory_void_i,
    input  logic [DataWidth-1:0] memory_data_i,

    output logic                packet_valid_o,
    input  logic                packet_ready_i,
    output packet_t             packet_header_o,
    output rma_command_t        packet_command_o,
    output logic         [63:0] packet_operand_o,
    output logic         [ 1:0] packet_operand_words_o,
    output logic         [ 9:0] packet_data_bytes_o,

    output logic                 posted_valid_o,
    input  logic                 posted_ready_i,
    output logic                 posted_eop_o,
    output logic [ AddrBits-1:0] posted_addr_o,
    output logic [          9:0] posted_len_bytes_o,
    output logic [DataWidth-1:0] posted_data_o,

    output logic    notify_valid_o,
    input  logic    notify_ready_i,
    output notify_t notify_o,

    output logic         served_o,
    output logic         error_valid_o,
    output error_e       error_code_o,
    output logic   [7:0] error_ctx_o,
    output logic   [7:0] error_node_o
);

  typedef enum logic [3:0] {
    StIdle,
    StDrain,    // posted writes leave
    StCut,      // how long the next packet is
    StRead,
    StOld,      // the old word comes
    StCompare,
    StAdd,
    StWrite,
    StMark,
    StLand,     // the new word leaves
    StPacket,
    StNext,
    StNotify
  } state_e;

  state_e state_q;
  logic [22:0] offset_q;
  logic [63:0] old_q, new_q;
  logic half_q, update_q, equal_q;
  error_e error_q;
  logic [AddrBits-1:0] addr_q;
  write_count_t mark_q;
  logic behind;

  logic cut_valid, cut_last, last;
  logic [ 9:0] cut_bytes;
  logic [63:0] cut_address;

  // ----- the request ----------------------------------------------------------------------------

  logic is_update, misaligned;
  assign is_update = header_i.kind == PacketKindFetchCompareAddRequest;
  assign misaligned = is_update && command_i.remote_address[2:0] != '0;

  assign behind = is_behind(writes_done_i, mark_q);

  velo_rma_fragment #(
      .FragmentBytes(FragmentBytes)
  ) u_fragment (
      .clk_i,
      .rst_ni,
      .start_i        (state_q == StDrain || state_q == StNext),
      .read_address_i (command_i.remote_address),
      .write_address_i(command_i.local_address[11:0]),
      .len_bytes_i    (command_i.len),
      .offset_i       (offset_q),
      .valid_o        (cut_valid),
      .address_o      (cut_address),
      .len_bytes_o    (cut_bytes),
      .last_o         (cut_last)
  );

  // ----- control --------------------------------------------------------------------------------

  logic write_last, memory_last, adds, notifies;
  assign adds        = (command_i.add_always || equal_q) && error_q == ErrorNone;
  assign write_last  = DataWidth != 32 || half_q;
  assign memory_last = DataWidth != 32 || half_q;
  assign notifies    = error_q == ErrorNone && command_i.notify[NotifyResponder];
  assign last        = update_q || cut_last || error_q != ErrorNone;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
    end else begin
      unique case (state_q)
        StIdle: if (job_valid_i) state_q <= misaligned ? StPacket : StDrain;
        // The reader's data must not be mixed: an update's word comes after the last packet's data.
        StDrain: if (!behind && (!update_q || packet_ready_i)) state_q <= StCut;
        StCut: if (cut_valid) state_q <= cut_bytes == '0 ? StPacket : StRead;
        StRead: begin
          if (result_valid_i) begin
            state_q <= update_q && result_error_i == ErrorNone ? StOld : StPacket;
          end
        end
        StOld: begin
          if (memory_valid_i && memory_bad_i) state_q <= StPacket;
          else if (memory_valid_i && memory_last) state_q <= StCompare;
        end
        StCompare: state_q <= StAdd;
        StAdd: state_q <= adds ? StWrite : StPacket;
        StWrite: if (posted_ready_i && write_last) state_q <= StMark;
        StMark: state_q <= StLand;
        StLand: if (!behind) state_q <= StPacket;
        StPacket: begin
          if (packet_ready_i) begin
            if (!last) state_q <= StNext;
            else state_q <= notifies ? StNotify : StIdle;
          end
        end
        StNext: state_q <= StCut;
        default: if (notify_ready_i) state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      StIdle: begin
        update_q <= is_update;
        mark_q   <= writes_begun_i;
        offset_q <= '0;
        half_q   <= 1'b0;
        error_q  <= misaligned ? ErrorMisaligned : ErrorNone;
      end
      StRead: begin
        if (result_valid_i) begin
          error_q <= result_error_i;
          addr_q  <= result_addr_i;
        end
      end
      StOld: begin
        if (memory_valid_i) begin
          old_q  <= DataWidth == 32 ? {memory_data_i[31:0], old_q[63:32]} : 64'(memory_data_i);
          half_q <= !memory_last;
          if (memory_bad_i) error_q <= ErrorHost;
          else if (memory_void_i) error_q <= ErrorMemory;
        end
      end
      StCompare: begin
        equal_q <= old_q == operands_i.compare;
        new_q   <= old_q + operands_i.add;
      end
      StWrite: begin
        if (posted_ready_i) begin
          new_q  <= new_q >> 32;
          half_q <= !write_last;
        end
      end
      // The write that was taken a cycle ago is counted now.
      StMark:   mark_q <= writes_begun_i;
      StPacket: if (packet_ready_i) offset_q <= offset_q + {13'b0, cut_bytes};
      default:  ;
    endcase
  end

  // ----- memory ---------------------------------------------------------------------------------

  assign read_valid_o = state_q == StRead;
  assign read_keep_o = update_q;
  assign read_o = '{
          address: registered_address_t'(cut_address),
          len_bytes: cut_bytes,
          ctx: header_i.dst_ctx,
          peer: {header_i.src_node, header_i.src_ctx},
          own: 1'b0,
          rights: update_q ? RightAtomic : RightRead
      };
  assign memory_ready_o = state_q == StOld;

  assign posted_valid_o = state_q == StWrite;
  assign posted_eop_o = write_last;
  assign posted_addr_o = addr_q;
  assign posted_len_bytes_o = 10'd8;
  assign posted_data_o = DataWidth'(new_q);
  assign release_o = (state_q == StAdd && !adds) ||
      (posted_valid_o && posted_ready_i && write_last);

  // ----- the answer -----------------------------------------------------------------------------

  assign packet_valid_o = state_q == StPacket;
  assign packet_operand_o = old_q;
  assign packet_operand_words_o = update_q && error_q == ErrorNone ? 2'd1 : 2'd0;
  assign packet_data_bytes_o = update_q || error_q != ErrorNone ? '0 : cut_bytes;
  assign packet_header_o = answer_header(
      {
        header_i.dst_node, header_i.dst_ctx
      },
      {
        header_i.src_node, header_i.src_ctx
      },
      header_i.tag,
      TrafficClassResponse,
      update_q ? PacketKindFetchCompareAddResponse : PacketKindGetResponse,
      10'(CommandBytes) + packet_data_bytes_o + {5'b0, packet_operand_words_o, 3'b0}
  );
  always_comb begin
    packet_command_o        = command_i;
    packet_command_o.offset = offset_q;
    packet_command_o.error  = error_q;
  end

  assign notify_valid_o = state_q == StNotify;
  assign notify_o = notification(
      header_i.dst_ctx,
      {
        header_i.src_node, header_i.src_ctx
      },
      command_i.op,
      header_i.tag,
      command_i.len,
      RmaPlaceResponder,
      ErrorNone,
      command_i.remote_address
  );

  // ----- reports --------------------------------------------------------------------------------

  assign done_o = (packet_valid_o && packet_ready_i && last && !notifies) ||
      (notify_valid_o && notify_ready_i);
  assign served_o = packet_valid_o && packet_ready_i && last && error_q == ErrorNone;
  assign error_valid_o = packet_valid_o && packet_ready_i && error_q != ErrorNone;
  assign error_code_o = error_q;
  assign error_ctx_o = header_i.dst_ctx;
  assign error_node_o = header_i.src_node;

  logic unused;
  assign unused = ^{header_i, memory_data_i};

  // Only an update writes, and only the word that it read.
  `VELO_ASSERT(UpdateIsWhole, !posted_valid_o || (update_q && error_q == ErrorNone))

endmodule
