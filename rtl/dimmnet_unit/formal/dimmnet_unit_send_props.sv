// SPDX-License-Identifier: Apache-2.0
//
// What dimmnet_unit_send promises, for packets of any contents, a network that stops at any time, and settings that
// change at any time; with packets of 4 lines at most and room for 8, 64 bits. Granted: what dimmnet_sender promises
// (proven there): lines come as first, middle, last, as many as the first one's `words` says and the header has; and that
// a FIFO gives back what it got (proven in common).
//
// `at` is any place in the order of lines that are kept: its line comes out once, in its turn, unchanged, with as many
// lines around it as its packet has and its header before them.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module dimmnet_unit_send_props
  import velo_pkg::*;
  import dimmnet_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,
    input logic enabled_i,
    input logic [7:0] node_id_i,
    input logic [15:0] stop_i,
    input logic line_valid_i,
    input dimmnet_line_e line_ident_i,
    input logic [63:0] line_i,
    input logic net_ready_i,
    input logic [3:0] at_i  // the same in all cycles
);

  localparam int unsigned Lines = 8;
  localparam int unsigned PacketLines = 4;

  logic unreachable_o, idle_o, line_ready_o;
  logic net_valid_o, net_sop_o, net_eop_o;
  logic [63:0] net_data_o;

  dimmnet_unit_send #(
      .DataWidth  (64),
      .PacketLines(PacketLines),
      .Lines      (Lines),
      .Multicast  (1'b1)
  ) u_dut (
      .*
  );

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  function automatic logic [6:0] words_of(logic [63:0] line);
    dimmnet_packet_t packet;
    packet = {64'b0, line};
    return packet.words;
  endfunction
  function automatic logic [15:0] lid_of(logic [63:0] line);
    dimmnet_packet_t packet;
    packet = {64'b0, line};
    return packet.dst_lid;
  endfunction

  // ----- what comes -----------------------------------------------------------------------------

  logic take, kept_q, lines_bad;
  logic [2:0] come_q, all_q;  // lines of this packet, and how many it has
  assign take = line_valid_i && line_ready_o;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) come_q <= '0;
    else if (take) begin
      come_q <= line_ident_i == DimmnetLineLast ? '0 : come_q + 1'b1;
      if (come_q == '0) begin
        all_q  <= 3'(words_of(line_i)) + 3'd2;
        kept_q <= !unreachable_o;
      end
    end
  end
  assign lines_bad = come_q == '0 ?
      line_ident_i != DimmnetLineFirst || words_of(line_i) > 7'(PacketLines - 2) :
      line_ident_i != (come_q + 1'b1 == all_q ? DimmnetLineLast : DimmnetLineMiddle);
  `VELO_ASSUME(PacketsAreWhole, !line_valid_i || !lines_bad)

  logic stands_q;
  logic [63:0] line_q;
  always_ff @(posedge clk_i) begin
    stands_q <= rst_ni && line_valid_i && !line_ready_o;
    line_q   <= line_i;
  end
  `VELO_ASSUME(LinesStand, !stands_q || (line_valid_i && line_i == line_q))

  // ----- each line, once, unchanged, in order -----------------------------------------------------

  typedef logic [3:0] place_t;  // one bit more than a place in the FIFO
  place_t at, at_q;
  assign at = at_i;
  always_ff @(posedge clk_i) at_q <= at;
  always_comb assume (!past_q || at == at_q);
  place_t in_q, out_q;
  logic here_q, pop, push;
  logic [63:0] seen_q;
  assign push = take && (come_q == '0 ? !unreachable_o : kept_q);
  assign pop  = net_valid_o && net_ready_i && !net_sop_o;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) {in_q, out_q, here_q} <= '0;
    else begin
      if (push) in_q <= in_q + 1'b1;
      if (pop) out_q <= out_q + 1'b1;
      if (push && in_q == at) begin
        here_q <= 1'b1;
        seen_q <= line_i;
      end else if (pop && out_q == at) here_q <= 1'b0;
    end
  end
  `VELO_ASSERT(NothingIsInvented, !pop || out_q != in_q)
  `VELO_ASSERT(SameLine, !(pop && out_q == at) || (here_q && net_data_o == seen_q))
  `VELO_ASSERT(NothingIsOverwritten, !(push && in_q == at) || !here_q)
  `VELO_ASSERT(DroppedIsTaken, !line_valid_i || !(come_q == '0 ? unreachable_o : !kept_q) ||
               line_ready_o)
  `VELO_ASSERT(OncePerPacket, !unreachable_o || come_q == '0)

  // ----- framing --------------------------------------------------------------------------------

  // Header, then as many lines as it says; nothing but the network holds up a packet that has begun.
  packet_t header, header_q;
  logic inside_q;
  logic [2:0] gone_q;
  assign header = packet_t'(net_data_o);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) {inside_q, gone_q} <= '0;
    else if (net_valid_o && net_ready_i) begin
      inside_q <= !net_eop_o;
      gone_q   <= net_sop_o || net_eop_o ? '0 : gone_q + 1'b1;
      if (net_sop_o) header_q <= header;
    end
  end
  `VELO_ASSERT(FirstIsFirst, !net_valid_o || net_sop_o == !inside_q)
  `VELO_ASSERT(NoGap, !inside_q || net_valid_o)
  `VELO_ASSERT(AsLongAsItSays, !(net_valid_o && !net_sop_o) ||
               net_eop_o == (10'(gone_q) + 10'd1 == header_q.len >> 3))
  `VELO_ASSERT(HeaderIsNoEnd, !(net_valid_o && net_sop_o) || (!net_eop_o && header.len >= 10'd16 &&
               header.tc == TrafficClassRequest && header.kind == PacketKindCustom &&
               !header.routed && header.src_node == node_id_i))
  // It goes where its first line says, and to no group.
  logic [63:0] first;
  assign first = u_dut.u_lines.pop_data_o[63:0];
  `VELO_ASSERT(ToItsNode, !(net_valid_o && net_sop_o) ||
               (lid_of(first) == 16'(DimmnetLidOfNode) + 16'(header.dst_node) &&
                header.dst_node < 8'(GroupNodeMin)))
  `VELO_ASSERT(IdleIsEmpty, !idle_o || (in_q == out_q && come_q == '0 && !net_valid_o))
  // Lines wait only while a packet is here that the network can take.
  `VELO_ASSERT(WaitsForTheNetworkAlone, !line_valid_i || line_ready_o || net_valid_o)

  // ----- what makes the induction close -----------------------------------------------------------

  // The FIFO's entries, by place.
  logic [Lines-1:0][64:0] kept;
  always_ff @(posedge clk_i) if (push) kept[in_q[2:0]] <= {line_ident_i == DimmnetLineLast, line_i};
  `VELO_ASSUME(FifoKeeps, in_q == out_q || u_dut.u_lines.pop_data_o == kept[out_q[2:0]])

  logic [Lines-1:0] there, ends, begins;
  logic [Lines-1:0][63:0] line;
  always_comb begin
    for (int unsigned i = 0; i < Lines; i++) begin
      automatic logic [2:0] place = 3'(out_q + 4'(i));
      {ends[i], line[i]} = kept[place];
      there[i] = 4'(i) < in_q - out_q;
      ends[i] &= there[i];
    end
    for (int unsigned i = 0; i < Lines; i++) begin
      begins[i] = there[i] && (i == 0 ? gone_q == '0 : ends[i-1]);
    end
  end
  `VELO_ASSERT(SamePlaces, u_dut.u_lines.gen_memory.write_q == in_q &&
               u_dut.u_lines.gen_memory.read_q == out_q && in_q - out_q <= 4'(Lines))
  `VELO_ASSERT(SameState, u_dut.lines_q == inside_q && u_dut.inside_q == (come_q != '0) &&
               (come_q == '0 || u_dut.drop_q == !kept_q))
  `VELO_ASSERT(SameTracked, here_q == (4'(at - out_q) < 4'(in_q - out_q)) &&
               (!here_q || kept[at[2:0]][63:0] == seen_q))
  `VELO_ASSERT(SameCount, u_dut.whole_q == 4'($countones(ends)))
  `VELO_ASSERT(ComeIsSmall, come_q == '0 || (come_q < all_q && all_q <= 3'(PacketLines) &&
               all_q >= 3'd2))
  // The newest lines are those of the packet that is coming in, if it is kept.
  for (genvar i = 0; i < Lines; i++) begin : gen_line
    logic is_open;  // of the packet that is coming in
    assign is_open = come_q != '0 && kept_q && 4'(in_q - out_q) <= 4'(i) + 4'(come_q);
    `VELO_ASSERT(OpenHasNoEnd, !there[i] || !is_open || !ends[i])
    `VELO_ASSERT(OpenBegins, !(there[i] && come_q != '0 && kept_q &&
                 4'(in_q - out_q) == 4'(i) + 4'(come_q)) ||
                 ((begins[i] && !(i == 0 && inside_q)) && 3'(words_of(line[i])) + 3'd2 == all_q &&
                  words_of(line[i]) <= 7'd2))
    `VELO_ASSERT(WholeEnds, !there[i] || is_open || ends[i] ||
                 (i < Lines - 1 && there[i < Lines-1 ? i+1 : i]))
  end
  `VELO_ASSERT(OpenIsHere, come_q == '0 || !kept_q || 4'(in_q - out_q) >= 4'(come_q))
  // From each first line on, as many as it says to its end.
  for (genvar i = 0; i < Lines; i++) begin : gen_packet
    logic [2:0] all;
    assign all = 3'(words_of(line[i])) + 3'd2;
    `VELO_ASSERT(FirstIsGood, !(begins[i]) || (words_of(line[i]) <= 7'd2 &&
                 lid_of(line[i]) >= 16'(DimmnetLidOfNode) &&
                 lid_of(line[i]) < 16'(DimmnetLidOfNode) + 16'(GroupNodeMin)))
    for (genvar j = i; j < i + PacketLines && j < Lines; j++) begin : gen_end
      `VELO_ASSERT(EndsInItsTurn, !(begins[i] && there[j] && 3'(j - i) < all) ||
                   ends[j] == (3'(j - i) + 3'd1 == all))
    end
  end
  // Of the packet that is going out.
  `VELO_ASSERT(BegunIsSmall, inside_q ? header_q.len[9:3] <= 7'(PacketLines) &&
               header_q.len[2:0] == '0
               && gone_q < 3'(header_q.len >> 3) : gone_q == '0)
  `VELO_ASSERT(BegunIsHere, !inside_q || (gone_q == '0 ? 10'(words_of(line[0])) + 10'd2 ==
               header_q.len >> 3 : 1'b1))
  for (genvar j = 0; j < PacketLines; j++) begin : gen_rest
    `VELO_ASSERT(RestIsHere, !inside_q || 3'(j) + gone_q >= 3'(header_q.len >> 3) ||
                 (there[j] && ends[j] == (3'(j) + gone_q + 3'd1 == 3'(header_q.len >> 3))))
  end

  // ----- within the bound -------------------------------------------------------------------------

  logic [1:0] packets_q;
  logic waited_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) {packets_q, waited_q} <= '0;
    else begin
      if (net_valid_o && net_ready_i && net_eop_o && packets_q != 2'd3)
        packets_q <= packets_q + 1'b1;
      if (line_valid_i && !line_ready_o) waited_q <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (packets_q == 2'd2 && waited_q);
      cover (packets_q == 2'd1 && header_q.len == 10'd32);
      cover (packets_q == 2'd1 && come_q == 3'd2 && !kept_q);
      cover (pop && out_q == at && at == 4'd9);
    end
  end

endmodule
