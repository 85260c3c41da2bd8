// SPDX-License-Identifier: Apache-2.0
//
// Answers what the host asks: loads of BAR0 (the node's registers), BAR2 (its units) and BAR4 (the function's own).
//
// Requests wait in a queue and are served one after the other. A load is of one or two dwords of one aligned 64-bit
// word; it has the word's side effects whatever its byte enables, and a load of no bytes is answered like one
// of one. A load of BAR2 waits until the stores that came before it have gone on to the node. A word of the function's
// own is there a cycle after its address.
// Units VELO and RMA take stores alone. A process that may store there can load, too, so such a load neither waits
// nor goes on to the node: it would hold up what others ask for as long as the network stands.
//
// Errors, as the completion's status: unsupported, what nothing serves; abort, a load of another form or unit, one that
// the node refuses, and one that was not answered in `patience_i` cycles, whose late answer is swallowed.
//
// Source: PCI Express Base Specification 3.0, section 2.3.1.

`include "velo_assert.svh"

module velo_pcie_loads
  import velo_pkg::*;
  import htax_pkg::*;
  import velo_host_pkg::*;
  import pcie_pkg::*;
  import velo_pcie_pkg::*;
#(
    parameter int unsigned Depth = 8,
    parameter int unsigned Bar0Bits = 28,
    parameter int unsigned Bar2Bits = WindowUnitLsb + 2,
    parameter int unsigned Bar4Bits = PcieBar4Bits
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [15:0] id_i,
    input logic [15:0] patience_i,
    input logic [31:0] taken_i,     // stores that have gone on

    output logic     request_room_o,
    output logic     request_hold_o,   // no more requests, but for those that are on their way
    input  logic     request_valid_i,
    input  request_t request_i,

    output logic                        host_valid_o,
    output logic                        control_valid_o,
    output host_read_t                  read_o,                  // of either
    input  logic                        host_ready_i,
    input  logic                        control_ready_i,
    input  logic                        host_answer_valid_i,
    input  host_answer_t                host_answer_i,
    input  logic         [        63:0] host_answer_data_i,
    input  logic                        control_answer_valid_i,
    input  host_answer_t                control_answer_i,
    input  logic         [        63:0] control_answer_data_i,
    output logic         [Bar4Bits-1:0] own_addr_o,
    input  logic         [        63:0] own_data_i,              // what is there, a cycle later

    output tlp_beat_t tx_o,
    input  logic      tx_ready_i,
    output logic      idle_o
);

  typedef enum logic [2:0] {
    StIdle,
    StAsk,
    StAnswer,
    StHead,    // the completion's beats
    StSecond,
    StThird
  } state_e;

  state_e state_q;
  request_t oldest, request_q;
  logic oldest_valid;
  logic [$clog2(Depth):0] count;
  logic [7:0] tag_q;
  logic [15:0] left_q;
  logic [63:0] data_q;
  pcie_status_e status_q;

  velo_fifo #(
      .Width($bits(request_t)),
      .Depth(Depth)
  ) u_requests (
      .clk_i,
      .rst_ni,
      .push_valid_i(request_valid_i),
      .push_ready_o(request_room_o),
      .push_data_i (request_i),
      .pop_valid_o (oldest_valid),
      .pop_ready_i (state_q == StIdle),
      .pop_data_o  (oldest),
      .count_o     (count)
  );
  assign request_hold_o = count >= ($clog2(Depth) + 1)'(Depth / 2);
  assign idle_o = state_q == StIdle && !oldest_valid;

  // ----- asking ---------------------------------------------------------------------------------

  logic form_good, asks, taken, asked, answered, late, refused, stores_gone, own_there_q;
  logic stores_alone;
  logic [31:0] ahead;
  host_answer_t answer;
  logic [63:0] data;
  assign stores_alone = request_q.bar.bar2 &&
      request_q.addr[WindowUnitLsb+:2] inside {UnitVelo, UnitRma};
  assign form_good = !stores_alone &&
      (request_q.length == 10'd1 || (request_q.length == 10'd2 && !request_q.addr[2]));
  assign ahead = taken_i - request_q.behind;
  assign stores_gone = !ahead[31];

  assign asks = state_q == StAsk && form_good && !request_q.refused;
  assign host_valid_o = asks && request_q.bar.bar2 && stores_gone;
  assign control_valid_o = asks && request_q.bar.bar0;
  assign read_o = '{
          addr:
          request_q.bar.bar2
          ?
          AddrBits'({request_q.addr[Bar2Bits-1:3], 3'b0})
          :
          AddrBits
          '(
          UnitRegisters
          ) <<
          WindowUnitLsb
          |
          AddrBits
          '(
          {request_q.addr[Bar0Bits-1:3], 3'b0}
          ),
          len_bytes: 10'd8,
          tag: tag_q
      };
  assign taken = (host_valid_o && host_ready_i) || (control_valid_o && control_ready_i);
  assign asked = state_q == StAsk || state_q == StAnswer;

  assign answer = request_q.bar.bar2 ? host_answer_i : control_answer_i;
  assign data = request_q.bar.bar2 ? host_answer_data_i : control_answer_data_i;
  assign answered = (request_q.bar.bar2 ? host_answer_valid_i : control_answer_valid_i) &&
      answer.tag == tag_q && state_q == StAnswer;
  assign late = asked && left_q == '0 && !taken && !answered;
  assign refused = answer.error;
  assign own_addr_o = request_q.addr[Bar4Bits-1:0];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) own_there_q <= 1'b0;
    else own_there_q <= state_q == StAsk && request_q.bar.bar4 && !own_there_q;
  end

  // ----- the completion -------------------------------------------------------------------------

  // Bytes of the first dword that are not wanted, counted from its start, and of the last one from its end.
  function automatic logic [1:0] ahead_of(logic [3:0] be);
    return be[0] || be == '0 ? 2'd0 : be[1] ? 2'd1 : be[2] ? 2'd2 : 2'd3;
  endfunction
  function automatic logic [1:0] behind_of(logic [3:0] be);
    return be[3] ? 2'd0 : be[2] ? 2'd1 : be[1] ? 2'd2 : be[0] || be == '0 ? 2'd3 : 2'd0;
  endfunction

  pcie_completion_t completion;
  logic two, success;
  logic [ 3:0] last_be;
  logic [12:0] span;
  assign two = request_q.length == 10'd2;
  assign success = status_q == PcieStatusSuccess;
  assign last_be = request_q.length == 10'd1 ? request_q.be[3:0] : request_q.be[7:4];
  assign span = {request_q.length == '0, request_q.length, 2'b0} - 13'(ahead_of(
      request_q.be[3:0]
  )) - 13'(behind_of(
      last_be
  ));

  always_comb begin
    completion            = '0;
    completion.length     = success ? request_q.length : '0;
    completion.attributes = request_q.attributes;
    completion.tc         = request_q.tc;
    completion.tlp        = success ? PcieTlpCompletionData : PcieTlpCompletion;
    completion.byte_count = request_q.read ? span[11:0] : 12'd4;
    completion.status     = status_q;
    completion.completer  = id_i;
    completion.tag        = request_q.tag;
    completion.requester  = request_q.requester;
    if (request_q.read) begin
      completion.lower_addr = {request_q.addr[6:2], ahead_of(request_q.be[3:0])};
    end
  end

  assign tx_o = '{
          valid: state_q inside {StHead, StSecond, StThird},
          last: state_q == StThird || (state_q == StSecond && !(success && two)),
          keep: state_q == StHead || (state_q == StSecond && success) ? 2'b11 : 2'b01,
          data:
          state_q
          ==
          StHead
          ?
          completion[63:0]
          :
          state_q
          ==
          StThird
          ?
          {32'b0, data_q[63:32]}
          : {
          request_q.addr[2] ? data_q[63:32] : data_q[31:0]
          ,
          completion[95:64]
          }
      };

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      tag_q   <= '0;
    end else begin
      unique case (state_q)
        StIdle:   if (oldest_valid) state_q <= StAsk;
        StAsk: begin
          if (request_q.refused || !form_good || own_there_q || late) state_q <= StHead;
          else if (taken) state_q <= StAnswer;
        end
        StAnswer: if (answered || late) state_q <= StHead;
        StHead:   if (tx_ready_i) state_q <= StSecond;
        StSecond: if (tx_ready_i) state_q <= tx_o.last ? StIdle : StThird;
        default:  if (tx_ready_i) state_q <= StIdle;
      endcase
      if (state_q == StIdle && oldest_valid) tag_q <= tag_q + 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) request_q <= oldest;
    if (!asked) left_q <= patience_i;
    else if (left_q != '0) left_q <= left_q - 1'b1;
    if (state_q == StAsk) begin
      data_q <= own_data_i;
      status_q <= request_q.refused ? PcieStatusUnsupported :
          request_q.bar.bar4 && form_good ? PcieStatusSuccess : PcieStatusAbort;
    end
    if (answered) begin
      data_q   <= data;
      status_q <= refused ? PcieStatusAbort : PcieStatusSuccess;
    end
  end

  logic unused;
  assign unused = ^{ahead, answer.eop, completion[127:96], span[12]};

  `VELO_ASSERT(NoQuestionOfAWrongForm, !taken || (form_good && !request_q.refused))

endmodule
