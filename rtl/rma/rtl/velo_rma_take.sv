// SPDX-License-Identifier: Apache-2.0
//
// Takes packets of one traffic class in: header and command are shown as a job, the data as a stream.
//
// Network side (valid/ready): packets without route words. `job_valid_o` holds with header and command
// until the pulse `done_i`; what is left of the packet is then dropped. The data stream (valid/ready)
// has exactly the bytes that the header says, whatever the packet's true length: one that ends early is
// filled with zeros, and `data_bad_o` with the last beat tells that it was not as long as it said.
//
// Dropped and reported by a pulse on `error_valid_o`, while `header_o` shows whose it was:
//   ErrorKind       not of this class, or of a kind that `Kinds` does not have;
//   ErrorMalformed  another node's; no room for a command, or one for another operation than the
//                   kind says; longer than the MTU; it or its data end where they should not.

`include "velo_assert.svh"

module velo_rma_take
  import velo_pkg::*;
  import velo_rma_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned MtuBytes = 512,
    parameter traffic_class_e Class = TrafficClassRequest,
    parameter logic [15:0] Kinds = '0  // one bit a packet kind
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [7:0] node_id_i,

    input  logic                 net_valid_i,
    output logic                 net_ready_o,
    input  logic                 net_sop_i,
    input  logic                 net_eop_i,
    input  logic [DataWidth-1:0] net_data_i,

    output logic               job_valid_o,
    output packet_t            header_o,
    output rma_command_t       command_o,
    output logic         [9:0] data_bytes_o,
    input  logic               done_i,

    output logic                 data_valid_o,
    input  logic                 data_ready_i,
    output logic                 data_last_o,
    output logic                 data_bad_o,
    output logic [DataWidth-1:0] data_o,

    output logic   error_valid_o,
    output error_e error_code_o
);

  localparam int unsigned BeatBytes = DataWidth / 8;
  localparam int unsigned HeadBits = 64 + $bits(rma_command_t);
  // On a path of 128 bits header, and command, and data begin beats of their own: velo_rma_pack.
  localparam bit WidePath = DataWidth == 128;
  localparam int unsigned HeadBeats = WidePath ? 3 : HeadBits / DataWidth;

  typedef enum logic [1:0] {
    StHead,
    StJudge,
    StJob,
    StDrop
  } state_e;

  state_e state_q;
  logic [HeadBits-1:0] head_q, head_d;
  logic [3:0] head_left_q;
  logic [9:0] payload, bytes_left_q, bytes_next;
  logic data_left_q, data_last_q, ended_q, take, pad_due_q;
  error_e verdict, error_q;

  if (WidePath) begin : gen_wide
    always_comb begin
      head_d = head_q;
      unique case (head_left_q[1:0])
        2'd2: head_d[63:0] = net_data_i[63:0];
        2'd1: head_d[191:64] = net_data_i;
        default: head_d[255:192] = net_data_i[63:0];
      endcase
    end
  end else begin : gen_narrow
    assign head_d = {net_data_i, head_q[HeadBits-1:DataWidth]};
  end

  assign {command_o, header_o} = head_q;
  assign take                  = net_valid_i && net_ready_o;

  // Outcomes are told by notifications whatever the operation was.
  logic named;
  rma_op_e op;
  always_comb begin
    named = Class != TrafficClassCompletion;
    op    = RmaOpNotify;
    unique case (header_o.kind)
      PacketKindPut: op = RmaOpPut;
      PacketKindGetRequest, PacketKindGetResponse: op = RmaOpGet;
      PacketKindPutImmediate: op = RmaOpPutImmediate;
      PacketKindFetchCompareAddRequest, PacketKindFetchCompareAddResponse:
      op = RmaOpFetchCompareAdd;
      default: ;
    endcase
  end

  always_comb begin
    verdict = ErrorNone;
    if (!Kinds[header_o.kind] || header_o.tc != Class) verdict = ErrorKind;
    else if (header_o.routed || header_o.dst_node != node_id_i ||
             header_o.len < 10'(CommandBytes) || header_o.len > 10'(MtuBytes) ||
             ended_q != (header_o.len == 10'(CommandBytes)) || (named && command_o.op != op))
      verdict = ErrorMalformed;
  end

  // ----- data -----------------------------------------------------------------------------------

  assign payload      = header_o.len - 10'(CommandBytes);
  assign bytes_next   = state_q == StJudge ? payload : bytes_left_q - 10'(BeatBytes);
  assign data_valid_o = state_q == StJob && data_left_q && (net_valid_i || ended_q);
  assign data_last_o  = data_last_q;
  assign data_o       = ended_q ? '0 : net_data_i;
  assign data_bad_o   = data_last_q && (ended_q || net_eop_i == pad_due_q);

  always_comb begin
    unique case (state_q)
      StHead:  net_ready_o = 1'b1;
      StJob:   net_ready_o = data_left_q && !ended_q && data_ready_i;
      StDrop:  net_ready_o = 1'b1;
      default: net_ready_o = 1'b0;
    endcase
  end

  // ----- control --------------------------------------------------------------------------------

  assign job_valid_o = state_q == StJob;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q     <= StHead;
      head_left_q <= 4'(HeadBeats - 1);
      error_q     <= ErrorNone;
    end else begin
      error_q <= ErrorNone;
      unique case (state_q)
        StHead: begin
          if (take) begin
            head_left_q <= head_left_q - 4'd1;
            if (head_left_q == '0) state_q <= StJudge;
            else if (net_eop_i) error_q <= ErrorMalformed;
            if (head_left_q == '0 || net_eop_i) head_left_q <= 4'(HeadBeats - 1);
          end
        end
        StJudge: begin
          error_q <= verdict;
          if (verdict == ErrorNone) state_q <= StJob;
          else state_q <= ended_q ? StHead : StDrop;
        end
        StJob: begin
          if (data_valid_o && data_ready_i && data_bad_o) error_q <= ErrorMalformed;
          if (done_i) state_q <= ended_q || (take && net_eop_i) ? StHead : StDrop;
        end
        default: if (take && net_eop_i) state_q <= StHead;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StHead && net_valid_i) head_q <= head_d;
    if (take) ended_q <= net_eop_i;
    data_bytes_o <= payload;
    // On a narrow path the last word may end in a beat without data.
    pad_due_q    <= DataWidth == 32 && header_o.len[2:0] != '0 && header_o.len[2:0] <= 3'd4;
    // Keep the bytes that are left, and facts about them that the next cycle needs.
    if (state_q == StJudge || (data_valid_o && data_ready_i)) begin
      bytes_left_q <= bytes_next;
      data_left_q  <= state_q == StJudge ? header_o.len != 10'(CommandBytes) : !data_last_q;
      data_last_q  <= bytes_next <= 10'(BeatBytes);
    end
  end

  assign error_valid_o = error_q != ErrorNone;
  assign error_code_o  = error_q;

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})
  `VELO_ASSERT_INIT(MtuFits, MtuBytes >= 64 && MtuBytes <= PacketMtuBytesMax)
  `VELO_ASSUME(PacketStartsWithSop,
               !take || net_sop_i == (state_q == StHead && head_left_q == 4'(HeadBeats - 1)))
  `VELO_ASSUME(DoneWithAJob, !done_i || job_valid_o)

endmodule
