// SPDX-License-Identifier: Apache-2.0
//
// RMA completer: writes the data of puts (`Answers` = 0) or of answers to gets and updates
// (`Answers` = 1) to registered memory, then tells whom the command names.
//
// Each packet is translated and checked on its own before any of its bytes are written: a refused
// packet touches nothing. The outcome is given once, with the operation's last packet; whether an
// earlier one failed, and where the next one begins, is remembered by sending node, since a node sends the
// packets of its operations one operation after the other. So an operation of which any packet but the last was
// lost fails with ErrorLost; of one whose last is lost nobody is told. Packets of different operations are
// taken for those of one only if these are a multiple of 64 apart at their requester, the last ones of the former
// and the first ones of the latter were lost, and the offsets fit.
// Puts: the notification at the completer, then, if asked for or if the operation failed, a reply that
// the caller sends to the requester. Answers: the notification at the requester; of failure, always.
//
// `job_*` and `data_*` as velo_rma_take shows them. `posted_*` one write a packet (valid/ready; address
// and length hold). `notify_*` valid/ready after all of the data was taken by `posted_*`, which keeps
// order; `notify_error_i` with ready: ErrorNone, or why it was refused. `reply_*` valid/ready.
//
// The memory of failures is cleared after the reset, in a cycle a node; a job waits for that.
// With `Ecc` it is protected (velo_ram). What cannot be read counts as a failure, ErrorMemory.
//
// Errors: those of velo_atu; ErrorLost at the first packet behind a lost one; ErrorMalformed for data outside the operation, or a packet that was not
// as long as it said (its write is filled with zeros). Each is a pulse on `error_valid_o`. The
// requester is told why if the completer's notification was refused (the data are written all the
// same): ErrorContext or ErrorStall; velo_rma_notifier reports that.
//
// Source: EXTOLL, high message rates, section III (RMA, notification framework).

