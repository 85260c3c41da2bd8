// SPDX-License-Identifier: Apache-2.0
//
// The requester's promises, seen from outside, for every write, right or wrong, and every
// behaviour of the network.
//
//   * Packets are whole, never interleaved, and an offered beat stands until it is taken. Only the
//     watchdog takes one back: a packet's first, with a report of its sender, and only when it is on.
//   * Each write becomes one packet or one report, never both, never neither.
//   * A packet is as long as its header says, goes where the address says, names the true sender,
//     and carries the write's bytes: of a whole line without its header word, of a fragment all.
//   * The first beat is there one cycle after the write's, if the network has room.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_requester_props
  import velo_pkg::*;
#(
    // Also length and payload: a proof apart, as the counts make it large.
    parameter bit Data = 1'b0
) (
    input logic            clk_i,
    input logic            rst_ni,
    input logic     [ 7:0] node_id_i,
    input logic            watchdog_enable_i,
    input logic     [23:0] watchdog_cycles_i,
    input logic            write_valid_i,
    input logic            write_sop_i,
    input logic            write_eop_i,
    input logic     [31:0] write_data_i,
    input address_t        write_target_i,
    input logic     [ 7:0] write_source_i,
    input logic     [ 9:0] write_len_bytes_i,
    input logic            net_ready_i
);

  logic write_ready, net_valid, net_sop, net_eop, sent, error_valid, expired;
  logic [31:0] net_data;
  logic [7:0] error_source;
  error_e error_code;

  velo_requester #(
      .DataWidth(32)
  ) u_dut (
      .write_ready_o (write_ready),
      .net_valid_o   (net_valid),
      .net_sop_o     (net_sop),
      .net_eop_o     (net_eop),
      .net_data_o    (net_data),
      .sent_o        (sent),
      .error_valid_o (error_valid),
      .expired_o     (expired),
      .error_code_o  (error_code),
      .error_source_o(error_source),
      .*
  );

  // ----- the environment: what the bridge guarantees --------------------------------------------

  logic past_q, open_q, stable_q;
  logic [79:0] offer_q, offer;
  logic [45:0] target_q, target;
  logic [7:0] node_q;
  logic [4:0] write_beat_q, write_beat;  // stops counting where only refused writes get
  logic write_take;
  initial past_q = 1'b0;
  assign target     = {write_target_i, write_source_i, write_len_bytes_i};
  assign offer      = {target, write_sop_i, write_eop_i, write_data_i};
  assign write_take = write_valid_i && write_ready;
  assign write_beat = write_sop_i ? 5'd0 : write_beat_q;
  always_ff @(posedge clk_i) begin
    past_q   <= 1'b1;
    node_q   <= node_id_i;
    stable_q <= rst_ni && write_valid_i && !write_ready;
    offer_q  <= offer;
    if (!rst_ni) open_q <= 1'b0;
    else if (write_take) begin
      open_q   <= !write_eop_i;
      target_q <= target;
      if (write_beat != '1) write_beat_q <= write_beat + 5'd1;
    end
  end
  always_comb assume (past_q || !rst_ni);
  `VELO_ASSUME(ConstantNode, node_q == node_id_i)
  `VELO_ASSUME(OfferStands, !stable_q || (write_valid_i && offer_q == offer))
  `VELO_ASSUME(Framing, !write_valid_i || write_sop_i == !open_q)
  `VELO_ASSUME(TargetHolds, !write_valid_i || write_sop_i || target_q == target)
  // Of a write that is longer than a line nothing needs to be true.
  logic last_by_length;
  assign last_by_length = {write_beat, 2'b0} + 7'd4 >= write_len_bytes_i[6:0];
  `VELO_ASSUME(LengthIsTrue,
               !write_valid_i || write_len_bytes_i > 10'd64 || write_eop_i == last_by_length)

  // ----- what a write must become ---------------------------------------------------------------

  header_t line_header;
  logic [9:0] line_bytes, end_byte;
  logic aligned, in_line, whole, right;
  assign line_header = header_t'({32'b0, write_data_i});
  assign line_bytes = ({7'b0, write_target_i.words} + 10'd1) << 3;
  assign end_byte = {4'b0, write_target_i.offset} + write_len_bytes_i;
  assign aligned     = write_target_i.offset[2:0] == '0 && write_len_bytes_i[2:0] == '0 &&
                       write_len_bytes_i != '0;
  assign in_line = write_len_bytes_i <= 10'd64 && end_byte <= line_bytes;
  assign whole = write_target_i.offset == '0 && write_len_bytes_i == line_bytes;
  assign right       = aligned && in_line && (!whole ||
      (line_header.valid && !line_header.external && line_header.reserved == '0 &&
       ((17'(line_header.len) + 17'd7) >> 3) == 17'(write_target_i.words)));

  packet_t expected;
  always_comb begin
    expected          = '0;
    expected.dst_node = write_target_i.node;
    expected.dst_ctx  = write_target_i.vpid;
    expected.src_node = node_id_i;
    expected.src_ctx  = write_source_i;
    if (whole) begin
      expected.len = line_header.len[9:0];
      expected.tag = line_header.tag;
    end else begin
      expected.frag = 1'b1;
      expected.frag_last = end_byte == line_bytes;
      expected.len = write_len_bytes_i;
      expected.tag = {
        1'b0, end_byte == line_bytes, write_target_i.words, write_target_i.offset[5:3]
      };
    end
  end

  // The first beat of a write, as long as it is offered for the first time.
  logic first;
  assign first = write_valid_i && write_sop_i && !stable_q;
  packet_t expected_q;
  always_ff @(posedge clk_i) if (first && right) expected_q <= expected;

  // ----- the network side -----------------------------------------------------------------------

  logic net_take, net_open_q, net_stable_q;
  logic [33:0] net_q;
  logic [4:0] beat_q, beat;  // a packet has at most 18
  assign net_take = net_valid && net_ready_i;
  assign beat     = net_sop ? 5'd0 : beat_q;
  always_ff @(posedge clk_i) begin
    net_stable_q <= rst_ni && net_valid && !net_ready_i;
    net_q        <= {net_sop, net_eop, net_data};
    if (!rst_ni) net_open_q <= 1'b0;
    else if (net_take) begin
      net_open_q <= !net_eop;
      beat_q     <= beat + 5'd1;
    end
  end

  logic expired_q;
  always_ff @(posedge clk_i) expired_q <= rst_ni && expired;
  `VELO_ASSERT(NetStands, !net_stable_q || expired_q ||
               (net_valid && net_q == {net_sop, net_eop, net_data}))
  // Whole or not at all: what is dropped is in the register, with none of it taken.
  `VELO_ASSERT(DroppedWhole, !expired || (net_valid && net_sop && !net_ready_i && !net_open_q))
  `VELO_ASSERT(DroppedIsGone, !expired_q || !net_valid)
  `VELO_ASSERT(NetFraming, !net_valid || net_sop == !net_open_q)

  // The header is the one expected of the last write that was right: the next one's is not worked
  // out before the first beat of this packet has moved on.
  packet_t sending_q;
  always_ff @(posedge clk_i) if (net_take && net_sop) sending_q <= expected_q;
  `VELO_ASSERT(HeaderLow, !(net_valid && net_sop && !net_stable_q) || net_data == expected_q[31:0])
  `VELO_ASSERT(HeaderHigh, !(net_valid && beat == 5'd1) || net_data == sending_q[63:32])
  logic [4:0] last_beat;
  assign last_beat = 5'd1 + 5'(((sending_q.len[6:0] + 7'd7) >> 3) << 1);
  `VELO_ASSERT(AsLongAsItSays, !Data || !(net_valid && !net_sop) || net_eop == (beat == last_beat))

  // Payload: one bit of one beat of one's choice, in each packet. A refused write may pass the packet
  // before it.
  logic [4:0] pick_q;
  logic [4:0] bit_q;
  logic picked_q;
  logic right_q;
  always_ff @(posedge clk_i) if (write_valid_i && write_sop_i) right_q <= right;
  always_ff @(posedge clk_i) {pick_q, bit_q} <= {pick_q, bit_q};
  always_ff @(posedge clk_i) begin
    if (write_take) begin
      if (write_beat == pick_q && (write_sop_i ? right : right_q)) picked_q <= write_data_i[bit_q];
    end
  end
  logic line_beat, fragment_beat;
  assign line_beat     = net_valid && beat >= 5'd2 && !sending_q.frag;
  assign fragment_beat = net_valid && beat >= 5'd2 && sending_q.frag;
  `VELO_ASSERT(PayloadOfLine,
               !Data || !(line_beat && beat == pick_q) || net_data[bit_q] == picked_q)
  `VELO_ASSERT(PayloadOfFragment,
               !Data || !(fragment_beat && beat == pick_q + 5'd2) || net_data[bit_q] == picked_q)

  // ----- one packet or one report; latency ------------------------------------------------------

  // Of the writes that began, one may still be in the register when the next one begins.
  logic [1:0] owed_q;
  logic sop_due_q, refused, judged;
  assign refused = error_valid && !expired;
  // A refused write waits while another one is reported.
  assign judged  = write_valid_i && write_sop_i && !expired;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) owed_q <= '0;
    else owed_q <= owed_q + {1'b0, first} - {1'b0, sent} - {1'b0, error_valid};
    sop_due_q <= rst_ni && first && right && (!net_valid || net_ready_i);
  end
  `VELO_ASSERT(OneOutcome, owed_q <= 2'd2)
  `VELO_ASSERT(NothingOwedWhenIdle,
               net_valid || write_valid_i || net_open_q || open_q || owed_q == '0)
  `VELO_ASSERT(OneAtATime, net_valid || net_open_q || owed_q <= 2'd1)
  `VELO_ASSERT(RefusedIfWrong, !(first && judged) || refused == !right)
  `VELO_ASSERT(RefusedOnlyIfWrong, !refused || (write_valid_i && write_sop_i && !right))
  `VELO_ASSERT(OneCycle, !sop_due_q || (net_valid && net_sop))

  // The watchdog: on, and the sender of the packet that was dropped is named.
  logic enabled_q;
  logic [7:0] expected_source_q;
  always_ff @(posedge clk_i) begin
    enabled_q <= watchdog_enable_i;
    if (first && right) expected_source_q <= write_source_i;
  end
  `VELO_ASSERT(OnlyWhenOn, !expired || (enabled_q && error_code == ErrorNetwork))
  `VELO_ASSERT(SenderIsNamed, !expired || error_source == expected_source_q || (first && right))

  // The proof is not empty.
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (net_take && net_eop && beat == 5'd15 && !sending_q.frag);
      // The longest fragment; a write longer than a line, refused to its end.
      cover (net_take && net_eop && beat == 5'd15 && sending_q.frag);
      cover (write_take && write_eop_i && write_beat == 5'd17 && !right_q);
      cover (net_take && net_eop && sending_q.frag && sending_q.frag_last);
      cover (error_valid && error_code == ErrorOversize);
      cover (expired && open_q && !net_eop);
      cover (expired_q && write_take && write_eop_i && !write_sop_i);
      cover (net_take && net_eop && net_stable_q && write_valid_i && write_sop_i);
    end
  end

endmodule
