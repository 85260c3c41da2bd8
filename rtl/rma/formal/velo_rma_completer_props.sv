// SPDX-License-Identifier: Apache-2.0
//
// The promises of the completer of puts, for every packet, right or wrong, every answer of the
// translation, and every behaviour of the host.
//
//   * Nothing is written without a grant for this packet, and only where and as much as was granted.
//   * Nobody is told of a packet before all of its data was taken by the posted channel.
//   * The notification at the completer is given only if the packet was granted, or has no data; the
//     requester is told of success only then, too.
//   * If the notification at the completer is refused, the requester is told why.
//   * The translation is asked for the bytes that the packet names, all of them inside its operation, as
//     the peer that sent it; so a write is whole and inside the page that was granted.
//   * An access that was granted is given back, once, before the packet is done with.
//   * Nobody is told of success unless the packets of the operation came without a gap, and all of them were
//     written: for one sending node of one's choice, whose packets are counted here from the operation's first.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_rma_completer_props
  import velo_pkg::*;
  import velo_atu_pkg::*;
  import velo_rma_pkg::*;
  import htax_pkg::*;
(
    input logic                       clk_i,
    input logic                       rst_ni,
    input logic                       job_valid_i,
    input packet_t                    header_i,
    input rma_command_t               command_i,
    input logic                [ 9:0] data_bytes_i,
    input logic                       data_valid_i,
    input logic                       data_bad_i,
    input logic                [31:0] data_i,
    input logic                       atu_ready_i,
    input logic                       atu_answer_valid_i,
    input atu_answer_t                atu_answer_i,
    input logic                       posted_ready_i,
    input logic                       notify_ready_i,
    input error_e                     notify_error_i,
    input logic                       reply_ready_i
);

  logic done, data_ready, data_last, atu_valid, atu_release, posted_valid, posted_eop;
  logic notify_valid, reply_valid, completed, ended, error_valid;
  atu_request_t atu_request;
  logic [AddrBits-1:0] posted_addr;
  logic [9:0] posted_len;
  logic [31:0] posted_data;
  notify_t notify;
  packet_t reply_header;
  rma_command_t reply_command;
  error_e error_code;

  velo_secded_pkg::ecc_t unused_ecc;
  velo_rma_completer #(
      .DataWidth(32),
      .Answers  (1'b0),
      .NodeBits (1)
  ) u_dut (
      .done_o            (done),
      .data_ready_o      (data_ready),
      .data_last_i       (data_last),
      .atu_valid_o       (atu_valid),
      .atu_request_o     (atu_request),
      .atu_release_o     (atu_release),
      .posted_valid_o    (posted_valid),
      .posted_eop_o      (posted_eop),
      .posted_addr_o     (posted_addr),
      .posted_len_bytes_o(posted_len),
      .posted_data_o     (posted_data),
      .notify_valid_o    (notify_valid),
      .notify_o          (notify),
      .reply_valid_o     (reply_valid),
      .reply_header_o    (reply_header),
      .reply_command_o   (reply_command),
      .completed_o       (completed),
      .ended_o           (ended),
      .error_valid_o     (error_valid),
      .error_code_o      (error_code),
      .ecc_o             (unused_ecc),
      .*
  );

  // ----- the environment: what velo_rma_take and velo_atu promise --------------------------------

  logic past_q, job_q, asked_q;
  logic [9:0] bytes_q, left_q;
  logic [45:0] offsets_q;  // of the command: length and offset
  logic [23:0] whose_q, whose;  // owner and peer
  logic [63:0] remote_q;
  logic [ 2:0] notify_q;
  initial past_q = 1'b0;
  always_comb assume (past_q || !rst_ni);
  always_ff @(posedge clk_i) begin
    past_q    <= 1'b1;
    job_q     <= rst_ni && job_valid_i && !done;
    bytes_q   <= data_bytes_i;
    offsets_q <= {command_i.len, command_i.offset};
    notify_q  <= command_i.notify;
    whose_q   <= whose;
    remote_q  <= command_i.remote_address;
    if (!rst_ni || done) asked_q <= 1'b0;
    else if (atu_valid && atu_ready_i) asked_q <= 1'b1;
    else if (atu_answer_valid_i) asked_q <= 1'b0;
    if (!job_q) left_q <= data_bytes_i;
    else if (data_valid_i && data_ready) left_q <= data_last ? '0 : left_q - 10'd4;
  end
  logic same;
  logic [5:0] number_q;
  always_ff @(posedge clk_i) number_q <= command_i.number;
  `VELO_ASSUME(NumberStands, !job_q || command_i.number == number_q)
  `VELO_ASSUME(FewNumbers, command_i.number[5:1] == '0)
  assign whose = {header_i.dst_ctx, header_i.src_node, header_i.src_ctx};
  assign same = data_bytes_i == bytes_q && {command_i.len, command_i.offset} == offsets_q &&
                command_i.notify == notify_q && whose == whose_q &&
                command_i.remote_address == remote_q;
  `VELO_ASSUME(JobStands, !job_q || (job_valid_i && same))
  // Few enough for an unbounded proof; nothing in the unit depends on how many there are.
  `VELO_ASSUME(BytesOfAPacket, data_bytes_i <= 10'd14)
  `VELO_ASSUME(DataOfAJob, !data_valid_i || (job_q && left_q != '0))
  `VELO_ASSUME(BadIsToldAtTheEnd, !data_bad_i || data_last)
  `VELO_ASSUME(AnswerIfAsked, !atu_answer_valid_i || asked_q)
  // Few bits of long numbers: the unit adds and compares them, whatever they are.
  `VELO_ASSUME(FewBits, {command_i.remote_address[63:6], command_i.len[22:5],
               command_i.offset[22:5]} == '0)
  // velo_atu grants what is inside one page; its offset in the page stays.
  logic [9:0] asked_bytes_q;
  always_ff @(posedge clk_i) if (atu_valid && atu_ready_i) asked_bytes_q <= atu_request.len_bytes;
  `VELO_ASSUME(GrantedInsideAPage, !atu_answer_valid_i || atu_answer_i.error != ErrorNone ||
               13'(atu_answer_i.addr[11:0]) + 13'(asked_bytes_q) <= 13'd4096)
  assign data_last = left_q <= 10'd4;

  // ----- promises -------------------------------------------------------------------------------

  logic granted_q, given_back_q, bad_q, told_q, take;
  error_e untold_q;  // why the completer's notification was refused
  logic [9:0] taken_q;  // bytes, in whole beats
  logic [AddrBits-1:0] addr_q;
  assign take = posted_valid && posted_ready_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || done) begin
      granted_q    <= 1'b0;
      given_back_q <= 1'b0;
      bad_q        <= 1'b0;
      taken_q      <= '0;
      untold_q     <= ErrorNone;
      told_q       <= 1'b0;
    end else begin
      if (asked_q && atu_answer_valid_i) begin
        granted_q <= atu_answer_i.error == ErrorNone;
        addr_q    <= atu_answer_i.addr;
      end
      if (atu_release) given_back_q <= 1'b1;
      if (take) taken_q <= taken_q + 10'd4;
      if (take && data_bad_i) bad_q <= 1'b1;
      if (notify_valid && notify_ready_i) untold_q <= notify_error_i;
      if (reply_valid && reply_ready_i) told_q <= 1'b1;
    end
  end

  logic all_taken, success;
  assign all_taken = taken_q >= data_bytes_i;
  assign success   = (data_bytes_i == '0 || granted_q) && all_taken && !bad_q;
  `VELO_ASSERT(NothingWithoutAGrant, !posted_valid || granted_q)
  `VELO_ASSERT(WhereItWasGranted, !posted_valid ||
               (posted_addr == addr_q && posted_len == data_bytes_i))
  `VELO_ASSERT(NoMoreThanGranted, !posted_valid || taken_q < data_bytes_i)
  `VELO_ASSERT(WritesAreWhole, !posted_valid || posted_eop == (taken_q + 10'd4 >= data_bytes_i))
  `VELO_ASSERT(InsideThePage, !posted_valid ||
               13'(posted_addr[11:0]) + 13'(posted_len) <= 13'd4096)
  // What the translation is asked for, worked out here beside the unit, for the same cycle.
  logic [63:0] address_q;
  logic [23:0] end_q;
  always_ff @(posedge clk_i) begin
    address_q <= command_i.remote_address + {41'b0, command_i.offset};
    end_q     <= {1'b0, command_i.offset} + {14'b0, data_bytes_i};
  end
  // For the induction: the same sums.
  `VELO_ASSERT(SameSums, !(job_q && u_dut.state_q != 4'd0 && u_dut.state_q != 4'd9) ||
               (u_dut.address_q == address_q && u_dut.end_q == end_q))
  `VELO_ASSERT(AsksForWhatItWrites, !atu_valid ||
               (atu_request.address == address_q && atu_request.len_bytes == data_bytes_i &&
                atu_request.rights == RightWrite))
  `VELO_ASSERT(AsksForItsPeer, !atu_valid || (!atu_request.own &&
               {atu_request.ctx, atu_request.peer} == whose))
  `VELO_ASSERT(InsideTheOperation, !(atu_valid || posted_valid) || end_q <= {1'b0, command_i.len})
  `VELO_ASSERT(NotificationAfterAllData, !notify_valid || success)
  `VELO_ASSERT(SuccessAfterAllData,
               !reply_valid || reply_command.error != ErrorNone || success)
  `VELO_ASSERT(ToldWhyNotNotified, untold_q == ErrorNone || !reply_valid ||
               reply_command.error == untold_q)
  `VELO_ASSERT(NotNotifiedIsTold, untold_q == ErrorNone || !done || told_q)
  `VELO_ASSERT(NothingWrittenIfRefused, !(reply_valid && !granted_q) || taken_q == '0)
  `VELO_ASSERT(GivenBackOnce, !atu_release || (granted_q && !given_back_q))
  // An operation ends with a packet.
  `VELO_ASSERT(EndsWithAPacket, !(ended || completed) || (done && ended))
  `VELO_ASSERT(GivenBack, !done || granted_q == given_back_q)
  `VELO_ASSERT(ToldAfterTheAccess, !(notify_valid || reply_valid) || granted_q == given_back_q)

`ifdef WHOLE
  // How much of the operation of a node of one's choice has come without a gap and was written.
  logic node_q;  // the node
  logic whole_q, whole, ours;
  logic [5:0] run_number_q;
  logic [22:0] run_end_q;
  always_ff @(posedge clk_i) node_q <= node_q;
  assign ours  = header_i.src_node[0] == node_q;
  assign whole = command_i.offset == '0 ||
      (whole_q && run_number_q == command_i.number && run_end_q == command_i.offset);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      whole_q   <= 1'b0;
      run_end_q <= '0;
    end else if (done && ours) begin
      whole_q      <= whole && success;
      run_number_q <= command_i.number;
      run_end_q    <= end_q[22:0];
    end
  end
  `VELO_ASSERT(SuccessOfAWholeOperation, !ours || whole || !(notify_valid ||
               (reply_valid && reply_command.error == ErrorNone)))

`endif

  // A beat that is offered stays until it is taken.
  logic atu_waits_q, notify_waits_q, reply_waits_q;
  always_ff @(posedge clk_i) begin
    atu_waits_q    <= rst_ni && atu_valid && !atu_ready_i;
    notify_waits_q <= rst_ni && notify_valid && !notify_ready_i;
    reply_waits_q  <= rst_ni && reply_valid && !reply_ready_i;
  end
  `VELO_ASSERT(OffersStand, (!atu_waits_q || atu_valid) && (!notify_waits_q || notify_valid) &&
               (!reply_waits_q || reply_valid))

  // The proof is not empty.
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (notify_valid && data_bytes_i == 10'd9);
      cover (notify_valid && data_bytes_i == '0);
      cover (reply_valid && reply_command.error == ErrorNone && data_bytes_i != '0);
      cover (reply_valid && reply_command.error == ErrorRight);
      cover (reply_valid && reply_command.error == ErrorContext);
      cover (reply_valid && reply_command.error == ErrorStall);
      cover (done && !granted_q && data_bytes_i != '0);
`ifdef WHOLE
      cover (ours && reply_valid && reply_command.error == ErrorNone && command_i.offset == 23'd14);
      cover (ours && reply_valid && reply_command.error == ErrorLost);
`endif
    end
  end

endmodule