`include "velo_assert.svh"

module velo_rma_completer
  import velo_pkg::*;
  import velo_secded_pkg::*;
  import velo_atu_pkg::*;
  import velo_rma_pkg::*;
  import htax_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter bit Answers = 1'b0,
    parameter int unsigned NodeBits = 8,  // of node numbers in use
    parameter bit Ecc = 1'b0
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic               job_valid_i,
    input  packet_t            header_i,
    input  rma_command_t       command_i,
    input  logic         [9:0] data_bytes_i,
    output logic               done_o,

    input  logic                 data_valid_i,
    output logic                 data_ready_o,
    input  logic                 data_last_i,
    input  logic                 data_bad_i,
    input  logic [DataWidth-1:0] data_i,

    output logic         atu_valid_o,
    input  logic         atu_ready_i,
    output atu_request_t atu_request_o,
    input  logic         atu_answer_valid_i,
    input  atu_answer_t  atu_answer_i,
    output logic         atu_release_o,

    output logic                 posted_valid_o,
    input  logic                 posted_ready_i,
    output logic                 posted_eop_o,
    output logic [ AddrBits-1:0] posted_addr_o,
    output logic [          9:0] posted_len_bytes_o,
    output logic [DataWidth-1:0] posted_data_o,

    output logic    notify_valid_o,
    input  logic    notify_ready_i,
    input  error_e  notify_error_i,
    output notify_t notify_o,

    output logic         reply_valid_o,
    input  logic         reply_ready_i,
    output packet_t      reply_header_o,
    output rma_command_t reply_command_o,

    output logic   completed_o,
    output logic   ended_o,
    output logic   error_valid_o,
    output error_e error_code_o,
    output ecc_t   ecc_o           // of the memory of failures; see velo_ram
);

  typedef enum logic [3:0] {
    StIdle,
    StCheck,
    StTranslate,
    StAnswer,
    StWrite,
    StOutcome,
    StNotify,
    StReply,
    StDone,
    StClear  // the memory of failures, after the reset
  } state_e;

  state_e state_q;
  error_e error_q, earlier_q, outcome;
  logic [63:0] address_q;
  logic [23:0] end_q;
  logic last_q, fits, asks_us, asks_reply;
  logic [AddrBits-1:0] addr_q;

  // ----- a node's operation so far: its failure, and what comes next ----------------------------

  typedef struct packed {
    logic [5:0]  number;
    logic [22:0] offset;
    logic [3:0]  error;
  } progress_t;

  progress_t earlier, now;
  logic [NodeBits-1:0] node, clear_q;
  ecc_t earlier_ecc, ecc_q;
  assign node = header_i.src_node[NodeBits-1:0];
  assign now  = '{number: command_i.number, offset: end_q[22:0], error: outcome};
  velo_ram #(
      .Width($bits(progress_t)),
      .Depth(2 ** NodeBits),
      .ReadsOld(1'b1),
      .Ecc(Ecc)
  ) u_failures (
      .clk_i,
      .we_i       (state_q == StClear || state_q == StOutcome),
      .waddr_i    (state_q == StClear ? clear_q : node),
      .wdata_i    (state_q == StClear ? '0 : now),
      .raddr_i    (node),
      .rdata_o    (earlier),
      .corrected_o(earlier_ecc.corrected),
      .broken_o   (earlier_ecc.broken)
  );
  // A register between the memory and what is decided by it: there long before the outcome is. The
  // first packet of an operation starts afresh; each other one continues the one before it.
  logic continues, gap_q;
  assign continues = earlier.number == command_i.number && earlier.offset == command_i.offset;
  always_ff @(posedge clk_i) begin
    if (command_i.offset == '0) earlier_q <= ErrorNone;
    else if (earlier_ecc.broken) earlier_q <= ErrorMemory;
    else earlier_q <= continues ? error_e'(earlier.error) : ErrorLost;
    gap_q <= command_i.offset != '0 && !earlier_ecc.broken && !continues;
    ecc_q <= command_i.offset == '0 ? '0 : earlier_ecc;
  end
  assign ecc_o      = state_q == StOutcome ? ecc_q : '0;
  assign outcome    = earlier_q != ErrorNone ? earlier_q : error_q;

  // ----- control --------------------------------------------------------------------------------

  assign fits       = end_q <= {1'b0, command_i.len};
  assign asks_us    = command_i.notify[Answers?NotifyRequester : NotifyCompleter];
  assign asks_reply = command_i.notify[NotifyRequester];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StClear;
      clear_q <= '0;
    end else begin
      if (state_q == StClear) clear_q <= clear_q + 1'b1;
      unique case (state_q)
        StClear: if (clear_q == '1) state_q <= StIdle;
        StIdle: if (job_valid_i) state_q <= StCheck;
        StCheck: state_q <= fits && data_bytes_i != '0 ? StTranslate : StOutcome;
        StTranslate: if (atu_ready_i) state_q <= StAnswer;
        StAnswer: begin
          if (atu_answer_valid_i) begin
            state_q <= atu_answer_i.error == ErrorNone ? StWrite : StOutcome;
          end
        end
        StWrite: if (data_valid_i && posted_ready_i && data_last_i) state_q <= StOutcome;
        StOutcome: begin
          if (!last_q) state_q <= StDone;
          else if (Answers) state_q <= outcome != ErrorNone || asks_us ? StNotify : StDone;
          else if (outcome == ErrorNone && asks_us) state_q <= StNotify;
          else state_q <= outcome != ErrorNone || asks_reply ? StReply : StDone;
        end
        StNotify: begin
          if (notify_ready_i) begin
            state_q <= !Answers && (notify_error_i != ErrorNone || asks_reply) ? StReply : StDone;
          end
        end
        StReply: if (reply_ready_i) state_q <= StDone;
        default: state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      StIdle: begin
        address_q <= (Answers ? local_address(
            command_i.local_address
        ) : command_i.remote_address) + {41'b0, command_i.offset};
        end_q <= {1'b0, command_i.offset} + {14'b0, data_bytes_i};
        error_q <= Answers ? error_e'(command_i.error) : ErrorNone;
      end
      StCheck: begin
        last_q <= !fits || end_q == {1'b0, command_i.len} || error_q != ErrorNone;
        if (!fits) error_q <= ErrorMalformed;
      end
      StAnswer:  if (atu_answer_valid_i) error_q <= atu_answer_i.error;
      StWrite:   if (data_valid_i && posted_ready_i && data_bad_i) error_q <= ErrorMalformed;
      StOutcome: error_q <= outcome;
      StNotify:  if (notify_ready_i && notify_error_i != ErrorNone) error_q <= notify_error_i;
      default:   ;
    endcase
    if (state_q == StAnswer) addr_q <= atu_answer_i.addr;
  end

  assign done_o = state_q == StDone;

  // ----- memory ---------------------------------------------------------------------------------

  assign atu_valid_o = state_q == StTranslate;
  assign atu_request_o = '{
          address: registered_address_t'(address_q),
          len_bytes: data_bytes_i,
          ctx: header_i.dst_ctx,
          peer: {header_i.src_node, header_i.src_ctx},
          own: Answers,
          rights: RightWrite
      };
  assign atu_release_o = posted_valid_o && posted_ready_i && posted_eop_o;

  assign posted_valid_o = state_q == StWrite && data_valid_i;
  assign data_ready_o = state_q == StWrite && posted_ready_i;
  assign posted_eop_o = data_last_i;
  assign posted_addr_o = addr_q;
  assign posted_len_bytes_o = data_bytes_i;
  assign posted_data_o = data_i;

  // ----- whom to tell ---------------------------------------------------------------------------

  rma_place_e place;
  logic [15:0] them;
  assign them = {header_i.src_node, header_i.src_ctx};
  assign place = !Answers ? RmaPlaceCompleter :
      error_q != ErrorNone ? RmaPlaceError : RmaPlaceRequester;
  assign notify_valid_o = state_q == StNotify;
  assign notify_o = notification(
      header_i.dst_ctx,
      them,
      command_i.op,
      header_i.tag,
      command_i.len,
      place,
      error_q,
      Answers ? local_address(
          command_i.local_address) : command_i.remote_address
  );

  assign reply_valid_o = state_q == StReply;
  assign reply_header_o = answer_header(
      {
        header_i.dst_node, header_i.dst_ctx
      },
      them,
      header_i.tag,
      TrafficClassCompletion,
      PacketKindNotification,
      10'(CommandBytes)
  );
  always_comb begin
    reply_command_o       = command_i;
    reply_command_o.error = error_q;
  end

  // ----- reports --------------------------------------------------------------------------------

  // A malformed packet was reported when it was taken in, an answer's error where it arose, a
  // notification that was refused by who refused it.
  assign ended_o = state_q == StDone && last_q;
  assign completed_o = ended_o && error_q == ErrorNone;
  assign error_valid_o = (state_q == StCheck && (!fits || gap_q)) ||
      (state_q == StAnswer && atu_answer_valid_i && atu_answer_i.error != ErrorNone);
  assign error_code_o = state_q != StCheck ? atu_answer_i.error : fits ? ErrorLost : ErrorMalformed;

  logic unused;
  assign unused = ^header_i;

  // Data are in the posted channel, whole, before anybody is told.
  `VELO_ASSERT(NothingBeforeItsData, !(notify_valid_o || reply_valid_o) || !posted_valid_o)
  `VELO_ASSERT(WriteOnlyIfGranted, !posted_valid_o || error_q == ErrorNone || data_bad_i)

endmodule
